"""A record becomes an event, is passed over with a reason, or is refused with what to do."""

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, field_validator

from consumer import Event, EventHandler, handles
from consumer.errors import DecodeError
from consumer.wire.decode import Skipped, decode
from tests.builders import ARecord, headers

ID = "0199a000-0000-7000-8000-000000000002"


class Placed(BaseModel):
    a: int

    @field_validator("a")
    @classmethod
    def _small(cls, value: int) -> int:
        if value > 1000:
            raise ValueError(f"secret {value}")
        return value


class Typed(EventHandler):
    consumer = "typed"
    topics = ("outbox.order",)

    @handles("OrderPlaced")
    def placed(self, event: Event[Placed], connection: Any) -> None: ...

    @handles("Maybe")
    def maybe(self, event: Event[Placed | None], connection: Any) -> None: ...


class Everything(EventHandler):
    consumer = "everything"
    topics = ("outbox.order",)

    def handle(self, event: Event[Any], connection: Any) -> None: ...


def read(record: ARecord, handler: type[EventHandler] = Everything) -> Event[Any]:
    event = decode(record, handler.declaration)
    assert isinstance(event, Event)
    return event


def test_all_facts_of_a_record_are_in_the_event() -> None:
    """Id, type, key, payload, aggregate type, place, time and headers."""
    record = ARecord(
        offset=7,
        partition=2,
        headers=headers(
            id=ID,
            eventType="OrderPlaced",
            aggregateType="order",
            createdAt="2026-12-01T06:40:40.877735Z",
            headers=None,
        ),
    )

    event = read(record, Typed)

    assert event.id == UUID(ID)
    assert event.original_id == ID
    assert (event.type, event.key, event.aggregate_type) == ("OrderPlaced", "o-1", "order")
    assert event.payload == Placed(a=1)
    assert (event.topic, event.partition, event.offset) == ("outbox.order", 2, 7)
    assert event.timestamp == datetime(2026, 12, 1, 6, 40, 40, 877735, UTC)
    assert [name for name, _ in event.headers] == ["id", "eventType", "aggregateType", "createdAt"]


def test_without_created_at_the_time_is_the_records_own() -> None:
    """Kafka's time stands in for the outbox row's."""
    assert read(ARecord()).timestamp == datetime(2026, 1, 1, tzinfo=UTC)


def test_the_last_of_a_repeated_header_wins() -> None:
    """Debezium adds headers: what a later transform added counts."""
    repeated = [*headers(id=ID, eventType="Old"), *headers(eventType="OrderPlaced")]

    assert read(ARecord(headers=repeated)).type == "OrderPlaced"


def test_the_outboxs_extra_headers_come_as_single_ones() -> None:
    """The column `headers` travels as one JSON object."""
    extra = '{"traceparent": "00-1", "tenant": "a", "n": {"b": [1, null]}}'
    packed = headers(id=ID, eventType="X", headers=extra)

    event = read(ARecord(headers=packed))

    assert event.header("traceparent") == b"00-1"
    assert event.header("tenant") == b"a"
    assert event.header("n") == b'{"b": [1, null]}'
    assert event.header("headers") is None


def test_junk_in_unrelated_headers_is_kept_as_it_is() -> None:
    """Only the headers that make the event are read."""
    junk = [*headers(id=ID, eventType="X"), ("trace-bin", b"\xff\xfe"), ("headers", b"\xff")]

    assert read(ARecord(headers=junk)).header("trace-bin") == b"\xff\xfe"


def test_a_type_that_no_method_takes_is_passed_over_without_reading_the_body() -> None:
    """Its body may be anything."""
    record = ARecord(value=b"\xff", headers=headers(id=ID, eventType="OrderLost"))

    assert decode(record, Typed.declaration) == Skipped("unhandled_type")


def test_a_tombstone_without_an_id_is_passed_over() -> None:
    """No id and no value: a deletion mark, not an event."""
    assert decode(ARecord(value=None, headers=[]), Typed.declaration) == Skipped("tombstone")


def test_a_null_value_with_an_id_is_an_event_without_payload() -> None:
    """A NULL payload column sends this; the handler says whether it takes None."""
    null = ARecord(value=None, headers=headers(id=ID, eventType="Maybe"))

    assert read(null, Typed).payload is None
    assert read(null).payload is None


@pytest.mark.parametrize("event_type", [None, ""])
def test_an_event_without_a_type_is_refused_by_a_handler_of_types(event_type: str | None) -> None:
    """It is no event of an unknown type: passing it over would lose every event of the topic."""
    record = ARecord(headers=headers(id=ID, eventType=event_type))

    with pytest.raises(
        DecodeError, match=r"table\.fields\.additional\.placement=event_type:header"
    ):
        decode(record, Typed.declaration)
    assert read(record).type == event_type


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (ARecord(headers=[]), r"no event id: header 'id' is missing .*EventRouter"),
        (ARecord(headers=headers(id=None)), r"no event id: header 'id' has no value"),
        (ARecord(headers=headers(id=b"\xff")), r"neither UTF-8"),
        (ARecord(headers=headers(id=ID, eventType=b"\xff")), r"header 'eventType' is not UTF-8"),
        (ARecord(key=b"\xff"), r"the key is not UTF-8"),
        (ARecord(headers=headers(id=ID, createdAt="yesterday")), r"'createdAt' is not an ISO 8601"),
        (ARecord(value=b""), r"the value is empty; expected JSON"),
        (ARecord(value=b"Struct{a=1}"), r"not JSON.*StringConverter"),
        (ARecord(value=b"\xff"), r"not UTF-8 \(byte 0\)"),
        (ARecord(value=b'{"t":"\xed\xa0\xbd"}'), r"not UTF-8"),
        (ARecord(value=b"\xef\xbb\xbf{}"), r"not JSON"),
        (ARecord(value=b'{"a": NaN}'), r"NaN is no JSON number"),
        (ARecord(value=b'{"a": -Infinity}'), r"-Infinity is no JSON number"),
        (ARecord(value=b"[" * 100_000), r"nested too deep"),
        (ARecord(value=b"1" * 5000), r"number too long"),
        (ARecord(value=b"{} {}"), r"not JSON: Extra data"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_to_do(record: ARecord, said: str) -> None:
    """Each with its own text."""
    with pytest.raises(DecodeError, match=said):
        decode(record, Everything.declaration)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b'{"a": "x"}', r"does not fit Placed: a: Input should be a valid integer"),
        (b"{}", r"does not fit Placed: a: Field required"),
        (b"null", r"does not fit Placed: the whole: Input should be an object"),
        (None, r"does not fit Placed"),
        (b'{"a": 4111111}', r"does not fit Placed: a: refused by a validator"),
        (b"{", r"not JSON"),
    ],
)
def test_a_payload_that_does_not_fit_the_model_is_refused_without_its_data(
    value: bytes | None, said: str
) -> None:
    """The text names the field, never what stood in it."""
    record = ARecord(value=value, headers=headers(id=ID, eventType="OrderPlaced"))

    with pytest.raises(DecodeError, match=said) as caught:
        decode(record, Typed.declaration)
    assert "4111111" not in str(caught.value)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=9))
def test_every_json_value_comes_back_as_it_was(payload: Any) -> None:
    """Integers beyond 2^53 too."""
    assert read(ARecord(value=json.dumps(payload).encode())).payload == payload


@given(
    value=st.none() | st.binary(),
    key=st.none() | st.binary(),
    found=st.lists(
        st.tuples(
            st.sampled_from(["id", "eventType", "aggregateType", "createdAt", "headers"]),
            st.none() | st.binary(max_size=40) | st.text(max_size=40).map(str.encode),
        )
    ),
)
def test_no_bytes_raise_anything_but_a_decode_error(value: Any, key: Any, found: Any) -> None:
    """Whatever a topic holds, the consumer knows what to say."""
    record = ARecord(value=value, key=key, headers=found)
    for handler in (Typed, Everything):
        try:
            decode(record, handler.declaration)
        except DecodeError as error:
            assert "\n" not in str(error)  # noqa: PT017  # either outcome is right

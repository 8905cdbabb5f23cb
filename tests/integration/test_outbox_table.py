"""No row that would stop the connector can be committed: the table refuses it and says why."""

import json
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import errors

from consumer.store.connecting import connect

LARGEST_RECORD = 1_000_000  # as the constraint says; the test below reads it there
FRAMING = 48_000
INSERT = (
    "INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload, headers, created_at)"
    " VALUES (%(id)s, %(aggregate_type)s, %(aggregate_id)s, %(event_type)s, %(payload)s, %(headers)s,"
    " coalesce(%(created_at)s::timestamptz, now()))"
)
GOOD: dict[str, Any] = {
    "aggregate_type": "order",
    "aggregate_id": "o-1",
    "event_type": "OrderPlaced",
    "payload": "{}",
    "headers": None,
    "created_at": None,
}


@pytest.fixture
def connection(database: str) -> Iterator[psycopg.Connection[Any]]:
    with connect(database, autocommit=True) as opened:
        yield opened


def insert(connection: psycopg.Connection[Any], **row: Any) -> None:
    connection.execute(INSERT, {"id": uuid4(), **GOOD, **row})


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"payload": "null"},
        {"payload": "[]"},
        {"payload": '"text"'},
        {"headers": "{}"},
        {"headers": '{"traceparent": "00-1"}'},
        {"aggregate_type": "a" * 242},
        {"aggregate_type": "Order_item-2"},
        {"aggregate_id": " "},
        {"aggregate_id": "ключ\nwith\tcontrol"},
        {"event_type": "Ünï/code with spaces"},
        {"created_at": "1970-01-01 00:00:00+00"},
        {"created_at": "9999-12-31 23:59:59.999999+00"},
    ],
)
def test_what_the_connector_carries_is_accepted(
    connection: psycopg.Connection[Any], row: dict[str, Any]
) -> None:
    """The stack tier shows that each of these flows."""
    insert(connection, **row)


@pytest.mark.parametrize(
    ("row", "constraint"),
    [
        ({"aggregate_type": ""}, "outbox_aggregate_type_is_no_topic_name"),
        ({"aggregate_type": "two words"}, "outbox_aggregate_type_is_no_topic_name"),
        ({"aggregate_type": "a/b"}, "outbox_aggregate_type_is_no_topic_name"),
        ({"aggregate_type": "a.b"}, "outbox_aggregate_type_is_no_topic_name"),
        ({"aggregate_type": "order\n"}, "outbox_aggregate_type_is_no_topic_name"),
        ({"aggregate_type": "örder"}, "outbox_aggregate_type_is_no_topic_name"),
        ({"aggregate_type": "ｏrder"}, "outbox_aggregate_type_is_no_topic_name"),
        ({"aggregate_type": "a" * 243}, "outbox_aggregate_type_is_no_topic_name"),
        ({"aggregate_id": ""}, "outbox_aggregate_id_is_empty"),
        ({"event_type": ""}, "outbox_event_type_is_empty"),
        ({"headers": "[]"}, "outbox_headers_are_no_object"),
        ({"headers": "null"}, "outbox_headers_are_no_object"),
        ({"created_at": "infinity"}, "outbox_created_at_is_out_of_range"),
        ({"created_at": "-infinity"}, "outbox_created_at_is_out_of_range"),
        ({"created_at": "1969-12-31 23:59:59+00"}, "outbox_created_at_is_out_of_range"),
        ({"created_at": "10000-01-01 00:00:00+00"}, "outbox_created_at_is_out_of_range"),
        ({"payload": json.dumps("x" * 2_000_000)}, "outbox_record_is_larger_than_kafka_takes"),
        ({"aggregate_id": "x" * 1_000_001}, "outbox_record_is_larger_than_kafka_takes"),
        ({"event_type": "x" * 1_000_001}, "outbox_record_is_larger_than_kafka_takes"),
        (
            {"headers": json.dumps({"h": "x" * 1_000_001})},
            "outbox_record_is_larger_than_kafka_takes",
        ),
    ],
)
def test_what_would_stop_the_connector_is_refused_by_a_constraint_that_says_why(
    connection: psycopg.Connection[Any], row: dict[str, Any], constraint: str
) -> None:
    """The name of the constraint is what the person who inserted sees."""
    with pytest.raises(errors.CheckViolation) as caught:
        insert(connection, **row)
    assert caught.value.diag.constraint_name == constraint


@pytest.mark.parametrize(
    "column", ["id", "aggregate_type", "aggregate_id", "event_type", "payload"]
)
def test_null_is_refused(connection: psycopg.Connection[Any], column: str) -> None:
    """A null aggregate type ends Debezium's task; a null key has no order."""
    with pytest.raises(errors.NotNullViolation) as caught:
        insert(connection, **{column: None})
    assert caught.value.diag.column_name == column


def test_the_size_bound_is_on_the_bytes_that_travel(
    connection: psycopg.Connection[Any],
) -> None:
    """Jsonb prints 1e308 as 309 digits: what counts is the text that Debezium reads."""
    numbers = "[" + ",".join(["1e308"] * 4_000) + "]"

    with pytest.raises(errors.CheckViolation, match="outbox_record_is_larger_than_kafka_takes"):
        insert(connection, payload=numbers)


def test_the_bounds_on_size_agree() -> None:
    """The table's bound, the producer's, and the topics' leave room for the record's framing."""
    root = Path(__file__).parents[2]
    table = (root / "schema" / "outbox" / "001_outbox.sql").read_text()
    config = json.loads((root / "connectors" / "outbox.json").read_text())

    bounds = re.findall(r"<= (\d{6,})\)", table)

    assert bounds == [str(LARGEST_RECORD)]
    assert int(config["producer.override.max.request.size"]) >= LARGEST_RECORD + FRAMING
    assert int(config["topic.creation.default.max.message.bytes"]) >= LARGEST_RECORD + FRAMING


_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=300)
_NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1)
_YEARS = st.integers(1970, 9999)
_TOPIC_CHARACTERS = string.ascii_letters + string.digits + "_-"
_CARRIED: dict[str, st.SearchStrategy[Any]] = {
    "aggregate_type": st.text(_TOPIC_CHARACTERS, min_size=1, max_size=242),
    "aggregate_id": _NAMES,
    "event_type": _NAMES,
    "headers": st.none() | st.dictionaries(_TEXT, _TEXT),
    "created_at": _YEARS.map(lambda year: f"{year:04}-06-01 00:00:00+00"),
    "bytes_left": st.integers(0, 2) | st.just(LARGEST_RECORD // 2),
}
_ANYTHING: dict[str, st.SearchStrategy[Any]] = {
    "aggregate_type": _TEXT | st.text("ab-_.\n", min_size=1, max_size=5) | st.just("a" * 243),
    "aggregate_id": st.just("") | _TEXT,
    "event_type": st.just("") | _TEXT,
    "headers": st.lists(_TEXT) | st.booleans() | st.integers() | _TEXT,
    "created_at": (st.integers(1960, 1980) | st.integers(9_990, 10_010)).map(
        lambda year: f"{year}-06-01 00:00:00+00"
    )
    | st.sampled_from(["infinity", "-infinity"]),
    "bytes_left": st.integers(-2, -1),
}


@st.composite
def _rows(draw: st.DrawFn) -> dict[str, Any]:
    """A row that can be carried, or one with a single column spoiled, maybe."""
    row = {name: draw(good) for name, good in _CARRIED.items()}
    spoiled = draw(st.sampled_from([None, *_ANYTHING]))
    return row if spoiled is None else row | {spoiled: draw(_ANYTHING[spoiled])}


def _carried(row: dict[str, Any]) -> bool:
    """Whether Kafka and the router can carry it: the constraints' rule, told in Python."""
    return (
        0 < len(row["aggregate_type"]) <= 242
        and set(row["aggregate_type"]) <= set(_TOPIC_CHARACTERS)
        and row["aggregate_id"] != ""
        and row["event_type"] != ""
        and (row["headers"] is None or isinstance(row["headers"], dict))
        and row["created_at"].partition("-")[0] in map(str, range(1970, 10_000))
        and row["bytes_left"] >= 0
    )


def _columns(row: dict[str, Any]) -> dict[str, Any]:
    """As `insert` takes it, with a payload that leaves `bytes_left` below the bound."""
    headers = None if row["headers"] is None else json.dumps(row["headers"], ensure_ascii=False)
    texts = (row["aggregate_type"], row["aggregate_id"], row["event_type"], headers or "")
    size = LARGEST_RECORD - row["bytes_left"] - sum(len(text.encode()) for text in texts)
    columns = {name: value for name, value in row.items() if name != "bytes_left"}
    return columns | {"headers": headers, "payload": '"' + "x" * (size - 2) + '"'}


@settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(row=_rows())
def test_a_row_is_accepted_when_kafka_can_carry_it_and_only_then(
    connection: psycopg.Connection[Any], row: dict[str, Any]
) -> None:
    """The constraints against the same rule in Python, up to the last byte."""
    try:
        insert(connection, **_columns(row))
    except errors.CheckViolation:
        assert not _carried(row)
    else:
        assert _carried(row)


def test_a_copied_row_gets_a_wal_record_of_its_own(connection: psycopg.Connection[Any]) -> None:
    """Debezium 3.6 loses rows that share an LSN; the volatile default of created_at keeps them apart."""
    create = "SELECT pg_create_logical_replication_slot('copied', 'pgoutput', temporary => true)"
    connection.execute(create)
    with connection.cursor().copy(
        "COPY outbox (id, aggregate_type, aggregate_id, event_type, payload) FROM STDIN"
    ) as copy:
        for number in range(3):
            copy.write_row([uuid4(), "order", str(number), "X", "{}"])

    inserts = connection.execute(
        "SELECT count(*), count(DISTINCT lsn) FROM pg_logical_slot_get_binary_changes("
        "'copied', NULL, NULL, 'proto_version', '1', 'publication_names', 'outbox')"
        " WHERE chr(get_byte(data, 0)) = 'I'"
    ).fetchone()
    assert inserts == (3, 3)

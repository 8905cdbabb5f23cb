"""Outbox writes its rows in the caller's transaction, or says why not before it writes."""

import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.rows import dict_row
from pydantic import BaseModel

from consumer import Outbox, OutboxEvent
from consumer.errors import PublishError, SchemaError
from consumer.store.connecting import connect

NAMES = {"aggregate_type": "order", "aggregate_id": "o-1", "event_type": "OrderPlaced"}


class Placed(BaseModel):
    order_id: UUID
    price: Decimal
    at: datetime


@dataclasses.dataclass
class Sent:
    order_id: UUID
    boxes: list[int]


@pytest.fixture
def connection(database: str) -> Iterator[psycopg.Connection[Any]]:
    with connect(database) as opened:
        yield opened


def rows(connection: psycopg.Connection[Any]) -> list[dict[str, Any]]:
    return connection.cursor(row_factory=dict_row).execute("TABLE outbox").fetchall()


def test_the_row_commits_and_rolls_back_with_the_caller(
    connection: psycopg.Connection[Any],
) -> None:
    """No event without its change, no change without its event."""
    Outbox().publish(connection, **NAMES, payload={"n": 1})
    connection.rollback()
    assert rows(connection) == []

    identity = Outbox().publish(connection, **NAMES, payload={"n": 1}, headers={"tenant": "a"})
    connection.commit()

    (row,) = rows(connection)
    assert (row["id"], row["payload"], row["headers"]) == (identity, {"n": 1}, {"tenant": "a"})
    assert (identity.version, {key: row[key] for key in NAMES}) == (7, NAMES)


def test_models_dataclasses_and_plain_json_are_payloads(
    connection: psycopg.Connection[Any],
) -> None:
    """Each as its JSON form."""
    order_id = uuid4()
    outbox = Outbox()
    at = datetime(2026, 1, 2, tzinfo=UTC)
    for payload in (
        Placed(order_id=order_id, price=Decimal("1.10"), at=at),
        Sent(order_id, [1, 2]),
        None,
        [1, "x", {"deep": [True]}],
        10**40,
    ):
        outbox.publish(connection, **NAMES, payload=payload)

    assert [row["payload"] for row in rows(connection)] == [
        {"order_id": str(order_id), "price": "1.10", "at": "2026-01-02T00:00:00Z"},
        {"order_id": str(order_id), "boxes": [1, 2]},
        None,
        [1, "x", {"deep": [True]}],
        10**40,
    ]


def test_many_keep_their_order_and_answer_their_ids(connection: psycopg.Connection[Any]) -> None:
    """publish_many is one call for a whole change."""
    events = [OutboxEvent(**NAMES, payload=number) for number in range(100)]

    identities = Outbox().publish_many(connection.cursor(), iter(events))

    assert identities == [event.id for event in events] == sorted(identities)
    assert [row["payload"] for row in rows(connection)] == list(range(100))


def test_the_callers_cursor_keeps_its_rows(connection: psycopg.Connection[Any]) -> None:
    """A cursor that is being read can publish."""
    cursor = connection.execute("SELECT generate_series(1, 3)")
    for (number,) in cursor:
        Outbox().publish(cursor, **NAMES, payload=number)
    assert [row["payload"] for row in rows(connection)] == [1, 2, 3]


def test_publishing_works_inside_the_callers_pipeline(
    connection: psycopg.Connection[Any],
) -> None:
    """A caller in pipeline mode stays in it."""
    with connection.pipeline():
        Outbox().publish(connection, **NAMES, payload=1)
    assert len(rows(connection)) == 1


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (float("nan"), r"payload: nan is no JSON number"),
        ({"a": [1, float("inf")]}, r"payload\.a\[1\]: inf is no JSON number"),
        ({"a": "x\x00y"}, r"payload\.a: holds the character U\+0000"),
        ({"a": {"b": "\ud83d"}}, r"payload\.a\.b: holds a lone surrogate"),
        ({"x\x00": 1}, r"payload: a key: holds the character U\+0000"),
        ({1: 2}, r"payload: the key 1 is no text"),
        ([10**4300], r"payload\[0\]: the integer has more than 4300 digits"),
        ({"a": object()}, r"payload\.a: object is no JSON value"),
        ({"a": datetime(2026, 1, 1, tzinfo=UTC)}, r"payload\.a: datetime is no JSON value"),
        (b"bytes", r"payload: bytes is no JSON value"),
    ],
)
def test_what_cannot_be_carried_is_refused_with_its_path(
    connection: psycopg.Connection[Any], payload: Any, said: str
) -> None:
    """Nothing is written, and the caller's transaction is still sound."""
    with pytest.raises(PublishError, match=said):
        Outbox().publish(connection, **NAMES, payload=payload)
    assert rows(connection) == []


def test_a_payload_that_nests_without_end_is_refused(
    connection: psycopg.Connection[Any],
) -> None:
    """Also one that contains itself."""
    endless: list[Any] = []
    endless.append(endless)

    with pytest.raises(PublishError, match="nested deeper than 100 levels"):
        Outbox().publish(connection, **NAMES, payload=endless)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"aggregate_type": "a.b"}, r"aggregate_type: expected up to 242 letters"),
        ({"aggregate_type": ""}, r"aggregate_type: expected text that is not empty"),
        ({"aggregate_id": ""}, r"aggregate_id: expected text that is not empty"),
        ({"aggregate_id": 7}, r"aggregate_id: expected text that is not empty, got 7"),
        ({"aggregate_id": "a\x00"}, r"aggregate_id: holds the character U\+0000"),
        ({"event_type": None}, r"event_type: expected text"),
        ({"headers": {"a": 1}}, r"headers: expected text for text, got int"),
        ({"headers": {"a": "\ud800"}}, r"headers\.a: holds a lone surrogate"),
    ],
)
def test_names_that_cannot_be_carried_are_refused(
    connection: psycopg.Connection[Any], names: dict[str, Any], said: str
) -> None:
    """Before the database has to."""
    with pytest.raises(PublishError, match=said):
        Outbox().publish(connection, **(NAMES | names), payload=1)


def test_autocommit_without_a_transaction_is_refused(database: str) -> None:
    """The event would be committed apart from the change that it tells of."""
    with connect(database, autocommit=True) as connection:
        with pytest.raises(PublishError, match="autocommit"):
            Outbox().publish(connection, **NAMES, payload=1)
        with connection.transaction():
            Outbox().publish(connection, **NAMES, payload=1)
        assert len(rows(connection)) == 1


def test_a_missing_table_says_what_to_run(empty_database: str) -> None:
    """The usual first mistake."""
    with (
        connect(empty_database) as connection,
        pytest.raises(SchemaError, match="schema apply --target outbox"),
    ):
        Outbox("shop").publish(connection, **NAMES, payload=1)

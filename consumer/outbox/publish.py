"""`Outbox`: write an event's row in the transaction of the change that it tells of."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg
from psycopg import errors, pq
from uuid_utils.compat import uuid7

from consumer.errors import PublishError, SchemaError
from consumer.outbox.payload import check_carried, to_json
from consumer.store.queries import load_queries, with_names

Caller = psycopg.Connection[Any] | psycopg.Cursor[Any]

_QUERIES = load_queries("outbox.sql")
_AGGREGATE_TYPE = re.compile(r"[A-Za-z0-9_-]{1,242}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxEvent:
    """An event to publish; `id` is given only to publish the same event again."""

    aggregate_type: str
    """What kind of thing the event is about; the topic is `outbox.` followed by it."""
    aggregate_id: str
    """Which one; it is the Kafka key, and events of one key keep their order."""
    event_type: str
    payload: Any
    """A pydantic model, a dataclass, or plain JSON."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Extra headers for the consumer, such as a traceparent."""
    id: UUID = field(default_factory=uuid7)


class Outbox:
    """Writes outbox rows through the caller's connection or cursor, and never commits."""

    def __init__(self, schema: str = "public") -> None:
        self._insert = with_names(_QUERIES["insert"], schema=schema)
        self._schema = schema

    def publish(
        self,
        connection: Caller,
        *,
        aggregate_type: str,
        aggregate_id: str,
        event_type: str,
        payload: Any,
        headers: Mapping[str, str] | None = None,
    ) -> UUID:
        """Write one event's row in the caller's transaction and answer its id (a UUIDv7).

        Raises PublishError, before anything is written, when a value cannot be carried to the
        consumer or no transaction is open; errors of the database pass through as psycopg's.
        """
        event = OutboxEvent(
            aggregate_type=aggregate_type,
            aggregate_id=aggregate_id,
            event_type=event_type,
            payload=payload,
            headers=headers or {},
        )
        return self.publish_many(connection, [event])[0]

    def publish_many(self, connection: Caller, events: Iterable[OutboxEvent]) -> list[UUID]:
        """Write the rows of `events`, in their order, and answer their ids; see `publish`."""
        chosen = list(events)
        rows = [_row(event) for event in chosen]
        _check_transaction(connection)
        try:
            _cursor(connection).executemany(self._insert, rows)
        except errors.UndefinedTable:
            raise SchemaError(
                f"there is no outbox table in schema {self._schema!r}; "
                f"run: debezium-inbox schema apply --target outbox"
            ) from None
        return [event.id for event in chosen]


def _row(event: OutboxEvent) -> dict[str, Any]:
    _check_names(event)
    return {
        "id": event.id,
        "aggregate_type": event.aggregate_type,
        "aggregate_id": event.aggregate_id,
        "event_type": event.event_type,
        "payload": to_json(event.payload),
        "headers": _headers(event.headers),
    }


def _check_names(event: OutboxEvent) -> None:
    for name in ("aggregate_type", "aggregate_id", "event_type"):
        value = getattr(event, name)
        if not isinstance(value, str) or not value:
            raise PublishError(f"{name}: expected text that is not empty, got {value!r}")
        check_carried(value, name)
    if not _AGGREGATE_TYPE.fullmatch(event.aggregate_type):
        raise PublishError(
            f"aggregate_type: expected up to 242 letters, digits, '_' and '-' (it becomes part of a "
            f"topic's name), got {event.aggregate_type!r}"
        )


def _headers(headers: Mapping[str, str]) -> str | None:
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise PublishError(f"headers: expected text for text, got {type(value).__name__}")
        check_carried(name, "headers: a name")
        check_carried(value, f"headers.{name}")
    return json.dumps(dict(headers), ensure_ascii=False) if headers else None


def _check_transaction(caller: Caller) -> None:
    connection = caller if isinstance(caller, psycopg.Connection) else caller.connection
    idle = connection.info.transaction_status == pq.TransactionStatus.IDLE
    piped = connection.info.pipeline_status != pq.PipelineStatus.OFF  # BEGIN may still be queued
    if connection.autocommit and idle and not piped:
        raise PublishError(
            "the connection is in autocommit mode and no transaction is open, so the event would be "
            "committed apart from its change; put both in one `with connection.transaction():`"
        )


def _cursor(caller: Caller) -> psycopg.Cursor[Any]:
    """A cursor of our own: the caller's may hold rows that are still to be fetched."""
    connection = caller if isinstance(caller, psycopg.Connection) else caller.connection
    return connection.cursor()

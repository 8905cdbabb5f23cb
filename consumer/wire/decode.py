"""A Kafka record becomes an Event, is passed over with a reason, or cannot be read."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from consumer.errors import DecodeError
from consumer.event import Event, Headers, Record
from consumer.handler import Declaration
from consumer.wire.identity import event_identity
from consumer.wire.payload import read_payload

ID_HEADER = "id"
TYPE_HEADER = "eventType"
AGGREGATE_TYPE_HEADER = "aggregateType"
CREATED_AT_HEADER = "createdAt"
EXTRA_HEADERS_HEADER = "headers"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record that holds nothing for this handler; it is passed over and counted."""

    reason: str


def decode(record: Record, declaration: Declaration) -> Event[Any] | Skipped:
    """Read `record` for a handler with this declaration; raises DecodeError on what cannot be read.

    The body is not looked at when no method takes the event's type.
    """
    headers = dict(record.headers)  # of a repeated name Debezium's own, added last, counts
    written_id = headers.get(ID_HEADER)
    if written_id is None:
        return _without_id(record)
    identity, original = event_identity(written_id)
    event_type = _text(headers.get(TYPE_HEADER), f"header '{TYPE_HEADER}'")
    if not event_type and not declaration.everything:
        raise DecodeError(
            f"no event type: header '{TYPE_HEADER}' is missing or empty, and the handler only has "
            f"@handles methods; add table.fields.additional.placement="
            f"event_type:header:{TYPE_HEADER} to the connector (table.field.event.type has no effect)"
        )
    if not declaration.takes(event_type):
        return Skipped("unhandled_type")
    return Event(
        id=identity,
        original_id=original,
        type=event_type,
        key=_text(record.key, "the key"),
        payload=read_payload(record.value, declaration.payload_adapter(event_type)),
        aggregate_type=_text(
            headers.get(AGGREGATE_TYPE_HEADER), f"header '{AGGREGATE_TYPE_HEADER}'"
        ),
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp=_timestamp(headers.get(CREATED_AT_HEADER), record),
        headers=_expanded(record.headers, headers.get(EXTRA_HEADERS_HEADER)),
    )


def _without_id(record: Record) -> Skipped:
    if (
        record.value is None
    ):  # a deletion mark of a compacted topic; no event of ours has this shape
        return Skipped("tombstone")
    present = [name for name, _ in record.headers]
    problem = "has no value" if ID_HEADER in present else f"is missing (headers: {present})"
    raise DecodeError(
        f"no event id: header '{ID_HEADER}' {problem}; is the EventRouter transform set in the "
        f"connector, and table.field.event.id the outbox's id column?"
    )


def _text(raw: bytes | None, what: str) -> str | None:
    try:
        return None if raw is None else raw.decode("utf-8")
    except UnicodeDecodeError:
        raise DecodeError(f"{what} is not UTF-8") from None


def _timestamp(created_at: bytes | None, record: Record) -> datetime:
    written = _text(created_at, f"header '{CREATED_AT_HEADER}'")
    if written is None:
        return datetime.fromtimestamp(record.timestamp / 1000, UTC)
    try:
        return datetime.fromisoformat(written).astimezone(UTC)
    except (ValueError, OverflowError):
        raise DecodeError(f"header '{CREATED_AT_HEADER}' is not an ISO 8601 time") from None


def _expanded(headers: Headers, packed: bytes | None) -> Headers:
    """The record's headers, with the outbox's own `headers` column unpacked into single ones."""
    if packed is None:
        return tuple(h for h in headers if h[0] != EXTRA_HEADERS_HEADER)
    try:
        extra = json.loads(packed)
    except ValueError:
        extra = None
    if not isinstance(extra, dict):  # somebody else's header of that name
        return tuple(headers)
    others = tuple(h for h in headers if h[0] != EXTRA_HEADERS_HEADER)
    return others + tuple((name, _header_text(value).encode()) for name, value in extra.items())


def _header_text(value: Any) -> str:
    """What `Outbox` wrote is text; anything else came from another hand, and stays JSON."""
    return value if isinstance(value, str) else json.dumps(value)

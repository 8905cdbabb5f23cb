"""One event as a handler sees it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar
from uuid import UUID

Payload = TypeVar("Payload")

Headers = Sequence[tuple[str, bytes | None]]
"""Kafka record headers in the order they were added; a name may stand there more than once."""


@dataclass(frozen=True, slots=True)
class Event(Generic[Payload]):
    """A decoded outbox event; `Event[OrderPlaced]` has a validated OrderPlaced as its payload."""

    id: UUID
    """The identity for deduplication: the same event has the same id however it was written."""
    original_id: str
    """The id as it was written in the record's header."""
    type: str | None
    key: str | None
    """The aggregate's id; events of one key are applied in order. None: the record has no key."""
    payload: Payload
    aggregate_type: str | None
    topic: str
    partition: int
    offset: int
    timestamp: datetime
    """When the outbox row was written (header `createdAt`), else the Kafka record's time; in UTC."""
    headers: Headers

    def header(self, name: str) -> bytes | None:
        """The last value of header `name`, or None."""
        return last_header(self.headers, name)


class Placed(Protocol):
    """What has a place in Kafka."""

    @property
    def topic(self) -> str: ...  # noqa: D102  # Kafka's own words
    @property
    def partition(self) -> int: ...  # noqa: D102
    @property
    def offset(self) -> int: ...  # noqa: D102


class Record(Placed, Protocol):
    """The parts of a Kafka record that an event is made of."""

    @property
    def timestamp(self) -> int: ...  # noqa: D102
    @property
    def key(self) -> bytes | None: ...  # noqa: D102
    @property
    def value(self) -> bytes | None: ...  # noqa: D102
    @property
    def headers(self) -> Headers: ...  # noqa: D102


def last_header(headers: Headers, name: str) -> bytes | None:
    """The value of the last header called `name`: Debezium adds, so a repeated name's last one wins."""
    for key, value in reversed(headers):
        if key == name:
            return value
    return None


def place(record: Placed) -> str:
    """Where a record or an event stands, as `topic/partition@offset`."""
    return f"{record.topic}/{record.partition}@{record.offset}"

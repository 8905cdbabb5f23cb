"""Events and records as tests need them, with defaults for what a test does not speak of."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from consumer import Event
from consumer.event import Headers


@dataclass(frozen=True)
class ARecord:
    """A Kafka record."""

    topic: str = "outbox.order"
    partition: int = 0
    offset: int = 0
    timestamp: int = 1_767_225_600_000
    key: bytes | None = b"o-1"
    value: bytes | None = b'{"a": 1}'
    headers: Headers = field(
        default_factory=lambda: headers(id=str(uuid4()), eventType="OrderPlaced")
    )


def headers(**texts: str | bytes | None) -> Headers:
    """Kafka headers from texts."""
    return [
        (name, value.encode() if isinstance(value, str) else value) for name, value in texts.items()
    ]


def an_event(**facts: Any) -> Event[Any]:
    """An event."""
    identity = uuid4()
    defaults: dict[str, Any] = {
        "id": identity,
        "original_id": str(identity),
        "type": "OrderPlaced",
        "key": "o-1",
        "payload": {"a": 1},
        "aggregate_type": "order",
        "topic": "outbox.order",
        "partition": 0,
        "offset": 0,
        "timestamp": datetime(2026, 1, 1, tzinfo=UTC),
        "headers": (),
    }
    return Event(**(defaults | facts))

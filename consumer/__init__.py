"""Consume Debezium's outbox events in Python: each effect once, in order, whatever crashes."""

from consumer.engine.consumer import Consumer
from consumer.event import Event
from consumer.handler import EventHandler, handles
from consumer.outbox.publish import Outbox, OutboxEvent
from consumer.settings import Settings
from consumer.version import __version__

__all__ = [
    "Consumer",
    "Event",
    "EventHandler",
    "Outbox",
    "OutboxEvent",
    "Settings",
    "__version__",
    "handles",
]

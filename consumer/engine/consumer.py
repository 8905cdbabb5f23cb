"""`Consumer`: one handler, one inbox, one member of a Kafka group."""

import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from consumer.engine.loop import Loop
from consumer.engine.telemetry import Telemetry
from consumer.handler import EventHandler
from consumer.kafka import KafkaBroker
from consumer.settings import Settings, load_settings, required_url
from consumer.store.inbox import PostgresInbox

_WAIT_FOR_TOPIC_S = 1.0


class Consumer:
    """Runs a handler: every event takes effect once and in order, whatever crashes."""

    def __init__(self, handler: EventHandler, settings: Settings | None = None) -> None:
        self._handler = handler
        self._settings = settings or load_settings()
        self._telemetry = Telemetry(handler.consumer)
        self._stopping = threading.Event()

    def run(self) -> None:
        """Consume until `stop`, SIGTERM or SIGINT; the batch in hand is finished first.

        Transient trouble of Postgres and Kafka is waited out once running. Raises ConfigurationError
        and UnavailableError at the start, and PoisonError in front of an event that cannot be
        applied; then nothing is lost, and a new start begins with that event.
        """
        settings, handler = self._settings, self._handler
        url = required_url(settings, "database_url")
        group_id = settings.group_id or handler.consumer
        with (
            _stopped_by_signals(self),
            PostgresInbox(url, settings.db_schema, handler.consumer) as inbox,
            KafkaBroker(
                settings.kafka_bootstrap_servers,
                group_id,
                handler.topics,
                settings.group_instance_id,
            ) as broker,
        ):
            inbox.require_current_schema()
            self._await_topics(broker)
            broker.subscribe()
            self._telemetry.started(group_id, _shown(handler))
            Loop(
                handler,
                broker,
                inbox,
                most=settings.max_batch_events,
                telemetry=self._telemetry,
                stopping=self._stopping,
            ).run()
        self._telemetry.stopped()

    def stop(self) -> None:
        """Ask `run` to end after the batch in hand; safe from any thread and from a signal handler."""
        self._stopping.set()

    def _await_topics(self, broker: KafkaBroker) -> None:
        while missing := broker.missing_topics():
            if not self._settings.wait_for_topic:
                raise broker.topic_missing_error(missing[0])
            self._telemetry.waiting_for_topics(missing)
            if self._stopping.wait(_WAIT_FOR_TOPIC_S):
                return


def _shown(handler: EventHandler) -> str:
    topics = handler.topics
    return topics.pattern if isinstance(topics, re.Pattern) else ", ".join(topics)


@contextmanager
def _stopped_by_signals(consumer: Consumer) -> Iterator[None]:
    """SIGTERM and SIGINT stop the consumer; a second one has its usual effect at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def restore() -> None:
        for number, action in usual.items():
            signal.signal(number, action)

    def stop(_number: int, _frame: FrameType | None) -> None:
        restore()
        consumer.stop()

    for number in usual:
        signal.signal(number, stop)
    try:
        yield
    finally:
        restore()

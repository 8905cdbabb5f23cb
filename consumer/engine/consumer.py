"""`Consumer`: one handler, one inbox, one member of a Kafka group."""

import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import FrameType

from consumer.engine.lane import BatchBounds, Lane
from consumer.engine.lanes import Lanes
from consumer.engine.loop import Loop, LoopBounds
from consumer.engine.room import Room
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
        """Consume until `stop`, SIGTERM or SIGINT; the batches in hand are finished first.

        Transient trouble of Postgres and Kafka is waited out once running. Raises ConfigurationError
        and UnavailableError at the start, and PoisonError in front of an event that cannot be
        applied; then nothing is lost, and a new start begins with that event.
        """
        self._run(until_idle=False)

    def run_until_idle(self) -> None:
        """Consume until the ends of the topics are reached and all is applied; else as `run`.

        For jobs and tests. The ends are those of the moment when there is nothing left to do.
        """
        self._run(until_idle=True)

    def stop(self) -> None:
        """Ask `run` to end after the batches in hand; safe from any thread and from a signal handler."""
        self._stopping.set()

    def _run(self, *, until_idle: bool) -> None:
        settings, handler = self._settings, self._handler
        group_id = settings.group_id or handler.consumer
        with (
            _stopped_by_signals(self),
            ExitStack() as inboxes,
            KafkaBroker(
                settings.kafka_bootstrap_servers,
                group_id,
                handler.topics,
                settings.group_instance_id,
                revoke_timeout_s=settings.revoke_timeout_ms / 1000,
            ) as broker,
        ):
            inbox = self._inbox(inboxes)
            inbox.require_current_schema()
            self._await_topics(broker)
            lanes = Lanes(_room(settings), partial(self._lane, inboxes), settings.lanes)
            self._telemetry.started(group_id, _shown(handler))
            Loop(
                handler,
                broker,
                inbox,
                lanes,
                bounds=LoopBounds(settings.max_batch_events, settings.shutdown_timeout_ms / 1000),
                telemetry=self._telemetry,
                stopping=self._stopping,
                until_idle=until_idle,
            ).run()
        self._telemetry.stopped()

    def _lane(
        self,
        inboxes: ExitStack,
        number: int,
        room: Room,
        on_failure: Callable[[BaseException], None],
    ) -> Lane:
        settings = self._settings
        bounds = BatchBounds(
            settings.max_batch_events, settings.max_batch_bytes, settings.linger_ms / 1000
        )
        return Lane(
            number,
            self._handler,
            self._inbox(inboxes),
            room,
            bounds=bounds,
            telemetry=self._telemetry,
            on_failure=on_failure,
        )

    def _inbox(self, inboxes: ExitStack) -> PostgresInbox:
        settings = self._settings
        url = required_url(settings, "database_url")
        return inboxes.enter_context(PostgresInbox(url, settings.db_schema, self._handler.consumer))

    def _await_topics(self, broker: KafkaBroker) -> None:
        while missing := broker.missing_topics():
            if not self._settings.wait_for_topic:
                raise broker.topic_missing_error(missing[0])
            self._telemetry.waiting_for_topics(missing)
            if self._stopping.wait(_WAIT_FOR_TOPIC_S):
                return


def _room(settings: Settings) -> Room:
    """Two batches a lane wait while one is in hand, so that no lane waits for a poll."""
    batches = 3 * settings.lanes
    return Room(batches * settings.max_batch_events, batches * settings.max_batch_bytes)


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

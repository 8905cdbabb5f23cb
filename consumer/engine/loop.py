"""The engine's story: place partitions, poll, decode into the lanes, commit offsets of what is done."""

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import psycopg

from consumer.engine.assignments import Assignments
from consumer.engine.backoff import Backoff
from consumer.engine.classify import Failure, classify
from consumer.engine.dispatch import Dispatcher
from consumer.engine.lanes import Lanes
from consumer.engine.poison import database_refused_error
from consumer.engine.telemetry import Telemetry
from consumer.errors import PositionError, UnavailableError
from consumer.handler import EventHandler
from consumer.ports import Broker, Inbox, Partition, Polled

POLL_S = 0.25
COMMIT_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class LoopBounds:
    """What the loop takes at a time, and how long its end may last."""

    poll_events: int
    shutdown_s: float


class Loop:
    """Keeps one member of the group alive and its lanes fed; it runs on the thread that calls `run`."""

    def __init__(
        self,
        handler: EventHandler,
        broker: Broker,
        inbox: Inbox,
        lanes: Lanes,
        *,
        bounds: LoopBounds,
        telemetry: Telemetry,
        stopping: threading.Event,
        until_idle: bool = False,
    ) -> None:
        self._broker, self._inbox, self._lanes = broker, inbox, lanes
        self._bounds, self._telemetry, self._stopping = bounds, telemetry, stopping
        self._until_idle = until_idle
        self._dispatcher = Dispatcher(handler.declaration, lanes)
        self._assignments = Assignments(lanes)
        self._commit_at = time.monotonic()
        self._paused = False
        self._backoff = Backoff()

    def run(self) -> None:
        """Consume until told to stop; wait out what heals by itself, raise what does not."""
        self._lanes.start()
        self._broker.subscribe(self._assignments)
        try:
            while not self._stopping.is_set():
                self._raise_failure_of_a_lane()
                self._step_or_wait()
        finally:
            self._finish()
        self._raise_failure_of_a_lane()

    def _step_or_wait(self) -> None:
        try:
            self._step()
        except Exception as error:  # noqa: BLE001  # told apart here
            if self._failure(error) is not Failure.TRANSIENT:
                raise _for_a_person(error)  # noqa: B904  # it names its cause
            self._wait_out(error)

    def _step(self) -> None:
        if not self._backoff.waiting:
            self._place(self._broker.unplaced())
            self._commit_if_due()
            self._backoff.reset()
        self._dispatch(self._poll())
        self._press_back()
        self._stop_when_there_is_no_more()

    def _place(self, partitions: Iterable[Partition]) -> None:
        """Start partitions that are new here where the inbox's positions say."""
        if not partitions:
            return
        positions = self._inbox.positions(partitions)
        self._check_log_reaches(positions)
        committed = self._broker.committed(partitions)
        start = {**committed, **positions}
        self._assignments.add(start, committed)
        self._broker.start_at(start)
        self._telemetry.partitions_placed(committed, positions)

    def _check_log_reaches(self, positions: Mapping[Partition, int]) -> None:
        """A log that ends before the position has lost records, and new ones would be passed over."""
        for partition, end in self._broker.end_offsets(positions).items():
            if end < positions[partition]:
                raise PositionError(
                    f"{partition} ends at offset {end}, before the inbox's position "
                    f"{positions[partition]}: the topic lost records; find out which, then delete "
                    f"the partition's row in consumer_positions"
                )

    def _poll(self) -> Polled:
        return self._broker.poll(0 if self._paused else POLL_S, self._bounds.poll_events)

    def _dispatch(self, polled: Polled) -> None:
        for partition, records in polled.items():
            if self._dispatcher.poison is None:
                skipped = self._dispatcher.dispatch(self._assignments.of(partition), records)
                self._telemetry.records_skipped(skipped)

    def _press_back(self) -> None:
        """Take no more while the lanes are full; a full queue is waited for before Kafka is told."""
        room = self._lanes.room
        room.wait(POLL_S, half_free=self._paused)
        if room.full and not self._paused:
            self._broker.pause()
            self._paused = True
        elif self._paused and room.half_free:
            self._broker.resume()
            self._paused = False

    def _commit_if_due(self) -> None:
        if time.monotonic() >= self._commit_at:
            self._raise_positions(self._assignments.behind(only_idle=True))
            self._commit()

    def _raise_positions(self, behind: Mapping[Partition, int]) -> None:
        """Store positions that stayed behind: lanes overtook each other, or records were skipped."""
        if behind:
            self._inbox.raise_positions(behind)
            self._assignments.stored(behind)

    def _commit(self) -> None:
        done = self._assignments.to_commit()
        if done:
            self._broker.commit(done)
            self._assignments.committed(done)
        self._commit_at = time.monotonic() + COMMIT_EVERY_S

    def _stop_when_there_is_no_more(self) -> None:
        """In front of a record that cannot be read, or, when asked to, at the topics' ends."""
        if not self._assignments.idle:
            return
        if self._dispatcher.poison:
            raise self._dispatcher.poison
        if self._until_idle and self._broker.at_end():
            self._stopping.set()

    def _raise_failure_of_a_lane(self) -> None:
        failure = self._lanes.failure
        if isinstance(failure, Exception):
            raise _for_a_person(failure)
        if failure is not None:  # SystemExit and the like: what the handler wants is done
            raise failure

    def _wait_out(self, error: Exception) -> None:
        pause_s = self._backoff.begin()
        self._telemetry.transient_failure(error, self._backoff.tries, pause_s)
        if isinstance(error, UnavailableError):
            self._stopping.wait(pause_s)

    def _finish(self) -> None:
        """End the lanes, and write down how far they came; what fails here costs a redelivery."""
        if not self._lanes.stop(self._bounds.shutdown_s):
            self._telemetry.cut_off(self._bounds.shutdown_s)
        try:
            self._raise_positions(self._assignments.behind(only_idle=False))
            self._commit()
        except Exception as error:  # noqa: BLE001
            self._telemetry.not_written_down(error)

    def _failure(self, error: BaseException) -> Failure:
        return classify(error, connection_broken=self._inbox.broken)


def _for_a_person(error: Exception) -> Exception:
    """The error in words for who has to mend it."""
    failure = classify(error, connection_broken=False)
    if not isinstance(error, psycopg.Error) or failure is not Failure.MISCONFIGURATION:
        return error
    refused = database_refused_error(error)
    refused.__cause__ = error
    return refused

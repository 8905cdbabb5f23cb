"""The engine's story: place partitions, poll, decode, apply in one transaction, commit the offset."""

import threading
import time
from collections.abc import Iterable, Mapping

import psycopg

from consumer.engine.apply import Applied, apply_batch
from consumer.engine.backoff import Backoff
from consumer.engine.batch import Batch, read_batch
from consumer.engine.classify import Failure, classify
from consumer.engine.poison import database_refused_error, poison_error
from consumer.engine.telemetry import Telemetry
from consumer.errors import PositionError, UnavailableError
from consumer.handler import EventHandler
from consumer.ports import Broker, Inbox, Partition

POLL_S = 0.25


class Loop:
    """One handler's loop over one broker and one inbox; it runs on the thread that calls `run`."""

    def __init__(
        self,
        handler: EventHandler,
        broker: Broker,
        inbox: Inbox,
        *,
        most: int,
        telemetry: Telemetry,
        stopping: threading.Event,
    ) -> None:
        self._handler, self._broker, self._inbox = handler, broker, inbox
        self._most, self._telemetry, self._stopping = most, telemetry, stopping
        self._backoff = Backoff()

    def run(self) -> None:
        """Consume until told to stop; wait out what heals by itself, raise what does not."""
        while not self._stopping.is_set():
            try:
                self._step()
            except Exception as error:  # noqa: BLE001  # the one place where failures are told apart
                self._wait_out(error)

    def _step(self) -> None:
        self._place(self._broker.unplaced())
        batch = read_batch(self._broker.poll(POLL_S, self._most), self._handler.declaration)
        if batch.next_offsets:
            applied = self._apply(batch)
            self._broker.commit(batch.next_offsets)
            self._telemetry.batch_applied(applied, batch.skipped)
            self._backoff.reset()
        if batch.poison:
            raise batch.poison

    def _place(self, partitions: Iterable[Partition]) -> None:
        """Start partitions that are new here where the inbox's positions say."""
        if not partitions:
            return
        positions = self._inbox.positions(partitions)
        self._check_log_reaches(positions)
        committed = self._broker.committed(partitions)
        self._broker.start_at({**committed, **positions})
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

    def _apply(self, batch: Batch) -> Applied:
        try:
            return apply_batch(self._inbox, self._handler, batch)
        except Exception as error:
            if self._failure(error) is not Failure.PERMANENT:
                raise
        return self._apply_singly(batch)

    def _apply_singly(self, batch: Batch) -> Applied:
        """Apply the events one by one: good ones take effect, and the first bad one is found."""
        total = Applied()
        for single in batch.singles():
            try:
                total += apply_batch(self._inbox, self._handler, single)
            except Exception as error:
                if self._failure(error) is not Failure.PERMANENT or not single.events:
                    raise
                raise poison_error(single.events[0][1], self._handler, error) from error
            self._broker.commit(single.next_offsets)
        return total

    def _failure(self, error: BaseException) -> Failure:
        return classify(error, connection_broken=self._inbox.broken)

    def _wait_out(self, error: Exception) -> None:
        """Hold the partitions and keep the group alive until the database answers; else raise."""
        while self._failure(error) is Failure.TRANSIENT:
            pause_s = self._backoff.next_pause_s()
            self._telemetry.transient_failure(error, self._backoff.tries, pause_s)
            self._broker.hold()
            self._keep_group_alive(pause_s)
            if self._stopping.is_set():
                return
            try:
                self._inbox.probe()
            except Exception as next_error:  # noqa: BLE001  # told apart at the loop's head
                error = next_error
            else:
                return
        if isinstance(error, psycopg.Error) and self._failure(error) is Failure.MISCONFIGURATION:
            raise database_refused_error(error) from error
        raise error

    def _keep_group_alive(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self._stopping.is_set() and (left := until - time.monotonic()) > 0:
            try:
                self._broker.poll(min(left, POLL_S), self._most)
            except UnavailableError:  # Kafka is away too: nothing to keep alive for now
                self._stopping.wait(min(left, POLL_S))

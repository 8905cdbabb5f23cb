"""A lane: a worker thread with a connection of its own, which applies its keys' events in order."""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from consumer.engine.apply import Applied, apply_batch
from consumer.engine.assignment import Assignment
from consumer.engine.backoff import Backoff
from consumer.engine.batch import Batch, Taken
from consumer.engine.classify import Failure, classify
from consumer.engine.poison import poison_error
from consumer.engine.room import Room
from consumer.engine.telemetry import Telemetry
from consumer.handler import EventHandler
from consumer.ports import Inbox


@dataclass(frozen=True, slots=True)
class BatchBounds:
    """How large a batch may become, and how long it may wait for more."""

    events: int
    size: int
    """In bytes of the records' keys, values and headers; one event may be larger."""
    linger_s: float


class Lane:
    """Applies what it is given, batch by batch, until it is stopped or fails for good."""

    def __init__(
        self,
        number: int,
        handler: EventHandler,
        inbox: Inbox,
        room: Room,
        *,
        bounds: BatchBounds,
        telemetry: Telemetry,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._handler, self._inbox, self._room = handler, inbox, room
        self._bounds, self._telemetry, self._on_failure = bounds, telemetry, on_failure
        self._waiting: deque[Taken] = deque()
        self._in_hand: list[Taken] = []
        self._running: Batch | None = None
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._backoff = Backoff()
        self.thread = threading.Thread(target=self._run, name=f"lane-{number}", daemon=True)

    def give(self, taken: Iterable[Taken]) -> None:
        """Queue events, in order."""
        with self._changed:
            self._waiting.extend(taken)
            self._changed.notify()

    def stop(self) -> None:
        """End after the batch in hand; what is queued stays undone."""
        self._stopping.set()
        with self._changed:
            self._changed.notify()

    def works_for(self, assignments: Iterable[Assignment]) -> bool:
        """Whether a transaction runs that has an event of one of these."""
        with self._changed:
            return self._running is not None and self._running.concerns(assignments)

    def cut(self) -> None:
        """Roll back the batch in hand by breaking the connection."""
        self._inbox.cut()

    def _run(self) -> None:
        try:
            while batch := self._next_batch():
                self._apply(batch)
        except BaseException as error:  # noqa: BLE001  # the loop's thread raises it
            self._on_failure(error)
        finally:
            self._put_down()
            self._inbox.close()

    def _next_batch(self) -> Batch | None:
        """The next events in hand; None when the lane is stopped."""
        self._put_down()
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._stopping.is_set())
            self._linger()
            if self._stopping.is_set():
                return None
            self._take_in_hand()
            return Batch(self._in_hand)

    def _linger(self) -> None:
        if self._bounds.linger_s:
            enough = self._bounds.events
            self._changed.wait_for(
                lambda: len(self._waiting) >= enough or self._stopping.is_set(),
                self._bounds.linger_s,
            )

    def _take_in_hand(self) -> None:
        size = 0
        while self._waiting and len(self._in_hand) < self._bounds.events:
            size += self._waiting[0].size
            if self._in_hand and size > self._bounds.size:
                return
            self._in_hand.append(self._waiting.popleft())

    def _put_down(self) -> None:
        with self._changed:
            done, self._in_hand, self._running = self._in_hand, [], None
        self._room.add(-len(done), -sum(each.size for each in done))

    def _apply(self, batch: Batch) -> None:
        """Apply the batch, however long Postgres is away; events of revoked partitions are dropped."""
        while not self._stopping.is_set() and (pending := self._begin(batch)).taken:
            try:
                self._telemetry.batch_applied(self._apply_or_find_the_bad_one(pending))
                self._backoff.reset()
            except Exception as error:  # noqa: BLE001  # told apart in `_wait_out`
                self._running = None
                self._wait_out(error)

    def _begin(self, batch: Batch) -> Batch:
        """What is left to do of the batch; from here on a revocation waits for it."""
        with self._changed:
            self._running = batch.pending()
            return self._running

    def _apply_or_find_the_bad_one(self, batch: Batch) -> Applied:
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
                if self._failure(error) is not Failure.PERMANENT:
                    raise
                raise poison_error(single.taken[0].event, self._handler, error) from error
        return total

    def _wait_out(self, error: Exception) -> None:
        """Wait until the database answers; raise what does not heal."""
        while self._failure(error) is Failure.TRANSIENT:
            pause_s = self._backoff.next_pause_s()
            self._telemetry.transient_failure(error, self._backoff.tries, pause_s)
            if self._stopping.wait(pause_s):
                return
            try:
                self._inbox.probe()
            except Exception as next_error:  # noqa: BLE001  # told apart at the loop's head
                error = next_error
            else:
                return
        raise error

    def _failure(self, error: BaseException) -> Failure:
        return classify(error, connection_broken=self._inbox.broken)

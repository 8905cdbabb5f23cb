"""The lanes together: which one a key belongs to, how full they are, and their end."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from zlib import crc32

from consumer.engine.assignment import Assignment
from consumer.engine.batch import Taken
from consumer.engine.lane import Lane
from consumer.engine.room import Room

_AFTER_CUT_S = 1.0


class Lanes:
    """One or more lanes; events of one key go to the same one, in order."""

    def __init__(
        self,
        room: Room,
        make: Callable[[int, Room, Callable[[BaseException], None]], Lane],
        count: int,
    ) -> None:
        self.room = room
        self.failure: BaseException | None = None
        """Why a lane has ended; the first one's reason."""
        self._lanes: Sequence[Lane] = [make(number, room, self._failed) for number in range(count)]

    def start(self) -> None:
        """Start the threads."""
        for lane in self._lanes:
            lane.thread.start()

    def give(self, taken: Sequence[Taken]) -> None:
        """Queue events of one partition, in offset order."""
        self.room.add(len(taken), sum(each.size for each in taken))
        if len(self._lanes) == 1:
            self._lanes[0].give(taken)
            return
        by_lane: dict[int, list[Taken]] = defaultdict(list)
        for each in taken:
            by_lane[_hash(each) % len(self._lanes)].append(each)
        for number, own in by_lane.items():
            self._lanes[number].give(own)

    def let_go(self, assignments: Iterable[Assignment]) -> None:
        """Drop what is queued of these partitions; what runs may finish."""
        for each in assignments:
            each.revoked = True

    def work_for(self, assignments: Sequence[Assignment]) -> bool:
        """Whether a transaction runs that has an event of one of these."""
        return any(lane.works_for(assignments) for lane in self._lanes)

    def cut(self, assignments: Sequence[Assignment]) -> None:
        """Roll back what runs for these."""
        for lane in self._lanes:
            if lane.works_for(assignments):
                lane.cut()

    def stop(self, patience_s: float) -> bool:
        """End after the batches in hand; answer whether all ended in time, without being cut."""
        for lane in self._lanes:
            lane.stop()
        if self._ended_within(patience_s):
            return True
        for lane in self._alive():
            lane.cut()
        self._ended_within(_AFTER_CUT_S)
        return False

    def _ended_within(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        for lane in self._alive():
            lane.thread.join(max(0.0, until - time.monotonic()))
        return not self._alive()

    def _alive(self) -> list[Lane]:
        return [lane for lane in self._lanes if lane.thread.is_alive()]

    def _failed(self, error: BaseException) -> None:
        if self.failure is None:
            self.failure = error


def _hash(taken: Taken) -> int:
    """Stable; events without a key keep their partition's order."""
    event = taken.event
    return crc32((event.key if event.key is not None else f"/{event.partition}").encode())

"""How far one partition has come while this member has it: taken, done, and the contiguous prefix."""

import threading
from collections import deque
from collections.abc import Collection, Iterable

from consumer.ports import Partition


class Assignment:
    """One stay of a partition with this member; when the partition comes back it gets a new one.

    Lanes finish events in any order. Positions and offsets go up only to `next_offset`, the end of
    the contiguous prefix that is done. Holes in the offsets, of transaction markers or compaction,
    are no part of it: only what was delivered counts.
    """

    def __init__(self, partition: Partition, next_offset: int) -> None:
        self.partition, self.next_offset = partition, next_offset
        self.revoked = False
        """The partition is another member's, or nobody's, from now on."""
        self.stored = next_offset
        """How far the inbox's position is known to be."""
        self._taken: deque[int] = deque()
        self._done: set[int] = set()
        self._lock = threading.Lock()

    @property
    def idle(self) -> bool:
        """Whether all that was taken is done."""
        return not self._taken

    def take(self, offset: int) -> None:
        """A record was delivered, the next one of this partition."""
        with self._lock:
            self._taken.append(offset)

    def finish(self, offsets: Iterable[int], stored: int = 0) -> None:
        """These are done, and the inbox's position is at `stored` or beyond."""
        with self._lock:
            self._done.update(each for each in offsets if each >= self.next_offset)
            self.stored = max(self.stored, stored)
            while self._taken and self._taken[0] in self._done:
                offset = self._taken.popleft()
                self._done.remove(offset)
                self.next_offset = offset + 1

    def awaits(self, offset: int) -> bool:
        """Whether this member still has to apply the event at `offset`."""
        with self._lock:
            return not self.revoked and offset >= self.next_offset and offset not in self._done

    def reach(self, offsets: Collection[int]) -> int:
        """How far the contiguous prefix goes once these are done, too."""
        with self._lock:
            reached = self.next_offset
            for offset in self._taken:
                if offset not in self._done and offset not in offsets:
                    break
                reached = offset + 1
            return reached

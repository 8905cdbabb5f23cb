"""How much may wait for the lanes: the bound on memory that pauses partitions."""

import threading


class Room:
    """Counts the events and bytes that were polled and are not done yet."""

    def __init__(self, events: int, size: int) -> None:
        self._most_events, self._most_bytes = events, size
        self._events = self._bytes = 0
        self._changed = threading.Condition()

    @property
    def full(self) -> bool:
        """Whether no more should be polled."""
        return self._events >= self._most_events or self._bytes >= self._most_bytes

    @property
    def half_free(self) -> bool:
        """Whether enough was done since it was full."""
        return 2 * self._events <= self._most_events and 2 * self._bytes <= self._most_bytes

    def add(self, events: int, size: int) -> None:
        """So much came, or, with negative numbers, is done."""
        with self._changed:
            self._events += events
            self._bytes += size
            self._changed.notify_all()

    def wait(self, seconds: float, *, half_free: bool) -> None:
        """Wait until it is not full, or even half free; at most so long."""
        with self._changed:
            self._changed.wait_for(lambda: self.half_free if half_free else not self.full, seconds)

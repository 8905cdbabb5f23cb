"""How long to wait before the next try."""

import random
import time
from dataclasses import dataclass

FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 30.0


@dataclass(slots=True)
class Backoff:
    """Exponential pauses with jitter: between half of and the whole of 0.2, 0.4, 0.8 … 30 seconds."""

    tries: int = 0
    _until: float = 0.0

    @property
    def waiting(self) -> bool:
        """Whether the pause that was begun last is not over."""
        return time.monotonic() < self._until

    def begin(self) -> float:
        """Begin the next pause; answer its seconds."""
        pause_s = self.next_pause_s()
        self._until = time.monotonic() + pause_s
        return pause_s

    def next_pause_s(self) -> float:
        """Seconds to wait before the next try."""
        whole: float = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(self.tries, 16))
        self.tries += 1
        return whole * random.uniform(0.5, 1.0)  # noqa: S311  # jitter, no secret

    def reset(self) -> None:
        """Start over, after a success."""
        self.tries = 0

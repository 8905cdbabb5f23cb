"""How long to wait before the next try."""

import random
from dataclasses import dataclass

FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 30.0


@dataclass(slots=True)
class Backoff:
    """Exponential pauses with jitter: between half of and the whole of 0.2, 0.4, 0.8 … 30 seconds."""

    tries: int = 0

    def next_pause_s(self) -> float:
        """Seconds to wait before the next try."""
        whole: float = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** min(self.tries, 16))
        self.tries += 1
        return whole * random.uniform(0.5, 1.0)  # noqa: S311  # jitter, no secret

    def reset(self) -> None:
        """Start over, after a success."""
        self.tries = 0

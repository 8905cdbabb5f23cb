"""What each contestant prints at its end: one line of JSON that the runner reads."""

import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

EFFECT = (
    "INSERT INTO totals AS t (customer, orders, amount) VALUES (%s, 1, %s) "
    "ON CONFLICT (customer) DO UPDATE SET orders = t.orders + 1, amount = t.amount + EXCLUDED.amount"
)
EFFECT_OF_MANY = (
    "INSERT INTO totals AS t (customer, orders, amount) "
    "SELECT customer, count(*), sum(amount) "
    "FROM unnest(%s::text[], %s::bigint[]) AS new (customer, amount) "
    "GROUP BY customer ORDER BY customer "
    "ON CONFLICT (customer) DO UPDATE "
    "SET orders = t.orders + EXCLUDED.orders, amount = t.amount + EXCLUDED.amount"
)


@dataclass
class Report:
    """When the work began, and how much was done by when (seconds of the epoch)."""

    began: float = 0.0
    done: list[tuple[float, int]] = field(default_factory=list)
    rss_mb: float = 0.0

    def begin(self) -> None:
        """Work begins; only the first call counts."""
        self.began = self.began or time.time()

    def count(self, events: int) -> None:
        """So many more events were committed just now."""
        self.done.append((time.time(), events))

    def print(self) -> None:
        """End."""
        self.rss_mb = _most_memory_mb()
        print(json.dumps(asdict(self)))


def _most_memory_mb() -> float:
    """The most memory that was resident; getrusage() would count the parent's, too."""
    [line] = [
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmHWM:")
    ]
    return int(line.split()[1]) / 1024

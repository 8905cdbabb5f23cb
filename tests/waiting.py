"""Wait for a condition instead of sleeping."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")
_POLL_S = 0.02


def until(condition: Callable[[], Found], what: str, timeout_s: float = 30.0) -> Found:
    """Answer the condition's first true value; fail with `what` when there is none in time."""
    deadline = time.monotonic() + timeout_s
    pause = threading.Event()
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s} s in vain for {what}; last: {found!r}")
        pause.wait(_POLL_S)
    return found

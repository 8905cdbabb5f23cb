"""No test leaves a thread behind."""

import threading
from collections.abc import Iterator

import pytest

from tests.waiting import until


@pytest.fixture(autouse=True)
def _no_thread_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Threads that a test started end with it; those of session fixtures were there before."""
    before = set(threading.enumerate())
    yield
    until(
        lambda: not (set(threading.enumerate()) - before),
        f"threads of {request.node.name} to end",
        timeout_s=10,
    )

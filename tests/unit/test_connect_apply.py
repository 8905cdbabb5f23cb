"""What counts as running and as failed, while Connect may still tell of the task before."""

import pytest

from consumer.connect.apply import Sight, has_failed, is_running
from consumer.connect.client import ConnectorStatus, TaskStatus


def seen(
    *tasks: str, holder: int | None = None, trace: str = "why", state: str = "RUNNING"
) -> Sight:
    """A connector whose tasks are in these states."""
    found = tuple(TaskStatus(task, "w", trace if task == "FAILED" else "") for task in tasks)
    return Sight(ConnectorStatus(state, "", found), holder)


NOTHING = Sight(None, None)
RUNS, FAILED = seen("RUNNING", holder=1), seen("FAILED")


@pytest.mark.parametrize(
    ("now", "before", "settled", "failed"),
    [
        (FAILED, NOTHING, False, True),
        (FAILED, RUNS, False, True),
        (FAILED, FAILED, False, False),  # the task that the new config is to mend
        (FAILED, FAILED, True, True),
        (seen("FAILED", trace="another"), FAILED, False, True),
        (seen(state="FAILED"), NOTHING, False, True),
        (RUNS, FAILED, True, False),
        (NOTHING, NOTHING, True, False),
    ],
)
def test_a_failure_is_the_new_tasks_unless_it_may_be_the_old_ones(
    now: Sight, before: Sight, settled: bool, failed: bool
) -> None:
    """Whoever mends a FAILED connector must not be told of the failure that was mended."""
    assert has_failed(now, before, settled=settled) is failed


@pytest.mark.parametrize(
    ("now", "before", "running"),
    [
        (seen("RUNNING", holder=2), NOTHING, True),
        (seen("RUNNING", holder=2), RUNS, True),
        (seen("RUNNING", holder=1), RUNS, False),  # the old task
        (seen("RUNNING"), NOTHING, False),  # a slot in use elsewhere, or lost
        (seen(holder=2), NOTHING, False),  # no task yet
        (seen("RUNNING", "UNASSIGNED", holder=2), NOTHING, False),
        (seen("RUNNING", holder=2, state="PAUSED"), NOTHING, False),
        (Sight(None, 2), NOTHING, False),
    ],
)
@pytest.mark.parametrize("settled", [True, False])
def test_a_slot_that_is_watched_proves_the_new_task(
    now: Sight, before: Sight, running: bool, settled: bool
) -> None:
    """Held by another walsender than before, and nothing less, however long one waited."""
    assert is_running(now, before, settled=settled, slot_watched=True) is running


def test_without_a_slot_to_watch_running_is_believed_once_it_is_settled() -> None:
    """Connect tells of the old task for a moment."""
    now = seen("RUNNING")

    assert not is_running(now, NOTHING, settled=False, slot_watched=False)
    assert is_running(now, NOTHING, settled=True, slot_watched=False)
    assert not is_running(FAILED, NOTHING, settled=True, slot_watched=False)

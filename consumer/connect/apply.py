"""Apply a connector file: PUT only on difference, then wait until it really runs."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from consumer.connect.client import ConnectClient, ConnectorStatus
from consumer.connect.file import ConnectorFile
from consumer.errors import ConnectorFailedError

READY_WITHIN_S = 60.0
_ASK_EVERY_S = 0.25


class Change(StrEnum):
    """What applying a file did, or would do."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class Plan:
    """The difference between a file and what is deployed."""

    change: Change
    differing: tuple[str, ...]
    """Names of properties that would be added, changed or removed; never their values."""


SlotHolder = Callable[[], int | None]
"""Answers the process id of the server's walsender that holds the connector's slot, or None."""


def plan(client: ConnectClient, file: ConnectorFile) -> Plan:
    """Compare the file with what Connect has."""
    deployed = client.config(file.name)
    if deployed is None:
        return Plan(Change.CREATED, tuple(sorted(file.config)))
    both = deployed.keys() | file.config.keys()
    differing = sorted(key for key in both if deployed.get(key) != file.config.get(key))
    return Plan(Change.UPDATED if differing else Change.UNCHANGED, tuple(differing))


def apply(
    client: ConnectClient,
    file: ConnectorFile,
    *,
    slot_holder: SlotHolder | None = None,
    timeout_s: float = READY_WITHIN_S,
) -> Plan:
    """Make Connect run the file's config; answers what changed.

    Waits until connector and task are RUNNING and, with `slot_holder`, until somebody holds the slot:
    Connect says RUNNING of a task that gets no slot. After a change the old task's RUNNING stays
    visible for a moment, so the slot must be held by another walsender than before.

    Raises ConnectorFailedError with the cause when a task FAILED or nothing runs within the timeout.
    """
    planned = plan(client, file)
    before = slot_holder() if slot_holder else None
    if planned.change is Change.UNCHANGED:
        before = None  # the walsender that holds the slot is the right one
    else:
        client.put_config(file.name, file.config)
    _await_running(client, file.name, slot_holder, before, time.monotonic() + timeout_s)
    return planned


def root_cause(trace: str) -> str:
    """The line of a Java stack trace that says why: the last `Caused by`, else the first line."""
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return causes[-1] if causes else (lines[0] if lines else "no trace")


def _await_running(
    client: ConnectClient,
    name: str,
    slot_holder: SlotHolder | None,
    before: int | None,
    deadline: float,
) -> None:
    while True:
        status = client.status(name)  # None just after creation
        if status and status.failure is not None:
            raise ConnectorFailedError(
                f"connector {name!r} FAILED: {root_cause(status.failure)}; "
                f"`debezium-inbox connector status {name} --trace` shows all"
            )
        held = slot_holder() if slot_holder and status and status.running else None
        if status and status.running and (slot_holder is None or held not in {None, before}):
            return
        if time.monotonic() > deadline:
            raise ConnectorFailedError(_late(name, status, slot_missing=slot_holder is not None))
        time.sleep(_ASK_EVERY_S)


def _late(name: str, status: ConnectorStatus | None, *, slot_missing: bool) -> str:
    if status is None:
        return f"connector {name!r}: Connect does not know it; look at the worker's log"
    if status.running and slot_missing:
        return (
            f"connector {name!r} says RUNNING, but nobody new holds its slot: is the slot in use by "
            f"another connector, or lost? `debezium-inbox slots check` tells"
        )
    tasks = ", ".join(task.state for task in status.tasks) or "no tasks"
    return f"connector {name!r} does not run yet: {status.state}, {tasks}; look at the worker's log"

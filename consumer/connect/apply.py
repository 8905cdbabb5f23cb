"""Apply a connector file: PUT only on difference, then wait until it really runs."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from consumer.connect.client import ConnectClient, ConnectorStatus
from consumer.connect.file import ConnectorFile
from consumer.errors import ConnectorFailedError

READY_WITHIN_S = 60.0
SETTLE_S = 10.0
"""How long after a change Connect may still tell of the task before it: it passes a change on by way
of its topics and a rebalance, and its status has no generation. Seen: 2 s on one busy worker."""

_ASK_EVERY_S = 0.25
_STACK_FRAME = re.compile(r"\tat |\t?\.\.\. \d+ (more|common frames)|Caused by: |\tSuppressed: ")


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


@dataclass(frozen=True, slots=True)
class Sight:
    """What can be seen of a connector at one moment."""

    status: ConnectorStatus | None
    """None just after creation."""
    holder: int | None
    """Who holds the slot; None also when nobody looks."""

    @property
    def failure(self) -> str | None:
        """The trace of what FAILED, or None."""
        return self.status.failure if self.status else None

    @property
    def running(self) -> bool:
        """Whether Connect says that all runs."""
        return self.status is not None and self.status.running


_NOTHING = Sight(None, None)


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

    Waits until connector and task are RUNNING and, with `slot_holder`, until a walsender holds the
    slot, after a change another one than before: that proves the new task. Connect alone says RUNNING
    of a task that gets no slot, and for a moment of the task before the change; without
    `slot_holder` its RUNNING is believed SETTLE_S after the change, which is likely and no proof.

    Raises ConnectorFailedError with the cause when a task FAILED or nothing runs within the timeout.
    """
    planned = plan(client, file)
    before, settle_s = _NOTHING, 0.0
    if planned.change is not Change.UNCHANGED:
        before, settle_s = _look(client, file.name, slot_holder), min(SETTLE_S, timeout_s)
        client.put_config(file.name, file.config)
    _await_running(client, file.name, slot_holder, before, settle_s, timeout_s)
    return planned


def has_failed(now: Sight, before: Sight, *, settled: bool) -> bool:
    """Whether the failure is the new task's: the same trace as before may still be the old one's."""
    return now.failure is not None and (settled or now.failure != before.failure)


def is_running(now: Sight, before: Sight, *, settled: bool, slot_watched: bool) -> bool:
    """Whether the new task runs."""
    proven = now.holder not in {None, before.holder} if slot_watched else settled
    return now.running and proven


def root_cause(trace: str) -> str:
    """What a Java stack trace says of the cause, in one line: the last `Caused by`, else the first."""
    lines = trace.strip("\n").splitlines()
    causes = [number for number, line in enumerate(lines) if line.startswith("Caused by: ")]
    told = lines[causes[-1] :] if causes else lines
    end = (n for n, line in enumerate(told) if n and _STACK_FRAME.match(line))
    text = " ".join(" ".join(told[: next(end, None)]).split())
    return text.removeprefix("Caused by: ") or "no trace"


def _await_running(
    client: ConnectClient,
    name: str,
    slot_holder: SlotHolder | None,
    before: Sight,
    settle_s: float,
    timeout_s: float,
) -> None:
    started = time.monotonic()
    while True:
        now, waited = _look(client, name, slot_holder), time.monotonic() - started
        settled = waited >= settle_s
        if has_failed(now, before, settled=settled):
            raise ConnectorFailedError(_failed(name, now.failure or ""))
        if is_running(now, before, settled=settled, slot_watched=slot_holder is not None):
            return
        if waited > timeout_s:
            raise ConnectorFailedError(_late(name, now.status))
        time.sleep(_ASK_EVERY_S)


def _look(client: ConnectClient, name: str, slot_holder: SlotHolder | None) -> Sight:
    return Sight(client.status(name), slot_holder() if slot_holder else None)


def _failed(name: str, trace: str) -> str:
    """With what to do when the file is right, since applying it again then changes nothing."""
    return (
        f"connector {name!r} FAILED: {root_cause(trace)}; mend the file and apply it, or mend the cause "
        f"and POST /connectors/{name}/restart?includeTasks=true&onlyFailed=true to Connect; "
        f"`debezium-inbox connector status {name} --trace` shows all"
    )


def _late(name: str, status: ConnectorStatus | None) -> str:
    if status is None:
        return f"connector {name!r}: Connect does not know it; look at the worker's log"
    if status.running:
        return (
            f"connector {name!r} says RUNNING, but nobody new holds its slot: is the slot in use by "
            f"another connector, or lost? `debezium-inbox slots check` tells"
        )
    states = [status.state, *(task.state for task in status.tasks)]
    tasks = ", ".join(states[1:]) or "no tasks"
    return f"connector {name!r} does not run yet: {status.state}, {tasks}; {_late_advice(name, states)}"


def _late_advice(name: str, states: list[str]) -> str:
    if {"PAUSED", "STOPPED"} & set(states):
        return f"resume it with PUT /connectors/{name}/resume"
    if "UNASSIGNED" in states:
        return "after the loss of a worker, its tasks wait up to 5 minutes for another"
    return "look at the worker's log"

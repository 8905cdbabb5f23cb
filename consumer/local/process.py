"""Start and stop the programs of the stack, and never touch a process that is not ours."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from consumer.errors import PartDiedError

LOG_TAIL_LINES = 15


@dataclass(frozen=True, slots=True)
class Identity:
    """Which process is meant: a pid alone may belong to somebody else by now."""

    pid: int
    started_at: float
    """When it started, in seconds since the epoch, as the system tells it."""

    def process(self) -> psutil.Process | None:
        """The running process that this is, or None."""
        try:
            process = psutil.Process(self.pid)
            same = process.create_time() == self.started_at
            running = same and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return None
        return process if running else None


def spawn(
    command: Sequence[str | Path],
    *,
    log: Path,
    environment: Mapping[str, str] | None = None,
    user: int | None = None,
) -> Identity:
    """Start `command` in a session of its own, its output appended to `log`.

    A session of its own keeps the terminal's Ctrl-C from it. `user`: run as this user id.
    """
    ids: dict[str, Any] = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment) if environment is not None else None,
            cwd="/",
            start_new_session=True,
            **ids,
        )
    process.returncode = 0  # it outlives this object on purpose; psutil watches it from here on
    return Identity(process.pid, psutil.Process(process.pid).create_time())


def stop(identity: Identity, ask: signal.Signals, patience_s: float) -> None:
    """Ask the process to end, and end it and all its children when it does not."""
    process = identity.process()
    if process is None:
        return
    family = [process, *process.children(recursive=True)]
    process.send_signal(ask)
    _, alive = psutil.wait_procs(family, timeout=patience_s)
    for each in alive:
        each.kill()
    psutil.wait_procs(alive, timeout=patience_s)


def died(part: str, log: Path, why: str) -> PartDiedError:
    """The error for a part that ended or did not get ready, with the end of its log."""
    tail = log.read_text("utf-8", "replace").splitlines()[-LOG_TAIL_LINES:] if log.exists() else []
    return PartDiedError("\n  ".join([f"{part} {why}; the end of {log}:", *tail]))


def is_root() -> bool:
    """Whether this process runs as root, which Postgres refuses to."""
    return os.geteuid() == 0

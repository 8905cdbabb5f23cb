"""Start and stop the programs of the stack, and never touch a process that is not ours."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consumer.errors import PartDiedError

with suppress(ImportError):  # it comes with the extra; `debezium-inbox --help` works without
    import psutil

LOG_TAIL_LINES = 15
LOG_LIMIT_BYTES = 10_000_000
_LOOK_EVERY_S = 0.02

# all that a program is given: a user's JDK_JAVA_OPTIONS or PGDATA must not change the stack, and
# without a UTF-8 locale Java cannot open a path like /home/zoë
_ENVIRONMENT = {"LC_ALL": "C.UTF-8"}

_spawned: list[psutil.Process] = []


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells a process of the stack from every other: its program, the path it works on, its user.

    No pid is kept: by the next command it may belong to somebody else, and a start time kept beside
    it would not help, since it moves whenever the system's clock is set.
    """

    program: str
    works_on: Path
    """It stands in the process's command line as an argument of its own."""
    user: int

    def process(self) -> psutil.Process | None:
        """The running process that this is, or None."""
        for process in psutil.process_iter(["cmdline", "uids"]):
            if self._is(process.info["cmdline"], process.info["uids"]):
                return process
        return None

    def _is(self, command: Sequence[str] | None, users: Any) -> bool:
        return (
            command is not None
            and len(command) > 1
            and Path(command[0]).name == self.program
            and str(self.works_on) in command[1:]
            and users.real == self.user
        )


def spawn(
    command: Sequence[str | Path],
    *,
    log: Path,
    environment: Mapping[str, str] | None = None,
    user: int | None = None,
) -> psutil.Process:
    """Start `command` in a session of its own, its output appended to `log`.

    A session of its own keeps the terminal's Ctrl-C from it. `user`: run as this user id.
    """
    _bound(log)
    _reap()
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_ENVIRONMENT | dict(environment or {}),
            cwd="/",
            start_new_session=True,
            **_as_user(user),
        )
    process.returncode = 0  # it outlives this object on purpose; psutil watches it from here on
    _spawned.append(psutil.Process(process.pid))
    return _spawned[-1]


def run(part: str, command: Sequence[str | Path], *, log: Path, user: int | None = None) -> None:
    """Run `command` to its end; raises PartDiedError with what it said when that was a failure."""
    ended = subprocess.run(
        [str(each) for each in command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        env=_ENVIRONMENT,
        cwd="/",
        **_as_user(user),
    )
    if ended.returncode:
        log.write_bytes(ended.stdout + ended.stderr)
        raise died(part, log, f"could not make its data folder (exit status {ended.returncode})")


def runs(process: psutil.Process) -> bool:
    """Whether the process still runs."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def stop(process: psutil.Process | None, ask: signal.Signals, patience_s: float) -> None:
    """Ask the process to end, and end it and all its children when it does not."""
    if process is None:
        return
    family = [process]
    with suppress(psutil.NoSuchProcess):
        family += process.children(recursive=True)
        process.send_signal(ask)
    kill(_running_after(patience_s, family), patience_s)


def kill(processes: Iterable[psutil.Process], patience_s: float) -> None:
    """End the processes at once, and wait until they are gone."""
    victims = list(processes)
    for each in victims:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    _running_after(patience_s, victims)


def _running_after(patience_s: float, processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that still run after so long; psutil's own wait would wait for zombies too.

    A zombie stays one for as long as its parent, or a container's first process, does not care.
    """
    deadline = time.monotonic() + patience_s
    while (running := [each for each in processes if runs(each)]) and time.monotonic() < deadline:
        time.sleep(_LOOK_EVERY_S)
    return running


def working_in(folder: Path, program: str, user: int) -> list[psutil.Process]:
    """The user's processes of `program` whose working directory is `folder`."""
    return [
        process
        for process in psutil.process_iter(["name", "uids", "cwd"])
        if process.info["cwd"] == str(folder)
        and process.info["name"] == program
        and process.info["uids"].real == user
    ]


def died(part: str, log: Path, why: str) -> PartDiedError:
    """The error for a part that ended or did not get ready, with the end of its log."""
    tail = log.read_text("utf-8", "replace").splitlines()[-LOG_TAIL_LINES:] if log.exists() else []
    return PartDiedError("\n  ".join([f"{part} {why}; the end of {log}:", *tail]))


def is_root() -> bool:
    """Whether this process runs as root, which Postgres refuses to."""
    return os.geteuid() == 0


def _reap() -> None:
    """Let go of those that have ended: Postgres takes the pid of a zombie for a server that runs."""
    _, _spawned[:] = psutil.wait_procs(_spawned, timeout=0)


def _as_user(user: int | None) -> dict[str, Any]:
    if user is None or user == os.geteuid():
        return {}
    return {"user": user, "group": pwd.getpwuid(user).pw_gid, "extra_groups": []}


def _bound(log: Path) -> None:
    """Set an old log aside when it has grown large, so that two files of that size are the most."""
    if log.exists() and log.stat().st_size > LOG_LIMIT_BYTES:
        log.replace(log.with_name(f"{log.name}.1"))

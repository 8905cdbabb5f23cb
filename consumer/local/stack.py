"""The stack: its parts started in order, waited for by asking each, stopped without a trace."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from consumer.errors import LocalStackError
from consumer.local.artifacts import (
    Files,
    cache_folder,
    locked_artifacts,
    provide,
)
from consumer.local.connect import Connect
from consumer.local.databases import CONNECTOR, ROLES, SHOP, WAREHOUSE, make_databases
from consumer.local.disk import check_room, disk_errors
from consumer.local.extra import require_extra
from consumer.local.folder import locked, make_folder, refuse_separators
from consumer.local.kafka import Kafka
from consumer.local.postgres import Postgres
from consumer.local.process import Identity, died, is_root, runs
from consumer.local.state import FILE, PORTS, State, check_port_is_free

with suppress(ImportError):  # it comes with the extra; `debezium-inbox --help` works without
    import platformdirs

if TYPE_CHECKING:
    from psutil import Process

PARTS = ("postgres", "kafka", "connect")
READY_WITHIN_S = 60.0
STOP_PATIENCE_S = 8.0
ROOM_BYTES = 300_000_000  # a new stack takes 100 MB, and more as it is used
_ASK_EVERY_S = 0.1
_ADVICE = "choose another folder with --folder"


class Progress(Protocol):
    """Who is told how the stack comes up."""

    def fetched(self, done: int, total: int) -> None:
        """So many bytes of the stack's files are there."""

    def said(self, text: str) -> None:
        """Something happened."""


class Silent:
    """Tells nobody."""

    def fetched(self, done: int, total: int) -> None:
        """Say nothing."""

    def said(self, text: str) -> None:
        """Say nothing."""


class Part(Protocol):
    """A program of the stack."""

    port: int
    log: Path
    identity: Identity

    def start(self) -> Process:
        """Start it."""
        ...

    def stop(self, patience_s: float) -> None:
        """Stop it if it runs, and all that it started."""
        ...

    def answers(self) -> bool:
        """Whether it answers."""
        ...


@dataclass(frozen=True, slots=True)
class PartStatus:
    """How a part is."""

    part: str
    pid: int | None
    port: int
    answers: bool
    log: Path


def default_folder() -> Path:
    """Where `local up` keeps its stack: Postgres, which refuses root, must be able to enter it."""
    require_extra()
    if is_root():
        return Path("/var/lib/debezium-inbox/local")
    return platformdirs.user_state_path("debezium-inbox") / "local"


class Stack:
    """One stack in one folder; every method may be called from any process at any time."""

    def __init__(
        self, folder: Path, *, durable: bool = True, progress: Progress | None = None
    ) -> None:
        require_extra()
        self.folder, self._durable = folder.resolve(), durable
        self._progress = progress or Silent()
        self._lock = self.folder / "lock"

    def up(self) -> None:
        """Start what does not run; a stack that is up already is left as it is."""
        refuse_separators(self.folder, cache_folder().resolve())
        with disk_errors(self.folder, LocalStackError, _ADVICE):
            make_folder(self.folder)
            with locked(self._lock):
                state = self._kept_or_new_state()
                files = provide(
                    locked_artifacts(), cache_folder(), on_fetched=self._progress.fetched
                )
                self._bring_up(self._parts(state, files), state)

    def down(self, *, delete: bool = False) -> None:
        """Stop what runs, also after a crash; `delete` removes the stack's data, and nothing else."""
        with (
            disk_errors(self.folder, LocalStackError, _ADVICE),
            locked(self._lock) if self._is_there() else nullcontext(),
        ):
            for name, part in reversed(self._parts_to_stop().items()):
                self._stop(name, part)
            if delete:
                self._delete()

    def status(self) -> list[PartStatus]:
        """How each part is; empty when there is no stack."""
        state = State.load(self.folder)
        if state is None:
            return []
        parts = self._parts(state, Files((), Path()))
        return [self._part_status(name, part) for name, part in parts.items()]

    def environment(self) -> dict[str, str]:
        """The settings that lead to this stack, as environment variables."""
        state = self._state()
        return {
            "INBOX_DATABASE_URL": self._url(state, WAREHOUSE),
            "INBOX_SOURCE_DATABASE_URL": self._url(state, SHOP),
            "INBOX_KAFKA_BOOTSTRAP_SERVERS": f"127.0.0.1:{state.ports['kafka']}",
            "INBOX_CONNECT_URL": f"http://127.0.0.1:{state.ports['connect']}",
        }

    def superuser_url(self, database: str = "postgres") -> str:
        """A URL of Postgres's superuser."""
        return self._postgres(self._state()).url(database)

    def log(self, part: str) -> Path:
        """The file that `part` logs to."""
        return self.folder / part / f"{part}.log"

    def identities(self) -> Mapping[str, Identity]:
        """How the process of each part is recognised."""
        return {name: part.identity for name, part in self._parts_to_stop().items()}

    def _kept_or_new_state(self) -> State:
        state = State.load(self.folder)
        if state is None:
            check_room(self.folder, ROOM_BYTES, _ADVICE)
            state = State.new()
            state.save(self.folder)
        return state

    def _bring_up(self, parts: Mapping[str, Part], state: State) -> None:
        started = time.monotonic()
        # all at once: a worker waits for its broker by itself
        processes = {name: self._running(name, part, state) for name, part in parts.items()}
        for name, part in parts.items():
            _wait(part, processes[name], name)
            self._progress.said(f"{name} answers after {time.monotonic() - started:.1f} s")
            if name == "postgres":
                make_databases(self._postgres(state).url(), state.passwords)

    def _running(self, name: str, part: Part, state: State) -> Process:
        """The part's process, started if need be."""
        running = part.identity.process()
        if running is not None:
            return running
        for port_name, port in state.ports.items():
            if port_name.startswith(name):
                check_port_is_free(name, port)
        return part.start()

    def _stop(self, name: str, part: Part) -> None:
        ran = part.identity.process() is not None
        part.stop(STOP_PATIENCE_S)
        if ran:
            self._progress.said(f"{name} stopped")

    def _is_there(self) -> bool:
        return (self.folder / FILE).exists()

    def _delete(self) -> None:
        """Remove what the stack made; a folder with anything else in it stays."""
        if not self.folder.exists():
            return
        if not self._is_there():
            raise LocalStackError(f"{self.folder} holds no stack: nothing in it was deleted")
        for name in PARTS:
            if (self.folder / name).exists():
                shutil.rmtree(self.folder / name)
        (self.folder / FILE).unlink()
        with suppress(OSError):  # there is something else in it
            self._lock.unlink()
            self.folder.rmdir()

    def _state(self) -> State:
        state = State.load(self.folder)
        if state is None:
            raise LocalStackError(
                f"there is no stack in {self.folder}; run: debezium-inbox local up"
            )
        return state

    def _parts_to_stop(self) -> dict[str, Part]:
        """The parts for what needs no port: a damaged stack.json must not keep them running."""
        nowhere = State(dict.fromkeys(PORTS, 0), dict.fromkeys(ROLES, ""))
        return self._parts(nowhere, Files((), Path()))

    def _parts(self, state: State, files: Files) -> dict[str, Part]:
        ports = state.ports
        kafka = Kafka(self.folder / "kafka", ports["kafka"], ports["kafka controller"], files)
        connect = Connect(
            self.folder / "connect", ports["connect"], kafka.port, files, self._connector(state)
        )
        return {"postgres": self._postgres(state), "kafka": kafka, "connect": connect}

    def _postgres(self, state: State) -> Postgres:
        return Postgres(self.folder / "postgres", state.ports["postgres"], durable=self._durable)

    def _connector(self, state: State) -> dict[str, str]:
        return {
            "INBOX_CONNECTOR_DATABASE_HOSTNAME": "127.0.0.1",
            "INBOX_CONNECTOR_DATABASE_PORT": str(state.ports["postgres"]),
            "INBOX_CONNECTOR_DATABASE_USER": CONNECTOR,
            "INBOX_CONNECTOR_DATABASE_PASSWORD": state.passwords[CONNECTOR],
            "INBOX_CONNECTOR_DATABASE_DBNAME": SHOP,
        }

    def _url(self, state: State, database: str) -> str:
        return self._postgres(state).url(database, database, state.passwords[database])

    def _part_status(self, name: str, part: Part) -> PartStatus:
        process = part.identity.process()
        return PartStatus(
            part=name,
            pid=process.pid if process else None,
            port=part.port,
            answers=process is not None and part.answers(),
            log=part.log,
        )


def _wait(part: Part, process: Process, name: str) -> None:
    deadline = time.monotonic() + READY_WITHIN_S
    while not part.answers():
        if not runs(process):
            raise died(name, part.log, "ended by itself")
        if time.monotonic() > deadline:
            raise died(name, part.log, f"runs, but did not answer within {READY_WITHIN_S:.0f} s")
        time.sleep(_ASK_EVERY_S)

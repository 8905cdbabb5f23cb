"""The stack: its parts started in order, waited for by asking each, stopped without a trace."""

import fcntl
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import platformdirs

from consumer.errors import LocalStackError
from consumer.local.artifacts import Files, cache_folder, locked_artifacts, provide
from consumer.local.connect import Connect
from consumer.local.databases import CONNECTOR, SHOP, WAREHOUSE, make_databases
from consumer.local.kafka import Kafka
from consumer.local.postgres import Postgres
from consumer.local.process import Identity, died, is_root, stop
from consumer.local.state import State, check_port_is_free

PARTS = ("postgres", "kafka", "connect")
READY_WITHIN_S = 60.0
STOP_PATIENCE_S = 8.0
_ASK_EVERY_S = 0.1


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

    def start(self) -> Identity:
        """Start it."""
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
    if is_root():
        return Path("/var/lib/debezium-inbox/local")
    return platformdirs.user_state_path("debezium-inbox") / "local"


class Stack:
    """One stack in one folder; every method may be called from any process at any time."""

    def __init__(
        self, folder: Path, *, durable: bool = True, progress: Progress | None = None
    ) -> None:
        self.folder, self._durable = folder.absolute(), durable
        self._progress = progress or Silent()

    def up(self) -> None:
        """Start what does not run; a stack that is up already is left as it is."""
        with self._alone():
            state = State.load(self.folder) or State.new()
            state.save(self.folder)
            files = provide(locked_artifacts(), cache_folder(), on_fetched=self._progress.fetched)
            parts = self._parts(state, files)
            started = time.monotonic()
            for name in PARTS:  # at once: a worker waits for its broker by itself
                self._start(name, parts[name], state)
            self._await("postgres", parts["postgres"], state, started)
            make_databases(self._postgres(state).url(), state.passwords)
            for name in ("kafka", "connect"):
                self._await(name, parts[name], state, started)

    def down(self, *, delete: bool = False) -> None:
        """Stop what runs, also after a crash; `delete` removes the folder with its data."""
        if not self.folder.exists():
            return
        with self._alone():
            state = State.load(self.folder)
            for name in reversed(PARTS):
                self._stop(name, state)
        if delete:
            shutil.rmtree(self.folder)

    def status(self) -> list[PartStatus]:
        """How each part is; empty when there is no stack."""
        state = State.load(self.folder)
        if state is None:
            return []
        parts = self._parts(state, Files((), Path()))
        return [self._part_status(name, part, state) for name, part in parts.items()]

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
        """The processes that the stack started last."""
        return self._state().processes

    def _state(self) -> State:
        state = State.load(self.folder)
        if state is None:
            raise LocalStackError(
                f"there is no stack in {self.folder}; run: debezium-inbox local up"
            )
        return state

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

    def _start(self, name: str, part: Part, state: State) -> None:
        known = state.processes.get(name)
        if known and known.process():
            return
        for port_name, port in state.ports.items():
            if port_name.startswith(name):
                check_port_is_free(name, port)
        state.processes[name] = part.start()
        state.save(self.folder)

    def _await(self, name: str, part: Part, state: State, started: float) -> None:
        identity = state.processes[name]
        _wait(part.answers, lambda: identity.process() is not None, name, part.log)
        self._progress.said(f"{name} answers after {time.monotonic() - started:.1f} s")

    def _stop(self, name: str, state: State | None) -> None:
        identity = state.processes.pop(name, None) if state else None
        if state is None or identity is None:
            return
        ask = signal.SIGINT if name == "postgres" else signal.SIGTERM  # Postgres's fast shutdown
        stop(identity, ask, STOP_PATIENCE_S)
        state.save(self.folder)
        self._progress.said(f"{name} stopped")

    def _part_status(self, name: str, part: Part, state: State) -> PartStatus:
        identity = state.processes.get(name)
        process = identity.process() if identity else None
        return PartStatus(
            part=name,
            pid=process.pid if process else None,
            port=part.port,
            answers=process is not None and part.answers(),
            log=part.log,
        )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One `up` or `down` of this folder at a time."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.folder.chmod(0o711 if is_root() else 0o700)
            lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise LocalStackError(
                f"cannot use {self.folder}: {error.strerror}; choose another with --folder"
            ) from error
        with os.fdopen(lock, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _wait(answers: Callable[[], bool], runs: Callable[[], bool], name: str, log: Path) -> None:
    deadline = time.monotonic() + READY_WITHIN_S
    while not answers():
        if not runs():
            raise died(name, log, "ended by itself")
        if time.monotonic() > deadline:
            raise died(name, log, f"runs, but did not answer within {READY_WITHIN_S:.0f} s")
        time.sleep(_ASK_EVERY_S)

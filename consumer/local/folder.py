"""The stack's folder: made so that Postgres may enter it, locked while a command works in it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from consumer.errors import LocalStackError
from consumer.local.artifacts import CACHE_VARIABLE
from consumer.local.process import is_root

_SEPARATORS = frozenset(",:%$")  # in paths, Java, Kafka and log4j read these as their own signs


def make_folder(folder: Path) -> None:
    """Make the folder; one that is there keeps its mode, since it may be more than the stack's."""
    mode = 0o711 if is_root() else 0o700  # Postgres, which refuses root, must get in
    for each in reversed((folder, *folder.parents)):
        if not each.exists():
            each.mkdir(exist_ok=True)
            each.chmod(mode)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file at `path`, waited for; it is made when it is not there."""
    lock = _lock(path)
    while not _is_at(path, lock):  # removed by `down --delete` while we waited for it
        os.close(lock)
        lock = _lock(path)
    try:
        yield
    finally:
        os.close(lock)


def _lock(path: Path) -> int:
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def refuse_separators(*folders: Path) -> None:
    """Raise LocalStackError for a folder whose path the stack's programs would misread."""
    for folder in folders:
        found = " ".join(sorted(_SEPARATORS & set(str(folder))))
        if found:
            raise LocalStackError(
                f"{folder}: Kafka cannot use a path with {found} in it; choose another with "
                f"--folder, or with {CACHE_VARIABLE} for the cache"
            )

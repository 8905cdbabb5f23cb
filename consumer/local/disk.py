"""What the disk says, in words that help: no room, not writable."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from consumer.errors import DiskFullError, LocalStackError

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def check_room(folder: Path, needed: int, advice: str) -> None:
    """Raise DiskFullError when `folder`'s disk has less than `needed` bytes free."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise DiskFullError(
            f"{folder} has {free // 2**20} MB free, the local stack needs {needed // 2**20 + 1} MB "
            f"there; make room or {advice}"
        )


@contextmanager
def disk_errors(folder: Path, error_class: type[LocalStackError], advice: str) -> Iterator[None]:
    """Turn the system's errors into DiskFullError, or `error_class` for all but a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            raise DiskFullError(f"no room left in {folder}; make room or {advice}") from error
        reason = error.strerror or type(error).__name__
        where = error.filename or folder
        raise error_class(f"cannot use {folder}: {where}: {reason}; {advice}") from error

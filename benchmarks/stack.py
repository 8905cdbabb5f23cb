"""The stack that a benchmark runs on: real servers, durable as in production, gone afterwards."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from consumer.local.process import is_root
from consumer.local.stack import Stack
from consumer.store import migrations
from consumer.store.connecting import connect
from consumer.store.migrations import Target


@contextmanager
def running_stack() -> Iterator[Stack]:
    """A stack of its own, with the inbox's schema applied."""
    with tempfile.TemporaryDirectory(prefix="debezium-inbox-bench-") as folder:
        Path(folder).chmod(0o711 if is_root() else 0o700)
        stack = Stack(Path(folder) / "stack")
        stack.up()
        try:
            with connect(stack.environment()["INBOX_DATABASE_URL"], autocommit=True) as connection:
                migrations.apply(connection, Target.INBOX, "public")
            yield stack
        finally:
            stack.down()

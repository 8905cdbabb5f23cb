"""Postgres servers for the integration tier: from pip, or from Docker by testcontainers."""

import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from consumer.local.postgres import Postgres
from consumer.local.process import is_root, stop
from consumer.local.state import State
from tests.waiting import until

POSTGRES_IMAGE = "postgres:18"


@dataclass(frozen=True)
class PostgresServer:
    """A running server and how to reach its databases as superuser."""

    superuser_url: str

    def url(self, database: str) -> str:
        """A conninfo string for `database`."""
        return make_conninfo(self.superuser_url, dbname=database)


@contextmanager
def a_folder(name: str) -> Iterator[Path]:
    """A folder that Postgres, which refuses root, may enter; pytest's own tmp_path is not."""
    folder = Path(tempfile.mkdtemp(prefix=f"debezium-inbox-{name}-"))
    folder.chmod(0o711 if is_root() else 0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def local_postgres() -> Iterator[PostgresServer]:
    """A server from pip, without fsync."""
    with a_folder("postgres") as folder:
        server = Postgres(folder / "postgres", State.new().ports["postgres"], durable=False)
        identity = server.start()
        try:
            until(server.answers, "Postgres to answer")
            yield PostgresServer(server.url())
        finally:
            stop(identity, signal.SIGINT, 10)


@contextmanager
def container_postgres() -> Iterator[PostgresServer]:
    """A server from Docker; skips with the reason where there is no engine or no image."""
    import docker.errors  # noqa: PLC0415  # only with --backend=containers
    from testcontainers.postgres import PostgresContainer  # noqa: PLC0415

    try:
        container = PostgresContainer(POSTGRES_IMAGE).with_command("-c wal_level=logical")
        container.start()
    except docker.errors.DockerException as error:
        pytest.skip(f"no Docker engine, or no image {POSTGRES_IMAGE}: {error}")
    try:
        yield PostgresServer(container.get_connection_url(driver=None))
    finally:
        container.stop()

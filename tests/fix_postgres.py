"""Fixtures of the integration tier: a real Postgres, and a database of its own for each test."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

from consumer.store import migrations
from consumer.store.connecting import connect
from consumer.store.migrations import Target
from tests.servers import PostgresServer, container_postgres, local_postgres

TEMPLATE = "template_migrated"
_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Choose where servers come from."""
    parser.addoption(
        "--backend",
        choices=("local", "containers"),
        default="local",
        help="Servers from pip, or from Docker by testcontainers.",
    )


@pytest.fixture(scope="session")
def postgres_server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """One server for the session."""
    containers = request.config.getoption("--backend") == "containers"
    with (container_postgres if containers else local_postgres)() as server:
        yield server


@pytest.fixture
def empty_database(postgres_server: PostgresServer) -> Iterator[str]:
    """The URL of an empty database."""
    with _a_database(postgres_server, "template1") as url:
        yield url


@pytest.fixture
def database(postgres_server: PostgresServer, _template: str) -> Iterator[str]:
    """The URL of a database with the tables of inbox and outbox."""
    with _a_database(postgres_server, _template) as url:
        yield url


@pytest.fixture(scope="session")
def _template(postgres_server: PostgresServer) -> str:
    """A database with both schemas, migrated once and cloned for each test."""
    _execute(postgres_server, "CREATE DATABASE {}", TEMPLATE)
    with connect(postgres_server.url(TEMPLATE), autocommit=True) as connection:
        for target in Target:
            migrations.apply(connection, target, "public")
    return TEMPLATE


@contextmanager
def _a_database(server: PostgresServer, template: str) -> Iterator[str]:
    name = f"test_{next(_numbers)}"
    _execute(server, "CREATE DATABASE {} TEMPLATE {}", name, template)
    try:
        yield server.url(name)
    finally:
        _execute(server, "DROP DATABASE {} WITH (FORCE)", name)


def _execute(server: PostgresServer, statement: LiteralString, *names: str) -> None:
    with psycopg.connect(server.superuser_url, autocommit=True) as connection:
        query = sql.SQL(statement).format(*map(sql.Identifier, names))
        connection.execute(query)

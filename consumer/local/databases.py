"""The local stack's databases and roles: the shop's with the outbox, the warehouse's with the inbox."""

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import sql

from consumer.store.queries import load_queries

SHOP = "shop"
WAREHOUSE = "warehouse"
CONNECTOR = "connector"
ROLES = (SHOP, WAREHOUSE, CONNECTOR)

_QUERIES = load_queries("databases.sql", __package__)


def make_databases(superuser_url: str, passwords: Mapping[str, str]) -> None:
    """Make the roles and databases that are not there yet; each of the two owns its database."""
    with psycopg.connect(superuser_url, autocommit=True) as connection:
        for role in ROLES:
            if not _exists(connection, "role_exists", role=role):
                name = "create_connector_role" if role == CONNECTOR else "create_role"
                _run(connection, name, role=role, password=_hashed(connection, role, passwords))
        for database in (SHOP, WAREHOUSE):
            if not _exists(connection, "database_exists", database=database):
                _run(connection, "create_database", database=database, owner=database)
            _run(connection, "close_database", database=database)
        _run(connection, "let_connect", database=SHOP, role=CONNECTOR)


def _hashed(
    connection: psycopg.Connection[Any], role: str, passwords: Mapping[str, str]
) -> sql.Literal:
    """The role's password as the server keeps it; in plain, a failed statement would log it."""
    hashed = connection.pgconn.encrypt_password(
        passwords[role].encode(), role.encode(), b"scram-sha-256"
    )
    return sql.Literal(hashed.decode())


def _exists(connection: psycopg.Connection[Any], name: str, **parameters: str) -> bool:
    row = connection.execute(_QUERIES[name], parameters).fetchone()
    return bool(row and row[0])


def _run(connection: psycopg.Connection[Any], name: str, **names: str | sql.Literal) -> None:
    parts = {
        key: sql.Identifier(value) if isinstance(value, str) else value
        for key, value in names.items()
    }
    connection.execute(sql.SQL(_QUERIES[name]).format(**parts))

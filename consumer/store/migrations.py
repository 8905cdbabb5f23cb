"""The schema's migrations: plain numbered SQL files, applied in order, each in one transaction.

A file ends by writing its own row into `debezium_inbox_migrations`, so a file that a person ran with
psql is as much applied as one that the tool ran.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg import errors, sql

from consumer.errors import SchemaError
from consumer.resources import data_folder
from consumer.store.queries import load_queries, with_names

_QUERIES = load_queries("migrations.sql")


class Target(StrEnum):
    """The two databases' schemas; they may live in one."""

    INBOX = "inbox"
    OUTBOX = "outbox"


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file."""

    version: int
    name: str
    statements: LiteralString


@dataclass(frozen=True, slots=True)
class Status:
    """How a database stands to the code."""

    target: Target
    schema: str
    applied: tuple[int, ...]
    pending: tuple[Migration, ...]
    newer: tuple[int, ...]
    """Versions that the database has and this code does not know."""

    @property
    def current(self) -> bool:
        """Whether the code and the database agree."""
        return not self.pending and not self.newer


def migrations(target: Target) -> tuple[Migration, ...]:
    """The target's migrations in order."""
    files = sorted(data_folder("schema").joinpath(target).glob("[0-9]*.sql"))
    return tuple(_migration(file) for file in files)


def status(connection: psycopg.Connection[Any], target: Target, schema: str) -> Status:
    """Compare the database with the code; changes nothing."""
    known = migrations(target)
    applied = _applied(connection, target, schema)
    return Status(
        target,
        schema,
        applied=tuple(sorted(applied)),
        pending=tuple(each for each in known if each.version not in applied),
        newer=tuple(sorted(applied - {each.version for each in known})),
    )


def apply(
    connection: psycopg.Connection[Any], target: Target, schema: str, grant_to: str | None = None
) -> tuple[Migration, ...]:
    """Apply what is pending, and grants, in one transaction; answers what was applied.

    Safe to run at once from many places. Raises SchemaError when the database is newer than the code,
    or Postgres refuses a statement; then nothing is changed.
    """
    with connection.transaction():
        connection.execute(_QUERIES["lock"])
        if not _value(connection, "schema_exists", schema=schema):
            _run(connection, "CREATE SCHEMA", _named("create_schema", schema), schema)
        before = status(connection, target, schema)
        _refuse_newer(before)
        connection.execute(_named("set_search_path", schema))
        for migration in before.pending:
            _run(connection, f"migration {migration.name}", sql.SQL(migration.statements), schema)
        if grant_to is not None:
            _run(connection, f"GRANT to {grant_to!r}", grants(target, schema, grant_to), schema)
    return before.pending


def grants(target: Target, schema: str, role: str) -> sql.Composed:
    """The statements that give `role` what it needs, and nothing more."""
    text = data_folder("schema").joinpath(target, "grants.sql").read_text("utf-8")
    names = {"schema": sql.Identifier(schema), "role": sql.Identifier(role)}
    return sql.SQL(text).format(**names)


def script(target: Target, schema: str, grant_to: str | None = None) -> sql.Composed:
    """All of the target's SQL, as `psql` can run it: what `apply` runs in an empty database."""
    parts: list[sql.Composable] = [
        sql.SQL("BEGIN;\n"),
        _named("create_schema", schema),
        sql.SQL(";\n"),
        _named("set_search_path", schema),
        sql.SQL(";\n\n"),
        *(sql.SQL(each.statements) for each in migrations(target)),
    ]
    if grant_to is not None:
        parts += [sql.SQL("\n"), grants(target, schema, grant_to)]
    return sql.Composed([*parts, sql.SQL("\nCOMMIT;\n")])


def require_current(connection: psycopg.Connection[Any], target: Target, schema: str) -> None:
    """Raise SchemaError when the tables are missing, older or newer than the code."""
    found = status(connection, target, schema)
    _refuse_newer(found)
    if found.pending:
        stands = f"at version {max(found.applied)}" if found.applied else "not there"
        raise SchemaError(
            f"the {target} tables in schema {schema!r} are {stands}, this code needs version "
            f"{found.pending[-1].version}; run: debezium-inbox schema apply --target {target}"
        )


def _refuse_newer(found: Status) -> None:
    if found.newer:
        raise SchemaError(
            f"the {found.target} tables in schema {found.schema!r} are at version "
            f"{found.newer[-1]}, newer than this code; install a newer debezium-inbox"
        )


def _migration(file: Path) -> Migration:
    number, _, _name = file.stem.partition("_")
    # the files are part of the code
    return Migration(int(number), file.stem, file.read_text("utf-8"))


def _applied(connection: psycopg.Connection[Any], target: Target, schema: str) -> set[int]:
    if not _value(connection, "book_exists", schema=schema):
        return set()
    query = with_names(_QUERIES["versions"], schema=schema)
    try:
        return {row[0] for row in connection.execute(query, {"target": target})}
    except errors.InsufficientPrivilege:
        raise _not_readable(connection.info.user, target, schema) from None


def _not_readable(role: str, target: Target, schema: str) -> SchemaError:
    granting = f", or have them run: debezium-inbox schema apply --target inbox --grant-to {role!r}"
    return SchemaError(
        f"role {role!r} may not read the {target} migrations of schema {schema!r}; connect as the "
        f"tables' owner{granting if target is Target.INBOX else ''}"
    )


def _run(
    connection: psycopg.Connection[Any], step: str, statements: sql.SQL | sql.Composed, schema: str
) -> None:
    try:
        connection.execute(statements)
    except psycopg.Error as error:
        reason = error.diag.message_primary or " ".join(str(error).split())
        if isinstance(error, errors.InsufficientPrivilege):
            reason += "; run it as the database's owner, or give them what `schema sql` prints"
        raise SchemaError(
            f"{step} failed in schema {schema!r}, nothing was changed: {reason}"
        ) from error


def _named(name: str, schema: str) -> sql.Composed:
    return sql.SQL(_QUERIES[name]).format(schema=sql.Identifier(schema))


def _value(connection: psycopg.Connection[Any], name: str, **parameters: Any) -> Any:
    row = connection.execute(_QUERIES[name], parameters).fetchone()
    return row[0] if row else None

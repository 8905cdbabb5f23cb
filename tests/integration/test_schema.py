"""The schema tool and the SQL that it runs."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import errors, sql

from consumer.errors import SchemaError
from consumer.store import migrations
from consumer.store.connecting import connect
from consumer.store.migrations import Target
from tests.servers import PostgresServer

ODD_NAMES = [
    "plain", "Weird Name", 'with"quote', "select", "ünï", "a.b", "%s", "{schema}", "[/x]", "ü" * 40,
]  # fmt: skip


@pytest.fixture
def connection(empty_database: str) -> Iterator[psycopg.Connection[Any]]:
    with connect(empty_database, autocommit=True) as opened:
        yield opened


@pytest.mark.parametrize("target", Target)
@pytest.mark.parametrize("schema", ODD_NAMES)
def test_every_schema_name_works(
    connection: psycopg.Connection[Any], target: Target, schema: str
) -> None:
    """Apply, status and the requirement at start agree, also for names that need quoting."""
    with pytest.raises(SchemaError, match=r"not there.*schema apply --target"):
        migrations.require_current(connection, target, schema)

    applied = migrations.apply(connection, target, schema)

    assert [each.version for each in applied] == [1]
    assert migrations.status(connection, target, schema).current
    migrations.require_current(connection, target, schema)
    assert migrations.apply(connection, target, schema) == ()


def test_both_targets_share_one_schema(connection: psycopg.Connection[Any]) -> None:
    """A small team has inbox and outbox in one database."""
    for target in Target:
        migrations.apply(connection, target, "public")
    assert all(migrations.status(connection, each, "public").current for each in Target)


def test_other_tools_books_are_left_alone(connection: psycopg.Connection[Any]) -> None:
    """Rails, Ecto, dbmate and others keep a schema_migrations of another shape beside our tables."""
    connection.execute("CREATE TABLE schema_migrations (version varchar PRIMARY KEY)")

    for target in Target:
        migrations.apply(connection, target, "public")
        assert migrations.status(connection, target, "public").current
    assert _value(connection, "SELECT count(*) FROM schema_migrations") == 0


def test_eight_applies_at_once_apply_once(empty_database: str) -> None:
    """All replicas of a service may apply at their start."""

    def apply(_: int) -> int:
        with connect(empty_database, autocommit=True) as own:
            return len(migrations.apply(own, Target.INBOX, "inbox"))

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(apply, range(8))) == [0] * 7 + [1]


def test_a_database_newer_than_the_code_is_refused(connection: psycopg.Connection[Any]) -> None:
    """An old program does not write into tables that it does not know."""
    migrations.apply(connection, Target.INBOX, "public")
    connection.execute(
        "INSERT INTO debezium_inbox_migrations (target, version) VALUES ('inbox', 99)"
    )

    for ask in (migrations.require_current, migrations.apply):
        with pytest.raises(SchemaError, match=r"version 99, newer than this code"):
            ask(connection, Target.INBOX, "public")


def test_a_failing_migration_changes_nothing(connection: psycopg.Connection[Any]) -> None:
    """A publication of that name is somebody's; the text says so and no table is left."""
    connection.execute("CREATE PUBLICATION outbox")

    with pytest.raises(SchemaError, match=r'001_outbox failed.*"outbox" already exists'):
        migrations.apply(connection, Target.OUTBOX, "shop")
    assert not migrations.status(connection, Target.OUTBOX, "shop").applied
    assert _value(connection, "SELECT to_regnamespace('shop')") is None


@pytest.mark.parametrize(
    ("schema", "step"), [("new", "CREATE SCHEMA"), ("public", "migration 001_inbox")]
)
def test_a_role_that_may_not_is_told_who_may(
    connection: psycopg.Connection[Any], role: str, schema: str, step: str
) -> None:
    """One line, and nothing is changed."""
    connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))

    with pytest.raises(SchemaError, match=f"{step} failed in schema '{schema}'.*denied.*owner"):
        migrations.apply(connection, Target.INBOX, schema)


def test_a_grant_to_a_role_that_does_not_exist_changes_nothing(
    connection: psycopg.Connection[Any],
) -> None:
    """Tables without their grants would be found out by the consumer, later."""
    with pytest.raises(SchemaError, match=r"GRANT to 'ghost' failed.*\"ghost\" does not exist"):
        migrations.apply(connection, Target.INBOX, "public", grant_to="ghost")
    assert not migrations.status(connection, Target.INBOX, "public").applied


@pytest.mark.parametrize(
    ("target", "said"),
    [(Target.INBOX, "owner, or have them run.*--grant-to"), (Target.OUTBOX, "tables' owner$")],
)
def test_a_role_without_grants_is_told_what_is_missing(
    connection: psycopg.Connection[Any], role: str, target: Target, said: str
) -> None:
    """Tables that a role may not read are no missing tables: applying again would not help."""
    migrations.apply(connection, target, "own")
    connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))

    with pytest.raises(SchemaError, match=f"may not read the {target} migrations.*{said}"):
        migrations.require_current(connection, target, "own")


def test_a_database_that_is_not_utf8_is_refused(postgres_server: PostgresServer) -> None:
    """Debezium reads only UTF-8."""
    name = "latin"
    with psycopg.connect(postgres_server.superuser_url, autocommit=True) as admin:
        admin.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'")
        try:
            with (
                connect(postgres_server.url(name), autocommit=True) as latin,
                pytest.raises(SchemaError, match="this one is in LATIN1"),
            ):
                migrations.apply(latin, Target.OUTBOX, "public")
        finally:
            admin.execute("DROP DATABASE latin WITH (FORCE)")


@pytest.mark.parametrize("target", Target)
@pytest.mark.parametrize("schema", ["public", 'Odd "Name"'])
def test_the_printed_sql_run_by_hand_is_as_good_as_apply(
    connection: psycopg.Connection[Any], target: Target, schema: str
) -> None:
    """A DBA reads it, runs it, and the tool agrees."""
    connection.execute("CREATE ROLE by_hand")
    try:
        script = migrations.script(target, schema, "by_hand").as_string(connection)
        connection.execute(script.encode())
        assert migrations.status(connection, target, schema).current
    finally:
        connection.execute("DROP OWNED BY by_hand")
        connection.execute("DROP ROLE by_hand")


@pytest.mark.parametrize("target", Target)
def test_a_file_run_as_it_is_is_applied(
    connection: psycopg.Connection[Any], target: Target
) -> None:
    """Psql -f schema/inbox/001_inbox.sql is enough."""
    for migration in migrations.migrations(target):
        connection.execute(migration.statements.encode())
    assert migrations.status(connection, target, "public").current


@pytest.fixture
def role(connection: psycopg.Connection[Any]) -> Iterator[str]:
    name = f'app "{uuid4().hex}'
    connection.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(name)))
    yield name
    connection.execute("RESET ROLE")
    connection.execute(sql.SQL("DROP OWNED BY {0}").format(sql.Identifier(name)))
    connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def test_the_consumers_role_may_do_its_work_and_nothing_else(
    connection: psycopg.Connection[Any], role: str
) -> None:
    """No DDL, no DELETE: a consumer that is broken into cannot make events apply twice."""
    migrations.apply(connection, Target.INBOX, "inbox", grant_to=role)
    connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))

    migrations.require_current(connection, Target.INBOX, "inbox")
    connection.execute("INSERT INTO inbox.processed_events VALUES ('c', gen_random_uuid())")
    connection.execute(
        "INSERT INTO inbox.consumer_positions VALUES ('c', gen_random_uuid(), 0, 't', 1)"
    )
    connection.execute("UPDATE inbox.consumer_positions SET next_offset = 2")
    for statement in (
        "DELETE FROM inbox.processed_events",
        "UPDATE inbox.processed_events SET consumer = 'd'",
        "DELETE FROM inbox.consumer_positions",
        "TRUNCATE inbox.processed_events",
        "CREATE TABLE inbox.other ()",
        "INSERT INTO inbox.debezium_inbox_migrations VALUES ('inbox', 2)",
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute(statement.encode())


def test_the_publishing_role_may_only_insert(
    connection: psycopg.Connection[Any], role: str
) -> None:
    """A service writes its outbox and reads nobody's."""
    migrations.apply(connection, Target.OUTBOX, "public", grant_to=role)
    connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))

    connection.execute(
        "INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload)"
        " VALUES (gen_random_uuid(), 'order', '1', 'X', '{}')"
    )
    for statement in ("SELECT * FROM outbox", "DELETE FROM outbox", "UPDATE outbox SET id = id"):
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute(statement.encode())


def test_migration_files_are_numbered_without_gaps() -> None:
    """As 001_name.sql, 002_name.sql and so on."""
    for target in Target:
        found = migrations.migrations(target)
        assert [each.version for each in found] == list(range(1, len(found) + 1))
        assert all(re.fullmatch(r"\d{3}_[a-z_]+", each.name) for each in found)


def _value(connection: psycopg.Connection[Any], query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    return row and row[0]

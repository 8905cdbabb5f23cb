"""Slots as a real server tells of them, with states made to happen."""

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from typer.testing import CliRunner

from consumer.cli.app import app
from consumer.errors import PostgresUnavailableError
from consumer.slots.facts import read_slots, slot_holder
from consumer.store.connecting import connect
from tests.servers import PostgresServer, local_postgres
from tests.waiting import until


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server of its own: these tests change its settings and lose its slots."""
    with local_postgres() as started:
        yield started


@pytest.fixture
def admin(server: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    with connect(server.superuser_url, autocommit=True) as connection:
        yield connection
        connection.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
        connection.execute("ALTER SYSTEM RESET ALL")
        connection.execute("SELECT pg_reload_conf()")


def make_slot(admin: psycopg.Connection[Any], name: str = "outbox") -> None:
    admin.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", [name])


def check(url: str, *arguments: str) -> tuple[int, list[dict[str, str]]]:
    result = CliRunner().invoke(
        app, ["slots", "check", "--source-database-url", url, "--json", *arguments]
    )
    return result.exit_code, json.loads(result.stdout)


def test_a_slot_that_nobody_reads_is_a_warning(
    server: PostgresServer, admin: psycopg.Connection[Any]
) -> None:
    """It retains WAL until the disk is full."""
    make_slot(admin)

    status, (verdict,) = check(server.superuser_url)

    assert (status, verdict["severity"]) == (1, "warning")
    assert "inactive since" in verdict["reason"]
    assert slot_holder(server.superuser_url, "outbox") is None


def test_retained_wal_grows_with_what_others_write(
    server: PostgresServer, admin: psycopg.Connection[Any]
) -> None:
    """Bytes, from the server's own clock of WAL."""
    make_slot(admin)
    (before,) = read_slots(server.superuser_url)
    admin.execute("SELECT pg_logical_emit_message(false, 'noise', repeat('x', 1000000))")

    def grown() -> bool:
        (after,) = read_slots(server.superuser_url)
        return (after.retained_wal_bytes or 0) - (before.retained_wal_bytes or 0) >= 1_000_000

    until(grown, "a megabyte more of retained WAL")
    assert check(server.superuser_url, "outbox", "--critical-bytes", "1000000")[0] == 2


def test_a_lost_slot_is_critical(server: PostgresServer, admin: psycopg.Connection[Any]) -> None:
    """max_slot_wal_keep_size took its WAL; its lag is gone, its danger is not."""
    make_slot(admin)
    admin.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
    admin.execute("SELECT pg_reload_conf()")

    def lost() -> bool:
        admin.execute("SELECT pg_logical_emit_message(false, 'noise', repeat('x', 9000000))")
        admin.execute("SELECT pg_switch_wal()")
        admin.execute("CHECKPOINT")
        return read_slots(server.superuser_url)[0].wal_status == "lost"

    until(lost, "the slot to be lost")

    status, (verdict,) = check(server.superuser_url)
    assert (status, verdict["severity"]) == (2, "critical")
    assert "lost (wal_removed)" in verdict["reason"]


def test_a_role_that_may_only_connect_sees_all_it_needs(
    server: PostgresServer, admin: psycopg.Connection[Any]
) -> None:
    """A monitor needs no rights."""
    make_slot(admin)
    admin.execute("CREATE ROLE monitor LOGIN PASSWORD 'm'")
    try:
        url = make_conninfo(server.superuser_url, user="monitor", password="m")
        assert check(url, "outbox")[0] == 1
    finally:
        admin.execute("DROP ROLE monitor")


def test_a_missing_slot_is_critical_and_no_slots_at_all_are_fine(
    server: PostgresServer, admin: psycopg.Connection[Any]
) -> None:
    """What is expected is what is named."""
    assert check(server.superuser_url, "outbox")[0] == 2
    assert check(server.superuser_url) == (0, [])


def test_a_monitor_that_sees_nothing_is_blind(server: PostgresServer) -> None:
    """Wrong password, no database, nobody listening, no URL: never a good day, and no password."""
    wrong = {"password": "hunter2"}, {"dbname": "nope"}, {"port": "1"}
    for change in wrong:
        status, (verdict,) = check(make_conninfo(server.superuser_url, **change), "outbox")
        assert (status, verdict["severity"]) == (3, "blind")
        assert "hunter2" not in verdict["reason"]
        assert str(conninfo_to_dict(server.superuser_url)["password"]) not in verdict["reason"]
    assert check("postgresql://u:hunter2@h:notaport/x")[0] == 3
    assert CliRunner().invoke(app, ["slots", "check"]).exit_code == 3


def test_a_server_that_never_answers_is_blind_within_the_timeout() -> None:
    """A listener that accepts and stays silent."""
    with closing(socket.create_server(("127.0.0.1", 0))) as deaf:
        url = f"postgresql://u@127.0.0.1:{deaf.getsockname()[1]}/x?connect_timeout=2"
        with pytest.raises(PostgresUnavailableError, match="does not answer"):
            read_slots(url)

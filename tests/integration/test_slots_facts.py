"""What `slots check` tells, and that it ends although the server froze."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from typer.testing import CliRunner

from consumer.cli.app import app
from consumer.errors import PostgresUnavailableError
from consumer.slots import facts
from consumer.store.connecting import connect
from tests.servers import PostgresServer

READY_FOR_QUERY = b"Z\x00\x00\x00\x05I"


@contextmanager
def freezing_after_the_login(url: str) -> Iterator[str]:
    """A way to the server that carries no more bytes once a client has logged in."""
    server = conninfo_to_dict(url)
    listener = socket.create_server(("127.0.0.1", 0))
    lines: list[socket.socket] = []
    frozen = threading.Event()

    def carry(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while not frozen.is_set() and (data := source.recv(65536)):
                if READY_FOR_QUERY in data:
                    frozen.set()
                sink.sendall(data)

    def serve() -> None:
        client, _ = listener.accept()
        upstream = socket.create_connection((str(server["host"]), int(str(server["port"]))))
        lines.extend((client, upstream))
        back = threading.Thread(target=carry, args=(upstream, client))
        back.start()
        carry(client, upstream)
        back.join()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield make_conninfo(
            url, host="127.0.0.1", port=listener.getsockname()[1], sslmode="disable"
        )
    finally:
        for line in (listener, *lines):
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()
        thread.join()


def check(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["slots", "check", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_a_server_that_freezes_after_the_login_is_blind(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps no statement_timeout either; a check that hangs for ever alarms nobody."""
    monkeypatch.setattr(facts, "ANSWER_WITHIN_S", 0.25)
    with (
        freezing_after_the_login(postgres_server.superuser_url) as url,
        pytest.raises(PostgresUnavailableError, match="did not tell of its slots"),
    ):
        facts.read_slots(url)


def test_json_tells_the_facts_under_each_verdict(postgres_server: PostgresServer) -> None:
    """Numbers for programs; a slot that is missing has none."""
    url = postgres_server.superuser_url
    with connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_create_logical_replication_slot('told', 'pgoutput')")
        try:
            status, output, _ = check("--source-database-url", url, "--json", "told", "gone")
        finally:
            connection.execute("SELECT pg_drop_replication_slot('told')")

    gone, told = json.loads(output)
    assert status == 2
    assert (gone["slot"], gone["facts"]) == ("gone", None)
    found = told["facts"]
    assert (found["name"], found["plugin"], found["active"]) == ("told", "pgoutput", False)
    assert (found["temporary"], found["active_pid"], found["wal_status"]) == (
        False,
        None,
        "reserved",
    )
    assert 0 <= found["delivery_lag_bytes"] <= found["retained_wal_bytes"]
    assert "/" in found["restart_lsn"]
    assert "/" in found["confirmed_flush_lsn"]


def test_a_server_without_slots_says_so(postgres_server: PostgresServer) -> None:
    """Nothing is expected, so nothing is wrong; but an empty table would look like a good day."""
    status, _, said = check("--source-database-url", postgres_server.superuser_url)

    assert status == 0
    assert "has no logical slot; name those that you expect" in said.replace("\n", " ")


def test_text_that_looks_like_markup_is_shown_as_it_is() -> None:
    """Reasons hold whatever a server, a path or a user writes, brackets as well."""
    status, output, _ = check("--source-database-url", "user=[/x] host=127.0.0.1 port=1")

    assert status == 3
    assert "[/x]" in output

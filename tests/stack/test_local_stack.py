"""`debezium-inbox local`: up, up again, crashes, down; a stack of its own."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import psycopg
import pytest

from consumer.errors import FetchError, PartDiedError, PortTakenError
from consumer.local import stack as stack_module
from consumer.local.artifacts import provide
from consumer.local.process import runs
from consumer.local.stack import PARTS, Stack
from tests.fix_stack import ROOT
from tests.servers import a_folder


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with a_folder("local") as made:
        yield made / "stack"
        Stack(made / "stack").down(delete=True)


@pytest.fixture
def stack(folder: Path) -> Stack:
    """The folder's stack, up whatever the test before has done to it."""
    made = Stack(folder, durable=False)
    made.up()
    return made


def command(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "consumer", "local", *arguments, "--folder", str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def family_of(stack: Stack) -> list[psutil.Process]:
    running = [psutil.Process(pid) for pid in pids(stack).values()]
    return [each for process in running for each in (process, *process.children(recursive=True))]


def pids(stack: Stack) -> dict[str, int | None]:
    return {each.part: each.pid for each in stack.status()}


def test_up_twice_is_one_stack_also_from_a_shell(stack: Stack) -> None:
    """The second changes nothing."""
    before = pids(stack)

    again = command(stack.folder, "up")

    assert again.returncode == 0, again.stderr
    assert pids(stack) == before
    assert all(each.answers for each in stack.status())


def test_a_second_up_needs_no_network(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is in the cache."""

    def no_network(*_: object) -> Path:
        raise FetchError("there is no network")

    monkeypatch.setattr(
        stack_module,
        "provide",
        lambda wanted, cache, on_fetched: provide(
            wanted, cache, fetch=no_network, on_fetched=on_fetched
        ),
    )
    stack.up()


def test_the_environment_leads_to_the_stack(stack: Stack) -> None:
    """Quoted for a shell, and as JSON; the databases answer to their owners."""
    as_json = command(stack.folder, "env", "--json")
    settings = json.loads(as_json.stdout)
    script = f'{command(stack.folder, "env").stdout}\nprintf %s "$INBOX_DATABASE_URL"'
    shell = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)

    assert settings == stack.environment()
    assert shell.stdout == settings["INBOX_DATABASE_URL"]
    for name, owner in (("INBOX_DATABASE_URL", "warehouse"), ("INBOX_SOURCE_DATABASE_URL", "shop")):
        with psycopg.connect(settings[name]) as connection:
            row = connection.execute("SELECT current_database(), current_user").fetchone()
        assert row == (owner, owner)


def test_status_and_logs_are_told(stack: Stack) -> None:
    """Exit status 0 while all parts answer."""
    status = command(stack.folder, "status", "--json")
    assert status.returncode == 0
    assert [each["part"] for each in json.loads(status.stdout)] == list(PARTS)
    logs = command(stack.folder, "logs", "kafka", "-n", "500")
    assert logs.returncode == 0
    assert "INFO" in logs.stdout
    assert command(stack.folder, "logs", "nothing").returncode == 2


def test_only_this_machine_is_listened_to(stack: Stack) -> None:
    """Kafka and Connect ask nobody for a password."""
    ports = {each.port for each in stack.status()}
    listening = {
        connection.laddr.ip
        for connection in psutil.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port in ports
    }
    assert {address.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}


@pytest.mark.parametrize("part", PARTS)
def test_up_heals_a_part_that_was_killed_and_its_data_is_kept(stack: Stack, part: str) -> None:
    """SIGKILL, as by the kernel when memory runs out."""
    settings = stack.environment()
    with psycopg.connect(settings["INBOX_DATABASE_URL"], autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept (n int)")
    killed = stack.identities()[part].process()
    assert killed is not None
    killed.kill()
    killed.wait(10)
    assert command(stack.folder, "status").returncode == 1

    stack.up()

    assert all(each.answers for each in stack.status())
    assert stack.environment() == settings
    with psycopg.connect(settings["INBOX_DATABASE_URL"]) as connection:
        connection.execute("SELECT * FROM kept")


def test_a_taken_port_is_told_with_the_part_that_had_it(stack: Stack) -> None:
    """Somebody else took it while the part was dead."""
    connect_port = {each.part: each.port for each in stack.status()}["connect"]
    connect = psutil.Process(pids(stack)["connect"])
    connect.kill()
    psutil.wait_procs([connect], timeout=10)

    with closing(socket.create_server(("127.0.0.1", connect_port))):
        with pytest.raises(PortTakenError, match=rf"port {connect_port}, .*stack's connect"):
            stack.up()
        told = command(stack.folder, "up")

    assert (told.returncode, f"port {connect_port}" in told.stderr) == (1, True)


def test_down_after_a_crash_ends_all_that_the_stack_started(stack: Stack) -> None:
    """The children of its parts too; a second `down` finds nothing to do."""
    family = family_of(stack)
    psutil.Process(pids(stack)["kafka"]).kill()

    assert command(stack.folder, "down").returncode == 0

    assert [each for each in family if runs(each)] == []
    assert command(stack.folder, "down").returncode == 0
    assert command(stack.folder, "status").returncode == 1


def test_a_part_that_ends_while_it_starts_shows_the_end_of_its_log(stack: Stack) -> None:
    """Kafka on the data of another node; the rest can be taken down."""
    stack.down()
    kept = stack.folder / "kafka" / "data" / "meta.properties"
    right = kept.read_text()
    kept.write_text("version=1\nnode.id=7\n")

    with pytest.raises(PartDiedError, match=r"kafka ended by itself; the end of .*kafka\.log"):
        stack.up()

    assert command(stack.folder, "down").returncode == 0
    assert {pid for pid in pids(stack).values() if pid} == set()
    kept.write_text(right)

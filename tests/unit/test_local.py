"""The folder of the local stack: ports, passwords, who works in it, what `down` may remove."""

import socket
import threading
from contextlib import closing
from pathlib import Path

import pytest

from consumer.errors import (
    LocalStackError,
    PortTakenError,
)
from consumer.local.folder import locked, make_folder
from consumer.local.java import write_properties
from consumer.local.process import is_root
from consumer.local.stack import Stack
from consumer.local.state import State, check_port_is_free


def test_ports_and_passwords_are_kept_for_the_owner_alone(tmp_path: Path) -> None:
    """A stack that comes back has its old addresses."""
    state = State.new()
    state.save(tmp_path)

    assert State.load(tmp_path) == state
    assert (tmp_path / "stack.json").stat().st_mode & 0o777 == 0o600
    assert len(set(state.ports.values())) == len(state.ports)
    assert State.load(tmp_path / "nowhere") is None


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"ports": {"postgres": "x"}}', "\xff"])
def test_a_damaged_state_is_told_and_does_not_keep_the_stack_from_being_deleted(
    tmp_path: Path, text: str
) -> None:
    """Its passwords are lost, so its data is too."""
    (tmp_path / "stack").mkdir()
    file = tmp_path / "stack" / "stack.json"
    file.write_bytes(text.encode("latin-1"))
    stack = Stack(tmp_path / "stack")

    for act in (stack.up, stack.status, stack.environment):
        with pytest.raises(LocalStackError, match=r"stack\.json is damaged.*down --delete"):
            act()
    stack.down(delete=True)

    assert not file.exists()


def test_delete_removes_nothing_from_a_folder_that_holds_no_stack(tmp_path: Path) -> None:
    """A wrong --folder costs nobody his files."""
    file = tmp_path / "kafka" / "thesis.txt"
    file.parent.mkdir()
    file.write_text("years")

    with pytest.raises(LocalStackError, match="holds no stack: nothing in it was deleted"):
        Stack(tmp_path).down(delete=True)

    assert file.read_text() == "years"
    assert [each.name for each in tmp_path.iterdir()] == ["kafka"]


def test_delete_leaves_what_the_stack_did_not_make(tmp_path: Path) -> None:
    """The folder may hold more than the stack."""
    State.new().save(tmp_path)
    (tmp_path / "postgres").mkdir()
    (tmp_path / "notes.txt").write_text("mine")

    Stack(tmp_path).down(delete=True)

    assert [each.name for each in tmp_path.iterdir()] == ["notes.txt"]


def test_a_folder_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    """It may be the user's home, or /tmp."""
    shared, new = tmp_path / "shared", tmp_path / "new" / "stack"
    shared.mkdir()
    shared.chmod(0o1777)

    make_folder(shared)
    make_folder(new)

    assert shared.stat().st_mode & 0o7777 == 0o1777
    assert {each.stat().st_mode & 0o777 for each in (new, new.parent)} == {
        0o711 if is_root() else 0o700
    }


def test_one_command_at_a_time_works_in_a_folder(tmp_path: Path) -> None:
    """Also when the lock is removed with the stack while another waits for it."""
    path, entered = tmp_path / "lock", threading.Event()

    def enter() -> None:
        with locked(path):
            entered.set()

    with locked(path):
        waiting = threading.Thread(target=enter)
        waiting.start()
        assert not entered.wait(0.2)
        path.unlink()
    waiting.join(10)

    assert entered.is_set()
    assert path.exists()


@pytest.mark.parametrize("name", ["a,b", "a:b", "a%ib", "a$b"])
def test_a_path_that_java_would_misread_is_refused(tmp_path: Path, name: str) -> None:
    """Before anything is made."""
    with pytest.raises(LocalStackError, match=r"Kafka cannot use a path with . in it.*--folder"):
        Stack(tmp_path / name).up()
    assert not (tmp_path / name).exists()


def test_a_properties_file_is_read_by_java_as_it_was_meant(tmp_path: Path) -> None:
    """Java reads Latin-1, and takes a backslash for an escape."""
    file = write_properties(tmp_path / "p", {"log.dirs": "/home/zo\u00eb \U0001f600/a\\b"})

    assert file.read_bytes() == rb"log.dirs=/home/zo\u00eb \ud83d\ude00/a\\b" + b"\n"


def test_a_taken_port_is_named_with_the_part_that_needs_it() -> None:
    """And what to do."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortTakenError, match=rf"port {port}, which the stack's kafka"):
            check_port_is_free("kafka", port)


def test_a_folder_without_a_stack_is_told(tmp_path: Path) -> None:
    """`env` before `up`."""
    with pytest.raises(LocalStackError, match=r"there is no stack in .*local up"):
        Stack(tmp_path).environment()
    assert Stack(tmp_path).status() == []
    Stack(tmp_path / "nowhere").down(delete=True)


def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    """With the option that chooses another."""
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(LocalStackError, match=r"cannot use .*--folder"):
        Stack(file / "stack").up()

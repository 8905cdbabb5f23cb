"""The local stack's pure parts: the lock, fetching, ports, whose process is whose."""

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
from collections import namedtuple
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from consumer.errors import (
    ChecksumError,
    DiskFullError,
    FetchError,
    LocalStackError,
    PartDiedError,
    PortTakenError,
)
from consumer.local import artifacts
from consumer.local.artifacts import Artifact, locked_artifacts, provide
from consumer.local.extra import package_folder
from consumer.local.process import Identity, died, spawn, stop
from consumer.local.stack import Stack
from consumer.local.state import State, check_port_is_free
from tests.waiting import until


def artifact(name: str, content: bytes, packaging: str = "jar") -> Artifact:
    digest = hashlib.sha256(content).hexdigest()
    return Artifact("g", name, "1", packaging, len(content), digest)


class Repository:
    """Fetches from memory, and counts."""

    def __init__(self, **contents: bytes) -> None:
        self.contents, self.fetched = contents, 0

    def __call__(self, wanted: Artifact, folder: Path) -> Path:
        self.fetched += 1
        file = folder / wanted.artifact
        file.write_bytes(self.contents[wanted.artifact])
        return file


def test_the_lock_names_coordinates_sizes_and_checksums_and_no_address() -> None:
    """Every file once, Kafka and Debezium among them."""
    found = locked_artifacts()

    assert len({each.file_name for each in found}) == len(found) > 80
    assert all(len(each.sha256) == 64 and each.size > 0 for each in found)
    assert {"kafka_2.13", "connect-runtime", "debezium-connector-postgres"} <= {
        each.artifact for each in found
    }
    assert "://" not in artifacts.LOCK.read_text()


def test_a_second_call_fetches_nothing(tmp_path: Path) -> None:
    """The cache is enough, also without a network."""
    repository = Repository(a=b"1", b=b"22")
    wanted = [artifact("a", b"1"), artifact("b", b"22")]
    told: list[tuple[int, int]] = []

    files = provide(wanted, tmp_path, fetch=repository, on_fetched=lambda *t: told.append(t))
    again = provide(wanted, tmp_path, fetch=Repository())

    assert [each.read_bytes() for each in files.class_path] == [b"1", b"22"]
    assert again == files
    assert told[-1] == (3, 3)


def test_a_file_that_is_not_the_locked_one_is_refused_and_not_kept(tmp_path: Path) -> None:
    """With its coordinate; the next call fetches it again."""
    wanted = [artifact("a", b"right")]

    with pytest.raises(ChecksumError, match=r"g:a:1: .* the lock says"):
        provide(wanted, tmp_path, fetch=Repository(a=b"wrong"))
    assert not list(tmp_path.glob("*.jar"))
    assert not list(tmp_path.glob("staging-*"))
    provide(wanted, tmp_path, fetch=Repository(a=b"right"))


def test_a_damaged_file_is_fetched_again(tmp_path: Path) -> None:
    """A cut-off file has another size."""
    wanted = [artifact("a", b"right")]
    (file,) = provide(wanted, tmp_path, fetch=Repository(a=b"right")).class_path
    file.write_bytes(b"rig")

    provide(wanted, tmp_path, fetch=Repository(a=b"right"))

    assert file.read_bytes() == b"right"


@pytest.mark.parametrize("error", [RuntimeError("not found at https://host"), ConnectionError("x")])
def test_a_file_that_cannot_be_fetched_is_named(tmp_path: Path, error: Exception) -> None:
    """No network, no such file: the coordinate, and what to do."""

    def fail(_wanted: Artifact, _folder: Path) -> Path:
        raise error

    with pytest.raises(FetchError, match=r"g:a:1 cannot be fetched") as caught:
        provide([artifact("a", b"1")], tmp_path, fetch=fail)
    assert "host" not in str(caught.value)


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """With the variable that moves it."""
    file = tmp_path / "file"
    file.write_text("")

    with pytest.raises(FetchError, match=r"cannot keep files in .*file/cache.*INBOX_CACHE_DIR"):
        provide([artifact("a", b"1")], file / "cache", fetch=Repository(a=b"1"))


def test_a_full_disk_is_told_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is needed and what is free."""
    usage = namedtuple("usage", "total used free")  # noqa: PYI024  # as shutil's
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage(10, 9, 1))
    repository = Repository(a=b"1")

    with pytest.raises(DiskFullError, match=r"0 MB free.*INBOX_CACHE_DIR"):
        provide([artifact("a", b"1")], tmp_path, fetch=repository)
    assert repository.fetched == 0


def test_an_archive_is_unpacked_whole(tmp_path: Path) -> None:
    """Connect's plugin path is the folder of what was in it."""
    source = tmp_path / "connector.jar"
    source.write_bytes(b"jar")
    packed = tmp_path / "packed.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(source, "debezium/connector.jar")
    content = packed.read_bytes()

    files = provide(
        [artifact("p", content, "tar.gz")], tmp_path / "cache", fetch=Repository(p=content)
    )

    assert (files.plugin_path / "debezium" / "connector.jar").read_bytes() == b"jar"


def test_ports_and_passwords_are_kept_for_the_owner_alone(tmp_path: Path) -> None:
    """A stack that comes back has its old addresses."""
    state = State.new()
    state.processes["kafka"] = Identity(1, 2.5)
    state.save(tmp_path)

    assert State.load(tmp_path) == state
    assert (tmp_path / "stack.json").stat().st_mode & 0o777 == 0o600
    assert len(set(state.ports.values())) == len(state.ports)
    assert State.load(tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"ports": {}, "passwords": {}, "processes": 1}']
)
def test_a_damaged_state_is_told(tmp_path: Path, text: str) -> None:
    """With the file, and what is left to do by hand."""
    (tmp_path / "stack.json").write_text(text)

    with pytest.raises(LocalStackError, match=r"stack\.json is damaged"):
        State.load(tmp_path)


def test_a_taken_port_is_named_with_the_part_that_needs_it() -> None:
    """And what to do."""
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortTakenError, match=rf"port {port}, which the stack's kafka"):
            check_port_is_free("kafka", port)


def test_a_process_is_ours_only_with_the_start_time_that_we_saw() -> None:
    """A pid may belong to somebody else by now."""
    own = psutil.Process()

    assert Identity(own.pid, own.create_time()).process() == own
    assert Identity(own.pid, own.create_time() - 1).process() is None
    assert Identity(2**22 - 1, 0.0).process() is None


def test_a_stale_pid_is_never_signalled() -> None:
    """`down` after a crash leaves strangers alone."""
    with subprocess.Popen(["sleep", "60"]) as stranger:
        started = psutil.Process(stranger.pid).create_time()
        stop(Identity(stranger.pid, started - 100), signal.SIGTERM, 1)
        assert stranger.poll() is None
        stranger.kill()


def test_a_process_that_ignores_sigterm_is_ended_with_its_children(tmp_path: Path) -> None:
    """Nothing is left running."""
    script = (
        "import signal, subprocess, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "child = subprocess.Popen(['sleep', '60']); print(child.pid, flush=True); child.wait()"
    )
    log = tmp_path / "log"
    identity = spawn([sys.executable, "-c", script], log=log, environment=dict(os.environ))
    pid = int(until(log.read_text, "the child's pid"))
    child = Identity(pid, psutil.Process(pid).create_time())

    stop(identity, signal.SIGTERM, patience_s=0.5)

    assert identity.process() is None
    assert child.process() is None


def test_a_part_that_died_shows_the_end_of_its_log(tmp_path: Path) -> None:
    """The last lines, and where the rest is."""
    log = tmp_path / "kafka.log"
    log.write_text("\n".join(f"line {number}" for number in range(100)))

    error = died("kafka", log, "ended by itself")

    assert isinstance(error, PartDiedError)
    assert str(log) in str(error)
    assert "line 99" in str(error)
    assert "line 50" not in str(error)
    assert "ended by itself" in str(died("kafka", tmp_path / "none", "ended by itself"))


def test_a_missing_extra_is_told_with_the_command() -> None:
    """The package, and how to install it."""
    with pytest.raises(
        LocalStackError, match=r"needs not_there: pip install 'debezium-inbox\[local\]'"
    ):
        package_folder("not_there")


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

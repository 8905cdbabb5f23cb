"""The files of the local stack: the lock, fetching, the cache."""

import errno
import hashlib
import shutil
import socket
import tarfile
from collections import namedtuple
from pathlib import Path

import pytest

from consumer.errors import (
    ChecksumError,
    DiskFullError,
    FetchError,
)
from consumer.local import artifacts
from consumer.local.artifacts import Artifact, locked_artifacts, provide


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


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RuntimeError("not found at https://host"), "the Maven repository does not have it"),
        (ConnectionError("no route to host"), "is the network there"),
        (socket.gaierror(-3, "no name for host"), "is the network there"),
        (ValueError("host sent no XML"), "is the network there"),
    ],
)
def test_a_file_that_cannot_be_fetched_is_named(
    tmp_path: Path, error: Exception, reason: str
) -> None:
    """No network, no such file: the coordinate, and what to do."""

    def fail(_wanted: Artifact, _folder: Path) -> Path:
        raise error

    with pytest.raises(FetchError, match=rf"g:a:1 cannot be fetched.*{reason}") as caught:
        provide([artifact("a", b"1")], tmp_path, fetch=fail)
    assert "host" not in str(caught.value)


def test_a_disk_that_fills_while_fetching_is_told(tmp_path: Path) -> None:
    """The check beforehand cannot know what others write meanwhile."""

    def fill(_wanted: Artifact, _folder: Path) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(DiskFullError, match=r"no room left in .*INBOX_CACHE_DIR"):
        provide([artifact("a", b"1")], tmp_path, fetch=fill)


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """With the variable that moves it."""
    file = tmp_path / "file"
    file.write_text("")

    with pytest.raises(FetchError, match=r"cannot use .*file/cache.*INBOX_CACHE_DIR"):
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


def test_a_cache_that_is_complete_may_be_read_only(tmp_path: Path) -> None:
    """Several users share one; nothing is written, not even a lock."""
    wanted = [artifact("a", b"1")]
    provide(wanted, tmp_path, fetch=Repository(a=b"1"))
    (tmp_path / "lock").unlink()

    provide(wanted, tmp_path, fetch=Repository())

    assert not (tmp_path / "lock").exists()


def test_what_a_killed_fetch_left_is_cleared(tmp_path: Path) -> None:
    """By the next one."""
    left = tmp_path / "staging-killed"
    left.mkdir(parents=True)
    (left / "half.jar").write_bytes(b"half")

    provide([artifact("a", b"1")], tmp_path, fetch=Repository(a=b"1"))

    assert not left.exists()

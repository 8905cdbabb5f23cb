"""The files of Kafka, Connect and Debezium: fetched once into the user's cache, checked by sha256."""

import fcntl
import hashlib
import os
import shutil
import tarfile
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consumer.errors import ChecksumError, FetchError
from consumer.local.disk import NO_ROOM, check_room, disk_errors
from consumer.local.extra import package_folder

with suppress(ImportError):  # it comes with the extra; `debezium-inbox --help` works without
    import platformdirs

LOCK = Path(__file__).with_name("artifacts.lock.toml")
CACHE_VARIABLE = "INBOX_CACHE_DIR"
THREADS = 8
TIMEOUT_S = 60
_ADVICE = f"set {CACHE_VARIABLE} to another folder"
_STAGING = "staging-"
ROOM_FACTOR = 3  # the fetched file, its checked copy, and the unpacked archive

# Python before 3.11.4 has no filters; the archive is the locked one in any case
_SAFELY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}

OnFetched = Callable[[int, int], None]
"""Told (bytes that are there, bytes in all)."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """One file, as the lock names it."""

    group: str
    artifact: str
    version: str
    packaging: str
    size: int
    sha256: str
    classifier: str = ""

    @property
    def file_name(self) -> str:
        """Its name in the cache."""
        parts = [self.artifact, self.version, *([self.classifier] if self.classifier else [])]
        return f"{'-'.join(parts)}.{self.packaging}"

    @property
    def coordinate(self) -> str:
        """Its name for people."""
        return f"{self.group}:{self.artifact}:{self.version}"


@dataclass(frozen=True, slots=True)
class Files:
    """Where the files are."""

    class_path: tuple[Path, ...]
    plugin_path: Path
    """The folder for Connect's `plugin.path`; it holds Debezium's connector."""


Fetch = Callable[[Artifact, Path], Path]
"""Fetches an artifact into a folder and answers the file."""


def locked_artifacts() -> tuple[Artifact, ...]:
    """What the lock in the package names."""
    return tuple(Artifact(**each) for each in tomllib.loads(LOCK.read_text("utf-8"))["artifacts"])


def cache_folder() -> Path:
    """INBOX_CACHE_DIR, else the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen) if chosen else platformdirs.user_cache_path("debezium-inbox")


def fetch_with_jgo(artifact: Artifact, folder: Path) -> Path:
    """Fetch from the Maven repository that jgo knows."""
    package_folder("jgo")
    from jgo.maven import MavenContext  # noqa: PLC0415  # slow to import, needed once

    context = MavenContext(repo_cache=folder, local_repos=[], timeout=TIMEOUT_S)
    component = context.project(artifact.group, artifact.artifact).at_version(artifact.version)
    chosen: dict[str, Any] = {"packaging": artifact.packaging}
    if artifact.classifier:
        chosen["classifier"] = artifact.classifier
    return Path(component.artifact(**chosen).resolve())


def provide(
    artifacts: Iterable[Artifact],
    cache: Path,
    *,
    fetch: Fetch = fetch_with_jgo,
    on_fetched: OnFetched = lambda _done, _total: None,
) -> Files:
    """Make sure that every file is in the cache; a second call needs no network.

    Raises FetchError, ChecksumError or DiskFullError; a killed or failed call leaves nothing half-done.
    """
    wanted = tuple(artifacts)
    with disk_errors(cache, FetchError, _ADVICE):
        if not _is_complete(wanted, cache):
            _complete(wanted, cache, fetch, on_fetched)
    jars = tuple(cache / each.file_name for each in wanted if each.packaging == "jar")
    return Files(jars, _plugin_path(wanted, cache))


def _complete(
    wanted: tuple[Artifact, ...], cache: Path, fetch: Fetch, on_fetched: OnFetched
) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    with _alone(cache):
        _clear_staging(cache)
        _fetch_missing(wanted, cache, fetch, on_fetched)
        _unpack(wanted, cache)


def _is_complete(wanted: Iterable[Artifact], cache: Path) -> bool:
    return _plugin_path(wanted, cache).is_dir() and all(_is_there(each, cache) for each in wanted)


def _clear_staging(cache: Path) -> None:
    """Remove what a killed fetch left behind; nobody else fetches while we hold the lock."""
    for left in cache.glob(f"{_STAGING}*"):
        shutil.rmtree(left, ignore_errors=True)


def _fetch_missing(
    wanted: tuple[Artifact, ...], cache: Path, fetch: Fetch, on_fetched: OnFetched
) -> None:
    missing = [each for each in wanted if not _is_there(each, cache)]
    total = sum(each.size for each in wanted)
    done = total - sum(each.size for each in missing)
    check_room(cache, (total - done) * ROOM_FACTOR, _ADVICE)
    with (
        tempfile.TemporaryDirectory(dir=cache, prefix=_STAGING) as staging,
        ThreadPoolExecutor(THREADS) as pool,
    ):
        tasks = {pool.submit(_fetch_one, a, cache, Path(staging), fetch): a for a in missing}
        try:
            for task in as_completed(tasks):
                task.result()
                done += tasks[task].size
                on_fetched(done, total)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _fetch_one(artifact: Artifact, cache: Path, staging: Path, fetch: Fetch) -> None:
    try:
        fetched = fetch(artifact, staging)
    except Exception as error:
        if isinstance(error, PermissionError) or getattr(error, "errno", None) in NO_ROOM:
            raise
        raise _not_fetched(artifact, error) from error
    found = hashlib.sha256(fetched.read_bytes()).hexdigest()
    if found != artifact.sha256:
        raise ChecksumError(
            f"{artifact.coordinate}: the fetched file has sha256 {found}, the lock says "
            f"{artifact.sha256}; it was not kept: a proxy or mirror on the way changes files"
        )
    fetched.replace(cache / artifact.file_name)


def _not_fetched(artifact: Artifact, error: Exception) -> FetchError:
    # jgo says RuntimeError when the repository answered, and has no such file
    reason = (
        "the Maven repository does not have it"
        if isinstance(error, RuntimeError)
        else f"{type(error).__name__}; is the network there, and the Maven repository reachable?"
    )
    return FetchError(f"{artifact.coordinate} cannot be fetched, as is needed once: {reason}")


def _is_there(artifact: Artifact, cache: Path) -> bool:
    """Files get their name only after their checksum was right; the size tells of later damage."""
    file = cache / artifact.file_name
    return file.is_file() and file.stat().st_size == artifact.size


def _plugin_path(wanted: Iterable[Artifact], cache: Path) -> Path:
    """The folder of unpacked plugin archives; its name changes with their contents."""
    digest = hashlib.sha256("".join(each.sha256 for each in _archives(wanted)).encode())
    return cache / f"plugins-{digest.hexdigest()[:16]}"


def _archives(wanted: Iterable[Artifact]) -> list[Artifact]:
    return [each for each in wanted if each.packaging == "tar.gz"]


def _unpack(wanted: Iterable[Artifact], cache: Path) -> None:
    folder = _plugin_path(wanted, cache)
    if folder.is_dir():
        return
    with tempfile.TemporaryDirectory(dir=cache, prefix=_STAGING) as staging:
        half = Path(staging) / "plugins"
        half.mkdir()
        for each in _archives(wanted):
            with tarfile.open(cache / each.file_name) as archive:
                archive.extractall(half, **_SAFELY)  # noqa: S202  # see _SAFELY
        half.rename(folder)


@contextmanager
def _alone(cache: Path) -> Iterator[None]:
    """One process at a time fetches into the cache; the others wait and find the files there."""
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

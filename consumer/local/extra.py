"""The parts that come with the extra `local`."""

from importlib.util import find_spec
from pathlib import Path

from consumer.errors import LocalStackError


def package_folder(name: str) -> Path:
    """The folder of an installed package, without importing it."""
    found = find_spec(name)
    if found is None or found.origin is None:
        raise LocalStackError(f"the local stack needs {name}: pip install 'debezium-inbox[local]'")
    return Path(found.origin).parent

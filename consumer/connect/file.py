"""Connector JSON files: a flat map of strings, as plain curl can PUT it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from consumer.errors import ConnectorConfigError


@dataclass(frozen=True, slots=True)
class ConnectorFile:
    """A connector as its file says."""

    name: str
    config: Mapping[str, str]
    """All values as text, as Connect keeps them, with `name`."""
    nested: bool
    """The file had the form {"name": …, "config": {…}} of POST."""

    def renamed(self, name: str) -> "ConnectorFile":
        """The same config under another name."""
        return replace(self, name=name, config={**self.config, "name": name})


def read_connector_file(path: Path) -> ConnectorFile:
    """Read a file; raises ConnectorConfigError with the file, the place and the expectation."""
    found = _object(path)
    nested = isinstance(found.get("config"), dict)
    flat = found["config"] if nested else found
    config = {key: _text(path, key, value) for key, value in flat.items()}
    name = str(found.get("name") or config.get("name") or path.stem)
    if config.get("name", name) != name:
        raise ConnectorConfigError(
            f"{path}: the file says {name!r} and its config says {config['name']!r}; expected one name"
        )
    if "connector.class" not in config:
        raise ConnectorConfigError(f"{path}: no 'connector.class'; expected a connector's config")
    return ConnectorFile(name, config | {"name": name}, nested)


def _object(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text("utf-8")
        found = json.loads(text, object_pairs_hook=lambda pairs: _unique(path, pairs))
    except OSError as error:
        raise ConnectorConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConnectorConfigError(f"{path}: not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ConnectorConfigError(
            f"{path}: not JSON: {error.msg} in line {error.lineno}, column {error.colno}"
        ) from None
    if not isinstance(found, dict):
        raise ConnectorConfigError(f"{path}: expected an object, got {type(found).__name__}")
    return found


def _unique(path: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [key for key, _ in pairs]
        twice = sorted({key for key in names if names.count(key) > 1})
        raise ConnectorConfigError(f"{path}: stands there twice: {', '.join(twice)}")
    return found


def _text(path: Path, key: str, value: Any) -> str:
    """The value as Connect keeps it."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    raise ConnectorConfigError(f"{path}: {key}: expected text, got {type(value).__name__}")

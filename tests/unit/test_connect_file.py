"""Connector files: what is read, and what is refused with file, place and expectation."""

import json
import re
from pathlib import Path

import pytest

from consumer.connect.apply import root_cause
from consumer.connect.file import read_connector_file
from consumer.errors import ConnectorConfigError

SHIPPED = sorted((Path(__file__).parents[2] / "connectors").glob("*.json"))


def write(folder: Path, text: str | bytes) -> Path:
    file = folder / "orders.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def test_values_are_text_as_connect_keeps_them(tmp_path: Path) -> None:
    """Numbers and booleans as JSON writes them; the name comes from the file where none is given."""
    file = write(tmp_path, '{"connector.class": "X", "tasks.max": 1, "on": true, "f": 1.5}')

    read = read_connector_file(file)

    assert (read.name, read.nested) == ("orders", False)
    assert read.config == {
        "connector.class": "X",
        "tasks.max": "1",
        "on": "true",
        "f": "1.5",
        "name": "orders",
    }


def test_the_form_of_post_is_accepted(tmp_path: Path) -> None:
    """{"name", "config"}, as most documents show it."""
    file = write(tmp_path, '{"name": "a", "config": {"connector.class": "X"}}')

    read = read_connector_file(file)

    assert (read.name, read.nested, read.config["connector.class"]) == ("a", True, "X")


def test_a_name_can_be_given_instead_of_the_files(tmp_path: Path) -> None:
    """Also inside the config, where Connect expects it."""
    file = write(tmp_path, '{"name": "a", "connector.class": "X"}')

    renamed = read_connector_file(file).renamed("b")

    assert (renamed.name, renamed.config["name"]) == ("b", "b")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", r"not JSON: .* in line 1, column 2"),
        (b"\xff", r"not UTF-8"),
        ("[]", r"expected an object, got list"),
        ('{"a": "1", "a": "2"}', r"stands there twice: a"),
        ('{"a": {"b": 1}}', r"a: expected text, got dict"),
        ('{"a": null}', r"a: expected text, got NoneType"),
        ('{"name": "x"}', r"no 'connector\.class'"),
        ('{"name": "a", "config": {"name": "b", "connector.class": "X"}}', r"says 'a' .* says 'b'"),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, text: str | bytes, said: str) -> None:
    """Each with the file's name."""
    with pytest.raises(ConnectorConfigError, match=r"orders\.json: .*" + said):
        read_connector_file(write(tmp_path, text))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    """Before Connect is asked."""
    with pytest.raises(ConnectorConfigError, match=r"nope\.json: cannot be read: No such file"):
        read_connector_file(tmp_path / "nope.json")


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.name)
def test_every_line_of_a_shipped_file_has_its_reason(file: Path) -> None:
    """Flat text for plain curl, no secret, and connectors/README.md speaks of each property."""
    config = json.loads(file.read_text())
    readme = file.with_name("README.md").read_text()
    told = set(re.findall(r"^\| `([^`]+)` \|", readme, re.MULTILINE))

    assert all(isinstance(value, str) for value in config.values())
    secret = [key for key in config if re.search("password|secret|token|jaas|user", key)]
    assert "database.password" in secret
    assert all(re.fullmatch(r"\$\{env:INBOX_CONNECTOR_\w+\}", config[key]) for key in secret)
    assert set(config) == told


@pytest.mark.parametrize(
    ("trace", "cause"),
    [
        ("", "no trace"),
        ("a.B: one\n\tat x\n", "a.B: one"),
        (
            "a.B: one\n\tat x\nCaused by: c.D: two\n\tat y\nCaused by: e.F: three\n\t... 2 more",
            "e.F: three",
        ),
        (
            "a.B: one\nCaused by: e.F: ERROR: two\n  Detail: three\n\tat y\n\t... 2 more\n",
            "e.F: ERROR: two Detail: three",
        ),
    ],
)
def test_the_root_cause_is_the_last_caused_by(trace: str, cause: str) -> None:
    """What says why, also over more than one line, without frames."""
    assert root_cause(trace) == cause

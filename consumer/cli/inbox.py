"""`debezium-inbox inbox`: housekeeping of the inbox."""

from typing import Annotated

import typer
from rich.table import Table

from consumer.cli.console import DryRunOption, JsonOption, out, print_json
from consumer.prune import Pruned, parse_window, prune
from consumer.settings import load_settings, required_url

app = typer.Typer(help="Housekeeping of the inbox's tables.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Keep `prune` a subcommand while it is the only one."""


@app.command("prune")
def prune_command(
    older_than: Annotated[
        str, typer.Option(help="The window that is kept: 14d, 12h, …", metavar="WINDOW")
    ],
    database_url: Annotated[str | None, typer.Option(help="INBOX_DATABASE_URL")] = None,
    kafka_bootstrap_servers: Annotated[
        str | None, typer.Option(help="INBOX_KAFKA_BOOTSTRAP_SERVERS")
    ] = None,
    db_schema: Annotated[str | None, typer.Option(help="INBOX_DB_SCHEMA")] = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Delete rows of processed_events that no redelivery can need any more.

    Refuses a window shorter than a topic keeps its events.
    """
    settings = load_settings(
        database_url=database_url,
        kafka_bootstrap_servers=kafka_bootstrap_servers,
        db_schema=db_schema,
    )
    pruned = prune(
        required_url(settings, "database_url"),
        schema=settings.db_schema,
        bootstrap_servers=settings.kafka_bootstrap_servers,
        older_than=parse_window(older_than),
        dry_run=dry_run,
    )
    if as_json:
        print_json({"cutoff": pruned.cutoff, "rows": pruned.rows, "dry_run": dry_run})
    else:
        out.print(_table(pruned, dry_run=dry_run))


def _table(pruned: Pruned, *, dry_run: bool) -> Table:
    done = "rows that would go" if dry_run else "rows deleted"
    table = Table(title=f"processed before {pruned.cutoff:%Y-%m-%d %H:%M:%S %Z}")
    table.add_column("consumer")
    table.add_column(done, justify="right")
    for consumer, rows in pruned.rows.items():
        table.add_row(consumer, f"{rows:,}")
    return table

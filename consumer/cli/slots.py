"""`debezium-inbox slots`: says which replication slots are a danger."""

from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from consumer.cli.console import JsonOption, err, out, print_json
from consumer.errors import InboxError
from consumer.settings import load_settings, required_url
from consumer.slots.assess import (
    CRITICAL_BYTES,
    WARNING_BYTES,
    Severity,
    Thresholds,
    Verdict,
    assess,
    worst,
)
from consumer.slots.facts import read_slots

app = typer.Typer(help="Replication slots of the outbox's server.", no_args_is_help=True)

_STYLES = {Severity.OK: "green", Severity.WARNING: "yellow"}


@app.callback()
def group() -> None:
    """Keep `check` a subcommand while it is the only one."""


@app.command("check")
def check(
    slots: Annotated[
        list[str] | None, typer.Argument(metavar="[SLOT]…", help="Expected slots; else all.")
    ] = None,
    source_database_url: Annotated[
        str | None, typer.Option(help="INBOX_SOURCE_DATABASE_URL")
    ] = None,
    warning_bytes: Annotated[
        int, typer.Option(min=1, help="Retained WAL or delivery lag that is a warning.")
    ] = WARNING_BYTES,
    critical_bytes: Annotated[
        int, typer.Option(min=1, help="Retained WAL or delivery lag that is critical.")
    ] = CRITICAL_BYTES,
    as_json: JsonOption = False,
) -> None:
    """Check slots once; exit status 0 ok, 1 warning, 2 critical, 3 blind (nothing could be seen)."""
    verdicts = _check(slots or [], source_database_url, Thresholds(warning_bytes, critical_bytes))
    if as_json:
        print_json([_plain(verdict) for verdict in verdicts])
    else:
        out.print(verdict_table(verdicts))
    if not verdicts:  # a slot that went away must not look like a good day
        err.print(
            "the server has no logical slot; name those that you expect: slots check outbox",
            soft_wrap=True,
        )
    raise typer.Exit(worst(verdicts))


def verdict_table(verdicts: list[Verdict]) -> Table:
    """The verdicts for people."""
    table = Table("slot", "state", "why", "what to do", title="replication slots")
    for verdict in verdicts:
        style = _STYLES.get(verdict.severity, "bold red")
        state = Text(verdict.severity.name.lower(), style)
        table.add_row(Text(verdict.slot), state, Text(verdict.reason), Text(verdict.advice))
    return table


def _check(slots: list[str], url: str | None, thresholds: Thresholds) -> list[Verdict]:
    try:
        source = required_url(load_settings(source_database_url=url), "source_database_url")
        return assess(read_slots(source), slots, thresholds)
    except InboxError as error:  # a monitor that sees nothing must not look like a good day
        return [Verdict("(all)", Severity.BLIND, str(error), "")]


def _plain(verdict: Verdict) -> dict[str, Any]:
    return {**asdict(verdict), "severity": verdict.severity.name.lower()}

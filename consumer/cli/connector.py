"""`debezium-inbox connector`: deploy connector JSON to Kafka Connect."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from consumer.cli.console import DryRunOption, JsonOption, err, out, print_json
from consumer.connect import apply as applying
from consumer.connect.client import ConnectClient, ConnectorStatus
from consumer.connect.file import ConnectorFile, read_connector_file
from consumer.resources import data_folder
from consumer.settings import load_settings
from consumer.slots.facts import slot_holder

app = typer.Typer(help="Deploy connector JSON to Kafka Connect.", no_args_is_help=True)

ConnectOption = Annotated[str | None, typer.Option(help="INBOX_CONNECT_URL")]


@app.command("apply")
def apply(
    file: Annotated[
        Path, typer.Argument(help="Connector JSON: a path, or a file that we ship: outbox.json.")
    ],
    name: Annotated[
        str | None, typer.Option(help="The connector's name, instead of the file's.")
    ] = None,
    connect_url: ConnectOption = None,
    source_database_url: Annotated[
        str | None,
        typer.Option(help="INBOX_SOURCE_DATABASE_URL; with it, wait for the slot as well."),
    ] = None,
    timeout: Annotated[float, typer.Option(min=0, help="Seconds to wait until it runs.")] = (
        applying.READY_WITHIN_S
    ),
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make Connect run FILE: PUT only on difference, then wait until it runs."""
    settings = load_settings(connect_url=connect_url, source_database_url=source_database_url)
    connector = _read(file, name)
    url = settings.source_database_url
    holder = _holder(connector, url.get_secret_value()) if url else None
    with ConnectClient(settings.connect_url) as client:
        planned = (
            applying.plan(client, connector)
            if dry_run
            else applying.apply(client, connector, slot_holder=holder, timeout_s=timeout)
        )
    if as_json:
        facts = {"change": planned.change, "differing": planned.differing, "dry_run": dry_run}
        print_json({"name": connector.name, **facts})
    else:
        _tell(connector, planned, dry_run=dry_run, slot_watched=holder is not None)


@app.command("status")
def status(
    name: Annotated[str | None, typer.Argument(help="The connector; else all.")] = None,
    connect_url: ConnectOption = None,
    trace: Annotated[bool, typer.Option("--trace", help="Print whole traces.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Say how connectors and their tasks are; exit status 0 when all run, else 1."""
    with ConnectClient(load_settings(connect_url=connect_url).connect_url) as client:
        names = [name] if name else client.connectors()
        found = {each: client.status(each) for each in names}
    if as_json:
        print_json({each: _plain(state, whole_trace=trace) for each, state in found.items()})
    else:
        _show(found, whole_traces=trace)
    raise typer.Exit(0 if all(state and state.running for state in found.values()) else 1)


@app.command("delete")
def delete(
    name: Annotated[str, typer.Argument(help="The connector.")],
    connect_url: ConnectOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Delete a connector from Connect; its slot, publication and offsets stay."""
    with ConnectClient(load_settings(connect_url=connect_url).connect_url) as client:
        existed = client.config(name) is not None if dry_run else client.delete(name)
    if not existed:
        err.print(f"there is no connector {name!r}", markup=False)
        raise typer.Exit(1)
    out.print(
        f"{'would be deleted' if dry_run else 'deleted'}: {name}. Its replication slot stays and "
        f"retains WAL until the disk is full: if nothing will read it again, drop it with "
        f"pg_drop_replication_slot(). Its publication and its offsets in Connect stay as well",
        markup=False,
    )


def _read(file: Path, name: str | None) -> ConnectorFile:
    connector = read_connector_file(_path(file))
    if connector.nested:
        err.print(
            f'{file} has the form {{"name", "config"}} of POST; its config is used', markup=False
        )
    return connector.renamed(name) if name else connector


def _path(file: Path) -> Path:
    shipped = data_folder("connectors") / file
    return shipped if not file.exists() and file.parent == Path() and shipped.exists() else file


def _holder(connector: ConnectorFile, url: str) -> applying.SlotHolder | None:
    slot = connector.config.get("slot.name")
    return (lambda: slot_holder(url, slot)) if slot else None


def _tell(
    connector: ConnectorFile, planned: applying.Plan, *, dry_run: bool, slot_watched: bool
) -> None:
    done = f"would be {planned.change}" if dry_run else f"{planned.change}, and runs"
    out.print(f"connector {connector.name}: {done}", markup=False)
    if planned.change is applying.Change.UPDATED:
        out.print(f"  differing: {', '.join(planned.differing)}", markup=False)
    if not dry_run and not slot_watched:
        err.print(
            "Connect says that it runs; without INBOX_SOURCE_DATABASE_URL nobody looked at its slot",
            soft_wrap=True,
        )


def _show(found: dict[str, ConnectorStatus | None], *, whole_traces: bool) -> None:
    table = Table("connector", "state", "tasks", "why")
    for name, state in found.items():
        table.add_row(*map(Text, _row(name, state)))
    out.print(table)
    for name, state in found.items():
        if whole_traces and state and state.failure:
            out.print(f"{name}: {state.failure}", markup=False, highlight=False, soft_wrap=True)


def _row(name: str, state: ConnectorStatus | None) -> tuple[str, str, str, str]:
    if state is None:
        return name, "unknown", "", "Connect has no such connector"
    tasks = ", ".join(task.state for task in state.tasks) or "none"
    why = "" if state.failure is None else applying.root_cause(state.failure)
    return name, state.state, tasks, why


def _plain(state: ConnectorStatus | None, *, whole_trace: bool) -> dict[str, Any] | None:
    if state is None:
        return None
    tasks = [{"state": task.state, "worker": task.worker} for task in state.tasks]
    cause = applying.root_cause(state.failure) if state.failure is not None else None
    plain = {"state": state.state, "running": state.running, "tasks": tasks, "cause": cause}
    return plain | {"trace": state.failure} if whole_trace else plain

"""`debezium-inbox connector`: deploy connector JSON to Kafka Connect."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

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
    connect_url: ConnectOption = None,
    source_database_url: Annotated[
        str | None,
        typer.Option(help="INBOX_SOURCE_DATABASE_URL; with it, wait for the slot as well."),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds to wait until it runs.")] = (
        applying.READY_WITHIN_S
    ),
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make Connect run FILE: PUT only on difference, then wait until it runs."""
    settings = load_settings(connect_url=connect_url, source_database_url=source_database_url)
    connector = read_connector_file(_path(file))
    if connector.nested:
        err.print(f'{file} has the form {{"name", "config"}} of POST; its config is used')
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
        _tell(connector, planned, dry_run=dry_run)


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
        print_json({each: _plain(state) for each, state in found.items()})
    else:
        out.print(_table(found, whole_traces=trace))
    raise typer.Exit(0 if all(state and state.running for state in found.values()) else 1)


@app.command("delete")
def delete(
    name: Annotated[str, typer.Argument(help="The connector.")], connect_url: ConnectOption = None
) -> None:
    """Delete a connector from Connect; its slot, publication and offsets stay."""
    with ConnectClient(load_settings(connect_url=connect_url).connect_url) as client:
        deleted = client.delete(name)
    if not deleted:
        err.print(f"there is no connector {name!r}")
        raise typer.Exit(1)
    out.print(
        f"deleted {name}. Its replication slot stays and retains WAL until the disk is full: if "
        f"nothing will read it again, drop it with pg_drop_replication_slot()"
    )


def _path(file: Path) -> Path:
    shipped = data_folder("connectors") / file
    return shipped if not file.exists() and file.parent == Path() and shipped.exists() else file


def _holder(connector: ConnectorFile, url: str) -> applying.SlotHolder | None:
    slot = connector.config.get("slot.name")
    return (lambda: slot_holder(url, slot)) if slot else None


def _tell(connector: ConnectorFile, planned: applying.Plan, *, dry_run: bool) -> None:
    done = f"would be {planned.change}" if dry_run else f"{planned.change}, and runs"
    out.print(f"connector {connector.name}: {done}")
    if planned.change is applying.Change.UPDATED:
        out.print(f"  differing: {', '.join(planned.differing)}")


def _table(found: dict[str, ConnectorStatus | None], *, whole_traces: bool) -> Table:
    table = Table("connector", "state", "tasks", "why")
    for name, state in found.items():
        if state is None:
            table.add_row(name, "[red]unknown[/]", "", "Connect has no such connector")
            continue
        failure = state.failure or ""
        why = failure if whole_traces or not failure else applying.root_cause(failure)
        tasks = ", ".join(task.state for task in state.tasks) or "none"
        table.add_row(name, state.state, tasks, why)
    return table


def _plain(state: ConnectorStatus | None) -> dict[str, Any] | None:
    if state is None:
        return None
    tasks = [{"state": task.state, "worker": task.worker} for task in state.tasks]
    cause = applying.root_cause(state.failure) if state.failure is not None else None
    return {"state": state.state, "running": state.running, "tasks": tasks, "cause": cause}

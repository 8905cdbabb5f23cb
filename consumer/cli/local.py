"""`debezium-inbox local`: the whole stack on this machine, without Docker."""

import shlex
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Column, Table

from consumer.cli.console import JsonOption, err, out, print_json
from consumer.cli.progress import StackProgress
from consumer.local.stack import PARTS, PartStatus, Stack, default_folder

app = typer.Typer(
    help="Postgres, Kafka and Connect on this machine, from pip alone.", no_args_is_help=True
)

FolderOption = Annotated[
    Path | None,
    typer.Option(envvar="INBOX_LOCAL_FOLDER", help="Where the stack and its data are."),
]


@app.command("up")
def up(folder: FolderOption = None) -> None:
    """Start the stack; a stack that is up already is left as it is."""
    chosen = folder or default_folder()
    with StackProgress() as progress:
        Stack(chosen, progress=progress).up()
    err.print(
        f'the stack in {chosen} is up; next: eval "$(debezium-inbox local env)"',
        markup=False,
        soft_wrap=True,
    )


@app.command("down")
def down(
    folder: FolderOption = None,
    delete: Annotated[bool, typer.Option("--delete", help="Remove its data as well.")] = False,
) -> None:
    """Stop the stack, also after a crash."""
    with StackProgress() as progress:
        Stack(folder or default_folder(), progress=progress).down(delete=delete)


@app.command("status")
def status(folder: FolderOption = None, as_json: JsonOption = False) -> None:
    """Ask each part; exit status 0 when all answer, else 1."""
    stack = Stack(folder or default_folder())
    found = stack.status()
    if as_json:
        print_json([{name: getattr(each, name) for name in each.__slots__} for each in found])
    elif found:
        out.print(_table(found))
    else:
        err.print(f"there is no stack in {stack.folder}", markup=False, soft_wrap=True)
    raise typer.Exit(0 if found and all(each.answers for each in found) else 1)


def _table(found: Iterable[PartStatus]) -> Table:
    table = Table("part", "state", "pid", "port", Column("log", overflow="fold"))
    for each in found:
        state = "[green]answers[/]" if each.answers else "[red]down[/]"
        pid, log = str(each.pid or ""), escape(str(each.log))
        table.add_row(each.part, state, pid, str(each.port), log)
    return table


@app.command("logs")
def logs(
    part: Annotated[
        str | None, typer.Argument(help=f"One of {', '.join(PARTS)}; by default all.")
    ] = None,
    folder: FolderOption = None,
    lines: Annotated[int, typer.Option("-n", help="How many lines.", min=1)] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as lines come.")] = False,
) -> None:
    """Print the end of a part's log, or of every part's."""
    if part not in (None, *PARTS):
        raise typer.BadParameter(f"expected one of {', '.join(PARTS)}, got {part!r}")
    stack = Stack(folder or default_folder())
    found = [log for log in map(stack.log, [part] if part else PARTS) if log.exists()]
    if not found:
        err.print(f"no log yet in {stack.folder}", markup=False, soft_wrap=True)
        raise typer.Exit(1)
    # -F: a log that has grown large is set aside, and goes on under its name
    command = ["tail", "-n", str(lines), *(["-F"] if follow else []), *map(str, found)]
    raise typer.Exit(subprocess.run(command, check=False).returncode)


@app.command("env")
def env(folder: FolderOption = None, as_json: JsonOption = False) -> None:
    """Print the settings that lead to the stack, for `eval "$(debezium-inbox local env)"`."""
    environment = Stack(folder or default_folder()).environment()
    if as_json:
        print_json(environment)
    else:
        for name, value in environment.items():
            typer.echo(f"export {name}={shlex.quote(value)}")

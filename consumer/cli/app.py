"""The command tree."""

from typing import Annotated

import typer

from consumer.cli import local
from consumer.version import __version__

app = typer.Typer(
    name="debezium-inbox",
    help="Consume Debezium's outbox events: each effect once, in order, whatever crashes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(local.app, name="local")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"debezium-inbox {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """Hold the options that come before the command."""

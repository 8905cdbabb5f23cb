"""The command tree."""

from typing import Annotated

import typer

from consumer.cli import connector, demo, inbox, local, run, schema, slots
from consumer.version import __version__

app = typer.Typer(
    name="debezium-inbox",
    help="Consume Debezium's outbox events: each effect once, in order, whatever crashes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.add_typer(local.app, name="local")
app.add_typer(schema.app, name="schema")
app.add_typer(connector.app, name="connector")
app.command("run")(run.run)
app.add_typer(slots.app, name="slots")
app.add_typer(inbox.app, name="inbox")


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

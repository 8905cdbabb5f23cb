"""How every command speaks: tables for people on stdout, `--json` for programs, errors on stderr."""

import json
from typing import Annotated, Any

import typer
from rich.console import Console

from consumer.errors import InboxError

out = Console(emoji=False)
err = Console(stderr=True, emoji=False)

JsonOption = Annotated[bool, typer.Option("--json", help="Print facts as JSON, for programs.")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be done; do nothing.")
]


def print_json(facts: Any) -> None:
    """Print `facts` as one JSON document; values JSON lacks (dates, paths, uuids) become text."""
    typer.echo(json.dumps(facts, indent=2, default=str))


def report(error: InboxError) -> None:
    """Print one line: the error's stable code and its text."""
    text = f"error [{error.code}]: {error}"
    err.print(text, style="red", markup=False, highlight=False, soft_wrap=True)

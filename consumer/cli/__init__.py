"""The command `debezium-inbox`: one file per command group, one place where errors become exit codes."""

import sys

from consumer.cli.app import app
from consumer.cli.console import report
from consumer.errors import InboxError


def main() -> None:
    """Run the command; an InboxError ends it with one line on stderr and the error's exit status."""
    try:
        app()
    except InboxError as error:
        report(error)
        sys.exit(error.exit_status)

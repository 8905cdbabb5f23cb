"""The command `debezium-inbox`: one file per command group, one place where errors become exit codes."""

import sys
from typing import NoReturn

import psycopg

from consumer.cli.app import app
from consumer.cli.console import report
from consumer.errors import InboxError, PostgresUnavailableError


def main() -> None:
    """Run the command; an InboxError ends it with one line on stderr and the error's exit status."""
    try:
        app()
    except InboxError as error:
        _end(error)
    except psycopg.OperationalError as error:  # a connection that was lost in the middle
        _end(PostgresUnavailableError(f"Postgres went away: {' '.join(str(error).split())}"))


def _end(error: InboxError) -> NoReturn:
    report(error)
    sys.exit(error.exit_status)

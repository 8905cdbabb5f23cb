"""What is said of an event that cannot be applied, without a word of its body."""

import traceback
from pathlib import Path
from typing import Any

import psycopg

from consumer.errors import DatabaseRefusedError, InboxError, PoisonError
from consumer.event import Event, place
from consumer.handler import EventHandler

_TOLD = ("schema_name", "table_name", "column_name", "constraint_name")


def poison_error(event: Event[Any], handler: EventHandler, error: Exception) -> PoisonError:
    """The error that stops the consumer in front of `event`."""
    return PoisonError(
        f"event {event.original_id} ({event.type}) at {place(event)} cannot be applied by "
        f"{handler.consumer}: {describe(error)}; the consumer stopped in front of it and nothing is "
        f"lost: mend the handler or the data, then start again (--debug shows the traceback)"
    )


def database_refused_error(error: psycopg.Error) -> DatabaseRefusedError:
    """The error for a statement that can never work; such errors' own texts hold names, no data."""
    return DatabaseRefusedError(
        f"the database refused: {error.diag.message_primary} ({describe(error)}); the consumer stopped "
        f"and nothing is lost: make the table, or grant what is missing, then start again"
    )


def describe(error: BaseException) -> str:
    """The error's class, place and database facts; texts of others may quote the event's data."""
    if isinstance(error, InboxError):
        return str(error)
    return " ".join([type(error).__name__, *_database_facts(error), *_place_in_code(error)])


def _place_in_code(error: BaseException) -> list[str]:
    """The innermost line that is no library's."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename] or frames
    return [f"in {own[-1].name}, {Path(own[-1].filename).name}:{own[-1].lineno}"] if own else []


def _database_facts(error: BaseException) -> list[str]:
    if not isinstance(error, psycopg.Error):
        return []
    facts = [f"SQLSTATE {error.sqlstate}"] if error.sqlstate else []
    told = ((name, getattr(error.diag, name)) for name in _TOLD)
    return facts + [f"{name.removesuffix('_name')} {value}" for name, value in told if value]

"""A handler's transaction is not its own: what would end it or leave it raises at the call."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn, Self

import psycopg
from psycopg import pq, sql
from psycopg.abc import Params

from consumer.errors import TransactionGuardError

_ENDS_TRANSACTION = re.compile(
    r"\s*(commit|end|abort|rollback(?!\s+(?:work\s+|transaction\s+)?to\b)|prepare\s+transaction)\b",
    re.IGNORECASE,
)
_SAVEPOINT = re.compile(r"\s*(savepoint|rollback|release)\b", re.IGNORECASE)
_WHY = (
    "a handler's effect and its row in processed_events commit together, by the framework; return "
    "to commit, raise to roll back"
)


class GuardedCursor(psycopg.Cursor[Any]):
    """A cursor that refuses statements that would end the framework's transaction."""

    def execute(self, query: Any, params: Params | None = None, **kwargs: Any) -> Self:
        """Run one statement, as psycopg does."""
        connection = self.connection
        if isinstance(connection, GuardedConnection) and connection.guarded:
            _check_statement(query, connection)
        return super().execute(query, params, **kwargs)

    def copy(self, *args: Any, **kwargs: Any) -> Any:
        """COPY, as psycopg does."""
        if isinstance(self.connection, GuardedConnection):
            self.connection.refuse_in_pipeline("COPY")
        return super().copy(*args, **kwargs)


class GuardedConnection(psycopg.Connection[Any]):
    """A connection whose transaction cannot be ended while a handler holds it."""

    guarded = False
    pipelined = False

    def commit(self) -> None:
        """Commit, unless a handler asks."""
        self._refuse_if_guarded("commit()")
        super().commit()

    def rollback(self) -> None:
        """Roll back, unless a handler asks."""
        self._refuse_if_guarded("rollback()")
        super().rollback()

    def close(self) -> None:
        """Close, unless a handler asks."""
        self._refuse_if_guarded("close()")
        super().close()

    def set_autocommit(self, value: bool) -> None:
        """Set autocommit, unless a handler asks."""
        self._refuse_if_guarded("autocommit")
        super().set_autocommit(value)

    def transaction(self, *args: Any, **kwargs: Any) -> Any:
        """A transaction, or, while a handler runs, a savepoint."""
        self.refuse_in_pipeline("a savepoint")
        return super().transaction(*args, **kwargs)

    def refuse_in_pipeline(self, what: str) -> None:
        """Raise when a handler asks for what a pipeline cannot do."""
        if self.guarded and self.pipelined:
            raise TransactionGuardError(
                f"{what} in a handler that runs in a pipeline, where statements fail later than they "
                f"are sent; set `pipeline = False` in the handler's class"
            )

    def _refuse_if_guarded(self, what: str) -> None:
        if self.guarded:
            _refuse(what)


@contextmanager
def guarded(connection: psycopg.Connection[Any], *, pipeline: bool) -> Iterator[None]:
    """Guard the open transaction while a handler runs, and check that it is open and sound after.

    COMMIT on an aborted transaction raises nothing in psycopg and rolls back, so a handler that
    swallowed a database error is found here.
    """
    if isinstance(connection, GuardedConnection):
        connection.guarded, connection.pipelined = True, pipeline
    try:
        yield
    finally:
        if isinstance(connection, GuardedConnection):
            connection.guarded = False
    _check_sound(connection.info.transaction_status)


def _check_sound(status: pq.TransactionStatus) -> None:
    if status == pq.TransactionStatus.INERROR:
        raise TransactionGuardError(
            "the handler caught a database error and returned, but the transaction is aborted; let "
            "the error pass, or use `with connection.transaction():` around what may fail"
        )
    if status == pq.TransactionStatus.IDLE:
        raise TransactionGuardError(f"the handler ended the transaction; {_WHY}")


def _check_statement(query: Any, connection: GuardedConnection) -> None:
    text = query.as_string(connection) if isinstance(query, sql.Composable) else query
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    if not isinstance(text, str):
        return
    if found := _ENDS_TRANSACTION.match(text):
        _refuse(found[1].upper())
    if found := _SAVEPOINT.match(text):
        connection.refuse_in_pipeline(found[1].upper())


def _refuse(what: str) -> NoReturn:
    raise TransactionGuardError(f"{what} in a handler: {_WHY}")

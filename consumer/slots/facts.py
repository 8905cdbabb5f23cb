"""What Postgres says of its logical slots."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from threading import Timer
from typing import Any

import psycopg

from consumer.errors import PostgresUnavailableError
from consumer.store.connecting import connect, masked
from consumer.store.queries import load_queries

ANSWER_WITHIN_S = 5

_QUERIES = load_queries("slots.sql", __package__)


@dataclass(frozen=True, slots=True)
class SlotFacts:
    """One logical slot; what an older server does not tell is None."""

    name: str
    database: str | None
    plugin: str | None
    temporary: bool
    active: bool
    active_pid: int | None
    """The walsender that holds the slot."""
    wal_status: str | None
    """reserved, extended, unreserved or lost; None while nothing is reserved."""
    invalidation_reason: str | None
    restart_lsn: str | None
    confirmed_flush_lsn: str | None
    retained_wal_bytes: int | None
    """WAL that the server keeps for the slot (current LSN - restart_lsn): the disk's risk."""
    delivery_lag_bytes: int | None
    """WAL not yet confirmed by the consumer of the slot (current LSN - confirmed_flush_lsn)."""
    safe_wal_bytes: int | None
    """WAL that can still be written before the slot is lost; None without a limit."""
    inactive_since: datetime | None


def read_slots(url: str) -> list[SlotFacts]:
    """All logical slots of the server; raises PostgresUnavailableError when it does not answer."""
    with connect(url, autocommit=True) as connection:
        rows = _ask(connection, url, "slots")
    return [_facts(*row) for row in rows]


def slot_holder(url: str, slot: str) -> int | None:
    """The process id of the walsender that holds `slot`, or None."""
    with connect(url, autocommit=True) as connection:
        rows = _ask(connection, url, "holder", slot=slot)
    return rows[0][0] if rows else None


def _ask(connection: psycopg.Connection[Any], url: str, name: str, **given: Any) -> list[Any]:
    try:
        with _hung_up_after(connection, 2 * ANSWER_WITHIN_S):
            timeout = f"{ANSWER_WITHIN_S}s"
            connection.execute("SELECT set_config('statement_timeout', %s, false)", [timeout])
            return connection.execute(_QUERIES[name], given).fetchall()
    except psycopg.Error as error:
        raise PostgresUnavailableError(
            f"Postgres at {masked(url)} did not tell of its slots: {type(error).__name__}; is it "
            f"frozen, or overloaded?"
        ) from error


@contextmanager
def _hung_up_after(connection: psycopg.Connection[Any], seconds: float) -> Iterator[None]:
    """End the wait for a server that froze after the login: it keeps no statement_timeout either."""
    timer = Timer(seconds, _hang_up, [connection.fileno()])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def _hang_up(descriptor: int) -> None:
    with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as line:
        line.shutdown(socket.SHUT_RDWR)


def _facts(row: dict[str, Any], retained: int | None, lag: int | None) -> SlotFacts:
    since = row.get("inactive_since")
    return SlotFacts(
        name=row["slot_name"],
        database=row["database"],
        plugin=row["plugin"],
        temporary=row["temporary"],
        active=row["active"],
        active_pid=row["active_pid"],
        wal_status=row.get("wal_status"),
        invalidation_reason=row.get("invalidation_reason"),
        restart_lsn=row["restart_lsn"],
        confirmed_flush_lsn=row["confirmed_flush_lsn"],
        retained_wal_bytes=retained,
        delivery_lag_bytes=lag,
        safe_wal_bytes=row.get("safe_wal_size"),
        inactive_since=datetime.fromisoformat(since) if since else None,
    )

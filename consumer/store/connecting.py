"""Connect to Postgres, and say plainly why it did not work."""

from typing import Any, TypeVar, overload

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from consumer.errors import InboxError, PostgresUnavailableError, SettingsError

CONNECT_TIMEOUT_S = 10
_PARAMETERS: dict[str, Any] = {
    "application_name": "debezium-inbox",
    "connect_timeout": CONNECT_TIMEOUT_S,
    # a peer that is gone without a word is noticed within a minute, not after two hours
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}

Chosen = TypeVar("Chosen", bound=psycopg.Connection[Any])


@overload
def connect(url: str, *, autocommit: bool = ...) -> psycopg.Connection[Any]: ...


@overload
def connect(url: str, kind: type[Chosen], *, autocommit: bool = ...) -> Chosen: ...


def connect(
    url: str, kind: type[psycopg.Connection[Any]] = psycopg.Connection, *, autocommit: bool = False
) -> psycopg.Connection[Any]:
    """Open a connection to `url` (a URL or a conninfo string; what it sets itself is kept).

    Raises PostgresUnavailableError when nobody answers, SettingsError when the server refuses or the
    URL's parameters cannot be used.
    """
    chosen = make_conninfo(**(_PARAMETERS | _parsed(url)))
    try:
        return kind.connect(chosen, autocommit=autocommit)
    except psycopg.Error as error:
        raise _told_apart(error, masked(url), chosen) from None


def masked(url: str) -> str:
    """Where `url` leads, as user@host:port/database: what may stand in logs and errors."""
    parts = _parsed(url)
    user = f"{parts['user']}@" if "user" in parts else ""
    where = f"{parts.get('host', 'localhost')}:{parts.get('port', 5432)}"
    return f"{user}{where}/{parts.get('dbname', '')}"


def _parsed(url: str) -> dict[str, Any]:
    try:
        return conninfo_to_dict(url)
    except psycopg.ProgrammingError:  # its text quotes the URL, password and all
        raise SettingsError(
            "the database's URL is not one that Postgres takes: expected "
            "postgresql://user:password@host:port/database"
        ) from None


def _told_apart(error: psycopg.Error, where: str, url: str) -> InboxError:
    """Libpq gives no SQLSTATE for a failed connection; whether the server answers a ping does tell."""
    reason = " ".join(str(error).split()).removeprefix("connection failed: ")
    if isinstance(error, psycopg.ProgrammingError):
        return SettingsError(f"the URL of Postgres at {where} cannot be used: {reason}")
    timed_out = isinstance(error, psycopg.errors.ConnectionTimeout)  # then a ping would, too
    ping = pq.Ping.NO_RESPONSE if timed_out else pq.PGconn.ping(url.encode())
    if ping == pq.Ping.NO_ATTEMPT:
        return SettingsError(f"the URL of Postgres at {where} cannot be used: {reason}")
    if ping == pq.Ping.OK:
        return SettingsError(f"Postgres at {where} refused the connection: {reason}")
    return PostgresUnavailableError(
        f"Postgres at {where} does not answer ({reason}); is it running, and is the URL right?"
    )

"""What a failure means, decided in one place: by SQLSTATE, exception type and connection, never by text."""

from enum import Enum

import psycopg

from consumer.errors import ConfigurationError, UnavailableError


class Failure(Enum):
    """What to do about a failure."""

    TRANSIENT = "transient"
    """Wait and run again; never counted against an event."""
    PERMANENT = "permanent"
    """It will fail again: the event is to blame, or the handler."""
    MISCONFIGURATION = "misconfiguration"
    """Nothing works until a person changes something."""


_TRANSIENT = (
    "08",  # connection exceptions
    "40",  # serialization failure, deadlock
    "53",  # out of disk, memory, connections
    "58",  # system error: I/O
    "25006",  # read-only transaction: a failover is under way
    "55P03",  # lock timeout
    "57P01",  # admin shutdown
    "57P02",  # crash shutdown
    "57P03",  # cannot connect now: starting up
    "57P05",  # idle session timeout
    "25P03",  # idle-in-transaction timeout
    "25P04",  # transaction timeout
)
_MISCONFIGURATION = (
    "28",  # invalid authorization
    "3D000",  # no such database
    "3F000",  # no such schema
    "42P01",  # no such table
    "42501",  # insufficient privilege
    "57P04",  # database dropped
)


def classify(error: BaseException, *, connection_broken: bool) -> Failure:
    """The kind of failure that `error` is.

    A killed backend has no SQLSTATE in pipeline mode, and neither has a NUL in a text parameter; the
    connection's state tells them apart.
    """
    state = (error.sqlstate if isinstance(error, psycopg.Error) else None) or ""
    if isinstance(error, UnavailableError) or state.startswith(_TRANSIENT):
        return Failure.TRANSIENT
    if isinstance(error, ConfigurationError) or state.startswith(_MISCONFIGURATION):
        return Failure.MISCONFIGURATION
    return Failure.TRANSIENT if connection_broken else Failure.PERMANENT

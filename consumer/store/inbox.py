"""The inbox in Postgres: claims, positions and the transaction that a batch is."""

import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, Self
from uuid import UUID

import psycopg
from psycopg import sql

from consumer.errors import PostgresUnavailableError, SettingsError
from consumer.ports import Partition
from consumer.store.connecting import connect
from consumer.store.guard import GuardedConnection, GuardedCursor
from consumer.store.migrations import Target, require_current
from consumer.store.queries import load_queries, with_names

_QUERIES = load_queries("inbox.sql")


class PostgresInbox:
    """One connection to the inbox's database, opened again after it broke."""

    def __init__(self, url: str, schema: str, consumer: str) -> None:
        self._url, self._schema, self._consumer = url, schema, consumer
        self._queries = {
            name: with_names(_QUERIES[name], schema=schema)
            for name in ("positions", "open_batch", "claim", "close_batch", "raise_positions")
        }
        self._connection = self._connect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._connection.guarded:  # else its lane is still in a handler, and closes it later
            self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @property
    def broken(self) -> bool:
        """Whether the connection is lost."""
        return self._connection.broken or self._connection.closed

    def require_current_schema(self) -> None:
        """Raise SchemaError when the tables are missing, older or newer than the code."""
        with self._connection.transaction():
            require_current(self._connection, Target.INBOX, self._schema)

    def probe(self) -> None:
        """Connect again if needed and ask the database for an answer; raises when there is none."""
        connection = self._usable()
        with connection.transaction():
            connection.execute("SELECT 1")

    def positions(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The stored positions of these partitions."""
        with self._usable().transaction():
            return self._transaction().positions(partitions)

    def raise_positions(self, next_offsets: Mapping[Partition, int]) -> None:
        """Move the positions up, never down, without any event."""
        with self._usable().transaction():
            self._transaction().raise_positions(next_offsets)

    @contextmanager
    def transaction(self, *, pipeline: bool) -> Iterator["PostgresTransaction"]:
        """One transaction; it commits when the block ends and rolls back when the block raises.

        `pipeline`: statements are sent without waiting for their results, BEGIN and COMMIT too. COMMIT
        is not reached when anything before it failed: Postgres skips what is left of a pipeline.
        """
        connection = self._connection
        try:
            with connection.pipeline() if pipeline else nullcontext():
                yield self._transaction()
                connection.commit()
        except BaseException:
            if not self.broken:
                connection.rollback()
            raise

    def cut(self) -> None:
        """Break the connection, from any thread; what runs on it raises, and Postgres rolls back."""
        with (
            suppress(OSError, psycopg.Error),
            socket.socket(fileno=os.dup(self._connection.fileno())) as wire,
        ):
            wire.shutdown(socket.SHUT_RDWR)

    def _transaction(self) -> "PostgresTransaction":
        return PostgresTransaction(self._connection, self._consumer, self._queries)

    def _usable(self) -> GuardedConnection:
        if self.broken:
            self._connection.close()
            self._connection = self._connect_again()
        return self._connection

    def _connect_again(self) -> GuardedConnection:
        """Connect to a server that took us before: what it refuses now may pass.

        Too many connections, a role that is being changed, a database that is being restored.
        """
        try:
            return self._connect()
        except SettingsError as error:
            raise PostgresUnavailableError(str(error)) from error

    def _connect(self) -> GuardedConnection:
        connection = connect(self._url, GuardedConnection)
        connection.cursor_factory = GuardedCursor
        with connection.transaction():
            connection.execute(_QUERIES["session"])
        return connection


class PostgresTransaction:
    """One open transaction."""

    def __init__(
        self, connection: GuardedConnection, consumer: str, queries: Mapping[str, sql.Composed]
    ) -> None:
        self.connection = connection
        self._consumer, self._queries = consumer, queries

    def open_batch(
        self, partitions: Iterable[Partition], event_ids: Iterable[UUID]
    ) -> tuple[dict[Partition, int], set[UUID]]:
        """Claim the ids; answer the partitions' positions, and the ids that are fresh.

        The other ids are duplicates. From here on only a closed batch commits.
        """
        asked = _by_key(partitions)
        opened = self._run("open_batch", _columns(asked))
        claimed = self._run("claim", {"event_ids": list(event_ids)})  # both in one round trip
        return _positions(opened, asked), {row[0] for row in claimed.fetchall()}

    def positions(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The stored positions of these partitions."""
        asked = _by_key(partitions)
        return _positions(self._run("positions", _columns(asked)), asked)

    def close_batch(self, next_offsets: Mapping[Partition, int]) -> None:
        """Move the positions up; the transaction may commit."""
        self._run("close_batch", {})
        self.raise_positions(next_offsets)

    def raise_positions(self, next_offsets: Mapping[Partition, int]) -> None:
        """Move the positions up, never down."""
        columns = {
            "topic_ids": [each.topic_id for each in next_offsets],
            "partitions": [each.number for each in next_offsets],
            "topics": [each.topic for each in next_offsets],
            "next_offsets": list(next_offsets.values()),
        }
        self._run("raise_positions", columns)

    def _run(self, name: str, columns: Mapping[str, Any]) -> psycopg.Cursor[Any]:
        parameters = {"consumer": self._consumer, **columns}
        return self.connection.execute(self._queries[name], parameters)


def _by_key(partitions: Iterable[Partition]) -> dict[tuple[UUID, int], Partition]:
    return {(each.topic_id, each.number): each for each in partitions}


def _columns(asked: Iterable[tuple[UUID, int]]) -> dict[str, list[Any]]:
    keys = list(asked)
    return {
        "topic_ids": [topic_id for topic_id, _ in keys],
        "partitions": [number for _, number in keys],
    }


def _positions(
    cursor: psycopg.Cursor[Any], asked: Mapping[tuple[UUID, int], Partition]
) -> dict[Partition, int]:
    return {asked[topic_id, number]: offset for topic_id, number, offset in cursor.fetchall()}

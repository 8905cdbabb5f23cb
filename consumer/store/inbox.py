"""The inbox in Postgres: claims, positions and the transaction that a batch is."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self
from uuid import UUID

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
            for name in ("positions", "open_batch", "claim", "close_batch")
        }
        self._connection = self._connect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
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
        if self.broken:
            self._connection.close()
            self._connection = self._connect_again()
        with self._connection.transaction():
            self._connection.execute("SELECT 1")

    def positions(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The stored positions of these partitions."""
        with self.transaction() as transaction:
            return transaction.positions("positions", partitions)

    @contextmanager
    def transaction(self) -> Iterator["PostgresTransaction"]:
        """One transaction; it commits when the block ends and rolls back when the block raises."""
        with self._connection.transaction():
            yield PostgresTransaction(self._connection, self._consumer, self._queries)

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

    def open_batch(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The positions of these partitions, locked; from here on only a closed batch commits."""
        return self.positions("open_batch", partitions)

    def positions(self, query: str, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """What `query` answers for these partitions."""
        asked = {(each.topic_id, each.number): each for each in partitions}
        columns = {
            "topic_ids": [topic_id for topic_id, _ in asked],
            "partitions": [number for _, number in asked],
        }
        rows = self._run(query, columns)
        return {asked[topic_id, number]: offset for topic_id, number, offset in rows}

    def claim(self, event_ids: Iterable[UUID]) -> set[UUID]:
        """Insert the ids and answer those that are fresh; the rest are duplicates."""
        ids = list(event_ids)
        return {row[0] for row in self._run("claim", {"event_ids": ids})} if ids else set()

    def close_batch(self, next_offsets: Mapping[Partition, int]) -> None:
        """Move the positions up; the transaction may commit."""
        columns = {
            "topic_ids": [each.topic_id for each in next_offsets],
            "partitions": [each.number for each in next_offsets],
            "topics": [each.topic for each in next_offsets],
            "next_offsets": list(next_offsets.values()),
        }
        self._run("close_batch", columns)

    def _run(self, name: str, columns: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        cursor = self.connection.execute(
            self._queries[name], {"consumer": self._consumer, **columns}
        )
        return cursor.fetchall() if cursor.description else []

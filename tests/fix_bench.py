"""The engine over a broker in memory and a real Postgres, with a ledger that would show every fault."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg
import pytest

from consumer import Event, EventHandler
from consumer.engine.apply import Applied
from consumer.engine.loop import Loop
from consumer.engine.telemetry import Telemetry
from consumer.ports import Partition
from consumer.store.connecting import connect
from consumer.store.inbox import PostgresInbox
from tests.memory_broker import TOPIC_ID, MemoryBroker, MemoryLog

PARTITION = Partition("outbox.order", TOPIC_ID, 0)

Effect = Callable[[Event[Any], psycopg.Connection[Any]], None]


class Ledger(EventHandler):
    """Writes each event into a table without a unique key, then does what the test wants."""

    consumer = "ledger"
    topics = ("outbox.order",)

    def __init__(self) -> None:
        self.then: Effect = lambda _event, _connection: None

    def handle(self, event: Event[Any], connection: psycopg.Connection[Any]) -> None:
        connection.execute("INSERT INTO ledger (event_id) VALUES (%s)", [event.id])
        self.then(event, connection)


class Recorded(Telemetry):
    """Keeps what the loop says."""

    def __init__(self, on_wait: Callable[[BaseException], None] = lambda _error: None) -> None:
        super().__init__("ledger")
        self._on_wait = on_wait
        self.applied = Applied()
        self.skipped: dict[str, int] = {}
        self.waits: list[str] = []

    def batch_applied(self, applied: Applied, skipped: Any) -> None:
        self.applied += applied
        for reason, count in skipped.items():
            self.skipped[reason] = self.skipped.get(reason, 0) + count

    def transient_failure(self, error: BaseException, tries: int, pause_s: float) -> None:
        self.waits.append(type(error).__name__)
        self._on_wait(error)


@dataclass
class Bench:
    """A log, a database and a handler; `run` is one consumer's life until nothing is left."""

    url: str
    log: MemoryLog = field(default_factory=MemoryLog)
    handler: Ledger = field(default_factory=Ledger)

    def run(self, most: int = 100, said: Recorded | None = None) -> Recorded:
        stopping, said = threading.Event(), said or Recorded()
        broker = MemoryBroker(self.log, stopping.set)
        with PostgresInbox(self.url, "public", "ledger") as inbox:
            Loop(self.handler, broker, inbox, most=most, telemetry=said, stopping=stopping).run()
        return said

    def ledger(self) -> list[UUID]:
        return [row[0] for row in self.sql("SELECT event_id FROM ledger ORDER BY entry")]

    def position(self) -> int | None:
        rows = self.sql("SELECT next_offset FROM consumer_positions WHERE partition = 0")
        return rows[0][0] if rows else None

    def sql(self, query: str, *values: Any) -> list[Any]:
        with connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(query.encode(), values or None)
            return cursor.fetchall() if cursor.description else []


@pytest.fixture
def bench(database: str) -> Bench:
    made = Bench(database)
    made.sql("CREATE TABLE ledger (entry bigserial, event_id uuid)")
    made.sql("CREATE TABLE codes (code text PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)")
    return made


def ids(records: list[Any]) -> list[UUID]:
    return [UUID(record.headers[0][1].decode()) for record in records]

"""The engine over a broker in memory and a real Postgres, with a ledger that would show every fault."""

import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg
import pytest

from consumer import Event, EventHandler
from consumer.engine.apply import Applied
from consumer.engine.lane import BatchBounds, Lane
from consumer.engine.lanes import Lanes
from consumer.engine.loop import Loop, LoopBounds
from consumer.engine.room import Room
from consumer.engine.telemetry import Telemetry
from consumer.ports import Broker, Partition
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
        self._on_wait, self._lock = on_wait, threading.Lock()
        self.applied = Applied()
        self.skipped: dict[str, int] = {}
        self.waits: list[str] = []
        self.cut_offs = 0

    def batch_applied(self, applied: Applied) -> None:
        with self._lock:
            self.applied += applied

    def records_skipped(self, skipped: Mapping[str, int]) -> None:
        for reason, count in skipped.items():
            self.skipped[reason] = self.skipped.get(reason, 0) + count

    def cut_off(self, after_s: float) -> None:
        self.cut_offs += 1

    def transient_failure(self, error: BaseException, tries: int, pause_s: float) -> None:
        self.waits.append(type(error).__name__)
        self._on_wait(error)


@dataclass
class Bench:
    """A log, a database and a handler; `run` is one consumer's life until nothing is left."""

    url: str
    log: MemoryLog = field(default_factory=MemoryLog)
    handler: Ledger = field(default_factory=Ledger)
    lanes: int = 1
    shutdown_s: float = 10

    def run(self, most: int = 100, said: Recorded | None = None) -> Recorded:
        said = said or Recorded()
        with ExitStack() as opened:
            self.loop(opened, MemoryBroker(self.log), said, most).run()
        return said

    def loop(
        self,
        opened: ExitStack,
        broker: Broker,
        said: Recorded,
        most: int = 100,
        stopping: threading.Event | None = None,
    ) -> Loop:
        """One consumer; it ends when nothing is left."""

        def inbox() -> PostgresInbox:
            return opened.enter_context(PostgresInbox(self.url, "public", "ledger"))

        def lane(number: int, room: Room, on_failure: Callable[[BaseException], None]) -> Lane:
            bounds = BatchBounds(most, 1_000_000, 0)
            return Lane(
                number,
                self.handler,
                inbox(),
                room,
                bounds=bounds,
                telemetry=said,
                on_failure=on_failure,
            )

        return Loop(
            self.handler,
            broker,
            inbox(),
            Lanes(Room(3 * most, 3_000_000), lane, self.lanes),
            bounds=LoopBounds(most, self.shutdown_s),
            telemetry=said,
            stopping=stopping or threading.Event(),
            until_idle=True,
        )

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

"""The engine over a broker in memory and a real Postgres: once, in order, whatever fails."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import errors

from consumer import Event, EventHandler
from consumer.engine.apply import Applied
from consumer.engine.loop import Loop
from consumer.engine.telemetry import Telemetry
from consumer.errors import InboxError, PoisonError, PositionError
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

    def __init__(self) -> None:
        super().__init__("ledger")
        self.applied = Applied()
        self.skipped: dict[str, int] = {}
        self.waits: list[str] = []

    def batch_applied(self, applied: Applied, skipped: Any) -> None:
        self.applied += applied
        for reason, count in skipped.items():
            self.skipped[reason] = self.skipped.get(reason, 0) + count

    def transient_failure(self, error: BaseException, tries: int, pause_s: float) -> None:
        self.waits.append(type(error).__name__)


@dataclass
class Bench:
    """A log, a database and a handler; `run` is one consumer's life until nothing is left."""

    url: str
    log: MemoryLog = field(default_factory=MemoryLog)
    handler: Ledger = field(default_factory=Ledger)

    def run(self, most: int = 100) -> Recorded:
        stopping, said = threading.Event(), Recorded()
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
def bench(database: str) -> Iterator[Bench]:
    made = Bench(database)
    made.sql("CREATE TABLE ledger (entry bigserial, event_id uuid)")
    made.sql("CREATE TABLE codes (code text PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)")
    return made


def ids(records: list[Any]) -> list[UUID]:
    return [UUID(record.headers[0][1].decode()) for record in records]


def test_events_take_effect_in_order_and_the_offset_follows(bench: Bench) -> None:
    """The plain case, in several batches."""
    records = [bench.log.add() for _ in range(25)]

    said = bench.run(most=10)

    assert bench.ledger() == ids(records)
    assert said.applied == Applied(applied=25)
    assert bench.position() == bench.log.committed[PARTITION] == 25


def test_an_event_that_comes_again_at_a_new_offset_is_a_duplicate(bench: Bench) -> None:
    """In one batch, in the next one, and after a restart; in any form of its id."""
    identity = uuid4()
    for again in (identity, str(identity).upper(), f'"{identity}"', uuid4(), identity):
        bench.log.add(again)

    assert bench.run(most=2).applied == Applied(applied=2, duplicates_by_id=3)
    bench.log.add(identity)
    assert bench.run().applied == Applied(duplicates_by_id=1)
    assert bench.ledger().count(identity) == 1


def test_redelivery_after_a_lost_offset_commit_is_passed_over_by_position(bench: Bench) -> None:
    """No look-up by id is needed, so a prune cannot bring an event back."""
    records = [bench.log.add() for _ in range(10)]
    bench.run()
    bench.log.committed.clear()
    bench.sql("DELETE FROM processed_events")  # a prune that went too far

    bench.run()

    assert bench.ledger() == ids(records)


def test_a_member_that_lost_its_partition_cannot_apply_what_the_next_one_did(bench: Bench) -> None:
    """Positions are read inside the batch's transaction, so a zombie's old batch is passed over."""
    for _ in range(5):
        bench.log.add()
    bench.run()
    bench.sql("DELETE FROM processed_events")
    zombie = MemoryBroker(bench.log, lambda: None)
    zombie.start_at({PARTITION: 0})
    with PostgresInbox(bench.url, "public", "ledger") as inbox:
        loop = Loop(
            bench.handler,
            zombie,
            inbox,
            most=100,
            telemetry=(said := Recorded()),
            stopping=threading.Event(),
        )
        loop._step()

    assert said.applied == Applied(duplicates_by_position=5)
    assert len(bench.ledger()) == 5


def test_a_database_restored_from_a_backup_catches_up_from_its_own_position(bench: Bench) -> None:
    """The committed offset is ahead of the restored database: the position decides."""
    records = [bench.log.add() for _ in range(10)]
    bench.run()
    bench.sql("TRUNCATE ledger, processed_events")
    bench.sql("UPDATE consumer_positions SET next_offset = 0")  # as it was in the backup

    bench.run()

    assert bench.ledger() == ids(records)


def test_a_consumer_without_positions_starts_at_the_groups_offset(bench: Bench) -> None:
    """A service that comes from another framework goes on where it was."""
    records = [bench.log.add() for _ in range(10)]
    bench.log.committed[PARTITION] = 6

    bench.run()

    assert bench.ledger() == ids(records)[6:]


def test_a_topic_that_ends_before_the_position_stops_the_consumer(bench: Bench) -> None:
    """New records at old offsets would be passed over for ever."""
    bench.log.add()
    bench.run()
    bench.sql("UPDATE consumer_positions SET next_offset = 99")

    with pytest.raises(PositionError, match=r"outbox.order/0 ends at offset 1.* position 99"):
        bench.run()


def test_a_topic_that_was_made_again_starts_afresh(bench: Bench) -> None:
    """Its id is another, so its first offsets are new ones."""
    bench.log.add()
    bench.run()
    bench.sql("UPDATE consumer_positions SET topic_id = %s", uuid4())
    bench.log.committed.clear()
    bench.log.records[PARTITION] = []
    record = bench.log.add()

    bench.run()

    assert bench.ledger()[-1] == ids([record])[0]


def test_holes_in_the_offsets_are_no_loss(bench: Bench) -> None:
    """Transaction markers and compaction leave them."""
    records = [bench.log.add(gap=gap) for gap in (0, 3, 0, 7)]

    bench.run(most=1)

    assert bench.ledger() == ids(records)
    assert bench.position() == records[-1].offset + 1


def test_types_that_no_method_takes_are_passed_over_and_counted(bench: Bench) -> None:
    """The position moves past them, no row is written for them."""
    taken: list[Any] = []

    class Picky(EventHandler):
        consumer = "ledger"
        topics = ("outbox.order",)

        def picky(self, event: Event[Any], connection: Any) -> None:
            taken.append(event.id)

        picky._handles_types = ("Mine",)  # type: ignore[attr-defined]

    bench.handler = Picky()  # type: ignore[assignment]
    mine = [bench.log.add(event_type=each) for each in ("Other", "Mine", "Other")][1]

    said = bench.run()

    assert taken == ids([mine])
    assert said.skipped == {"unhandled_type": 2}
    assert bench.position() == 3
    assert bench.sql("SELECT count(*) FROM processed_events") == [(1,)]


def fail_at(identity: UUID, error: Callable[[], Exception]) -> Effect:
    def fail(event: Event[Any], connection: Any) -> None:
        if event.id == identity:
            raise error()

    return fail


def test_a_poison_event_stops_the_consumer_in_front_of_it_and_nothing_is_lost(
    bench: Bench,
) -> None:
    """What came before is applied; once mended, the rest follows, each once."""
    records = [bench.log.add() for _ in range(10)]
    poison = ids(records)[4]
    bench.handler.then = fail_at(poison, lambda: ValueError("4111111111111111"))

    with pytest.raises(
        PoisonError, match=rf"event {poison} .*outbox.order/0@4.*ValueError"
    ) as caught:
        bench.run()

    assert "4111111111111111" not in str(caught.value)
    assert bench.ledger() == ids(records)[:4]
    assert bench.position() == bench.log.committed[PARTITION] == 4

    bench.handler.then = lambda _event, _connection: None
    bench.run()
    assert bench.ledger() == ids(records)


def test_an_undecodable_record_stops_the_consumer_after_what_came_before(bench: Bench) -> None:
    """Its place is said, its bytes are not."""
    first = bench.log.add()
    bench.log.add(value=b"secret")

    with pytest.raises(PoisonError, match=r"outbox.order/0@1 cannot be read: .*not JSON") as caught:
        bench.run()

    assert "secret" not in str(caught.value)
    assert bench.ledger() == ids([first])
    assert bench.position() == 1


def swallow(event: Event[Any], connection: psycopg.Connection[Any]) -> None:
    with contextlib.suppress(errors.DivisionByZero):
        connection.execute("SELECT 1/0")


@pytest.mark.parametrize(
    ("effect", "said"),
    [
        (swallow, "caught a database error and returned"),
        (lambda _event, connection: connection.commit(), r"commit\(\) in a handler"),
        (lambda _event, connection: connection.rollback(), r"rollback\(\) in a handler"),
        (lambda _event, connection: connection.close(), r"close\(\) in a handler"),
        (lambda _event, connection: setattr(connection, "autocommit", True), "autocommit in"),
        (lambda _event, connection: connection.execute("COMMIT"), "COMMIT in a handler"),
        (lambda _event, connection: connection.execute(b" rollback work"), "ROLLBACK in a handler"),
        (lambda _event, connection: connection.cursor().execute("END"), "END in a handler"),
        (lambda _event, connection: connection.execute("-- x\nCOMMIT"), "a_batch_commits_whole"),
        (
            lambda _event, connection: connection.execute("SELECT 1; COMMIT; BEGIN"),
            "a_batch_commits_whole",
        ),
        (
            lambda _event, connection: connection.pgconn.exec_(b"COMMIT"),
            "ended the transaction",
        ),
        (
            lambda _event, connection: psycopg.Cursor(connection).execute("COMMIT"),
            "a_batch_commits_whole",
        ),
        (lambda _event, connection: connection.execute("-- x\nROLLBACK"), "ended the transaction"),
        (
            lambda _event, connection: connection.execute("SELECT %s", ["a\x00b"]),
            "DataError",
        ),
        (
            lambda _event, connection: connection.execute("INSERT INTO codes VALUES ('a'), ('a')"),
            "UniqueViolation SQLSTATE 23505.* constraint codes_pkey",
        ),
    ],
    ids=[
        "swallowed error", "commit", "rollback", "close", "autocommit", "COMMIT", "ROLLBACK", "END",
        "hidden COMMIT", "COMMIT in the middle", "COMMIT by libpq", "COMMIT by another cursor",
        "hidden ROLLBACK", "NUL", "deferred constraint",
    ],
)  # fmt: skip
def test_what_breaks_the_transaction_is_that_events_failure(
    bench: Bench, effect: Effect, said: str
) -> None:
    """Never a success: no effect, no row, no offset past it."""
    bench.log.add()
    bench.handler.then = effect

    with pytest.raises(PoisonError, match=said):
        bench.run()

    assert bench.ledger() == []
    assert bench.sql("SELECT count(*) FROM processed_events") == [(0,)]
    assert PARTITION not in bench.log.committed


def test_a_handler_may_use_savepoints(bench: Bench) -> None:
    """`with connection.transaction()` around what may fail keeps the batch sound."""
    record = bench.log.add()

    def tolerate(event: Event[Any], connection: psycopg.Connection[Any]) -> None:
        with pytest.raises(errors.DivisionByZero), connection.transaction():
            connection.execute("SELECT 1/0")
        connection.execute("SAVEPOINT mine")
        connection.execute("ROLLBACK TO SAVEPOINT mine")

    bench.handler.then = tolerate
    bench.run()

    assert bench.ledger() == ids([record])


def test_our_own_unique_violation_is_never_taken_for_a_duplicate(bench: Bench) -> None:
    """It came from the business table: the event is not yet processed."""
    bench.sql("CREATE UNIQUE INDEX once ON ledger (event_id)")
    record = bench.log.add()
    bench.sql("INSERT INTO ledger (event_id) VALUES (%s)", ids([record])[0])

    with pytest.raises(PoisonError, match=r"UniqueViolation SQLSTATE 23505.* constraint once"):
        bench.run()


def test_a_killed_connection_is_waited_out_and_every_event_applies_once(bench: Bench) -> None:
    """pg_terminate_backend in the middle of a batch."""
    records = [bench.log.add() for _ in range(6)]
    kills = iter([True, False, False, True])

    def kill(event: Event[Any], connection: psycopg.Connection[Any]) -> None:
        if event.id == ids(records)[3] and next(kills, False):
            bench.sql("SELECT pg_terminate_backend(%s)", connection.info.backend_pid)
            connection.execute("SELECT 1")

    bench.handler.then = kill
    said = bench.run()

    assert bench.ledger() == ids(records)
    assert len(said.waits) == 1


@pytest.mark.parametrize("state", ["40001", "40P01", "55P03", "53100", "25006", "57P01"])
def test_a_transient_error_is_waited_out(bench: Bench, state: str) -> None:
    """By SQLSTATE; never counted against the event."""
    record = bench.log.add()
    fails = iter([True, True])

    def fail(event: Event[Any], connection: psycopg.Connection[Any]) -> None:
        if next(fails, False):
            connection.execute(
                f"DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '{state}'; END $$".encode()
            )

    bench.handler.then = fail
    said = bench.run()

    assert bench.ledger() == ids([record])
    assert len(said.waits) == 2


def test_a_missing_table_stops_the_consumer_at_once(bench: Bench) -> None:
    """Nothing works until a person changes something: no event is blamed."""
    bench.log.add()
    bench.sql("DROP TABLE ledger")

    with pytest.raises(errors.UndefinedTable):
        bench.run()
    assert PARTITION not in bench.log.committed


def test_a_lock_held_by_another_is_waited_for_with_the_group_kept_alive(bench: Bench) -> None:
    """lock_timeout bounds the wait; afterwards the batch runs again."""
    record = bench.log.add()
    bench.run()
    again = bench.log.add()
    said: list[Recorded] = []
    with connect(bench.url) as other:
        other.execute("SELECT * FROM consumer_positions FOR UPDATE")
        bench.url = psycopg.conninfo.make_conninfo(bench.url, options="-c lock_timeout=100ms")
        waiting = threading.Thread(target=lambda: said.append(bench.run()))
        waiting.start()
        _until_blocked_twice(bench)
        other.rollback()
    waiting.join(timeout=30)

    assert not waiting.is_alive()
    assert "LockNotAvailable" in said[0].waits
    assert bench.ledger() == ids([record, again])


def _until_blocked_twice(bench: Bench) -> None:
    from tests.waiting import until  # noqa: PLC0415

    query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    for blocked in (1, 0, 1):
        until(lambda blocked=blocked: bench.sql(query) == [(blocked,)], "a blocked consumer")  # type: ignore[misc]


def test_the_session_is_bounded_where_the_user_has_set_nothing(bench: Bench) -> None:
    """A stopped member's open transaction ends; what the user set stays."""
    query = "SELECT current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout')"
    own = psycopg.conninfo.make_conninfo(bench.url, options="-c lock_timeout=3s")
    for url, expected in ((bench.url, ("10s", "5min")), (own, ("3s", "5min"))):
        with PostgresInbox(url, "public", "ledger") as inbox, inbox.transaction() as transaction:
            assert transaction.connection.execute(query.encode()).fetchone() == expected


def test_errors_of_the_framework_are_one_tree() -> None:
    """Everything raised on purpose is an InboxError with a code of its own."""
    found = [InboxError]
    for each in found:
        found += each.__subclasses__()
    codes = [each.code for each in found]
    assert len(set(codes)) == len(codes)

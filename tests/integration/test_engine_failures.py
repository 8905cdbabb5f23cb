"""The engine over a broker in memory and a real Postgres: what fails loses nothing."""

import contextlib
import threading
from collections.abc import Callable
from typing import Any, cast
from uuid import UUID

import psycopg
import pytest
from psycopg import errors
from psycopg.conninfo import make_conninfo

from consumer import Event
from consumer.engine.assignments import Assignments
from consumer.errors import DatabaseRefusedError, PoisonError
from consumer.store.connecting import connect
from tests.fix_bench import PARTITION, Bench, Effect, Recorded, ids
from tests.waiting import until


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


def test_work_that_ends_during_the_check_hides_no_undecodable_record(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked to run until idle, it must not take the unread record for the end."""
    idle = cast("Callable[[Assignments], bool]", Assignments.__dict__["idle"].fget)

    def idle_then_ended(assignments: Assignments) -> bool:
        answer = idle(assignments)
        until(lambda: idle(assignments), "the work to end")
        return answer

    monkeypatch.setattr(Assignments, "idle", property(idle_then_ended))
    bench.log.add()
    bench.log.add(value=b"secret")

    with pytest.raises(PoisonError, match="cannot be read"):
        bench.run()


def swallow(event: Event[Any], connection: psycopg.Connection[Any]) -> None:
    with contextlib.suppress(errors.DivisionByZero):
        connection.execute("SELECT 1/0")


@pytest.mark.parametrize("pipeline", [True, False])
@pytest.mark.parametrize(
    ("effect", "said"),
    [
        (swallow, "caught a database error and returned|DivisionByZero"),
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
            "a_batch_commits_whole|SyntaxError",  # a pipeline takes one statement at a time
        ),
        (
            lambda _event, connection: connection.pgconn.exec_(b"COMMIT"),
            "ended the transaction|OperationalError",  # not in a pipeline
        ),
        (
            lambda _event, connection: psycopg.Cursor(connection).execute("COMMIT"),
            "a_batch_commits_whole",
        ),
        (
            lambda _event, connection: connection.execute("-- x\nROLLBACK"),
            "ended the transaction|a_batch_commits_whole",
        ),
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
    bench: Bench, effect: Effect, said: str, pipeline: bool
) -> None:
    """Never a success: no effect, no row, no offset past it."""
    bench.handler.pipeline = pipeline
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

    bench.handler.then, bench.handler.pipeline = tolerate, False
    bench.run()

    assert bench.ledger() == ids([record])


def copy(_event: Event[Any], connection: psycopg.Connection[Any]) -> None:
    with connection.cursor().copy("COPY codes FROM STDIN") as into:
        into.write_row(["a"])


def savepoint(_event: Event[Any], connection: psycopg.Connection[Any]) -> None:
    with connection.transaction():
        connection.execute("SELECT 1")


@pytest.mark.parametrize(
    ("effect", "what"),
    [
        (copy, "COPY"),
        (savepoint, "a savepoint"),
        (lambda _event, connection: connection.execute("SAVEPOINT mine"), "SAVEPOINT"),
    ],
    ids=["copy", "savepoint", "SAVEPOINT"],
)
def test_what_a_pipeline_cannot_do_says_what_to_declare(
    bench: Bench, effect: Effect, what: str
) -> None:
    """Without a pipeline it works."""
    record = bench.log.add()
    bench.handler.then = effect
    with pytest.raises(PoisonError, match=rf"{what} in a handler .*`pipeline = False`"):
        bench.run()

    bench.handler.pipeline = False
    bench.run()

    assert bench.ledger() == ids([record])


def test_a_handler_that_reads_in_a_pipeline_gets_its_rows(bench: Bench) -> None:
    """It sees what it wrote, and what earlier events of the batch wrote."""
    counts: list[Any] = []

    def count(_event: Event[Any], connection: psycopg.Connection[Any]) -> None:
        counts.append(connection.execute("SELECT count(*) FROM ledger").fetchone())

    for _ in range(3):
        bench.log.add()
    bench.handler.then = count
    bench.run()

    assert counts == [(1,), (2,), (3,)]


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

    with pytest.raises(DatabaseRefusedError, match=r'relation "ledger" does not exist .*42P01'):
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
    query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    for blocked in (1, 0, 1):
        until(lambda blocked=blocked: bench.sql(query) == [(blocked,)], "a blocked consumer")  # type: ignore[misc]


def test_a_server_that_refuses_for_a_while_is_waited_for(bench: Bench) -> None:
    """It took us before: no person is needed when it takes us again."""
    record = bench.log.add()
    bench.sql("CREATE ROLE visitor SUPERUSER LOGIN PASSWORD 'v'")
    admin, bench.url = bench.url, make_conninfo(bench.url, user="visitor", password="v")
    refused = iter([True])

    def shut_out(event: Event[Any], connection: psycopg.Connection[Any]) -> None:
        if next(refused, False):
            with connect(admin, autocommit=True) as other:
                other.execute("ALTER ROLE visitor NOLOGIN")
                pid = connection.info.backend_pid
                other.execute("SELECT pg_terminate_backend(%s)", [pid])
            connection.execute("SELECT 1")

    def let_in(_error: BaseException) -> None:
        if len(said.waits) == 3:
            with connect(admin, autocommit=True) as other:
                other.execute("ALTER ROLE visitor LOGIN")

    bench.handler.then = shut_out
    said = Recorded(on_wait=let_in)
    try:
        bench.run(said=said)
    finally:
        bench.url = admin
        bench.sql("DROP ROLE visitor")

    assert bench.ledger() == ids([record])
    assert said.waits[1:3] == ["PostgresUnavailableError", "PostgresUnavailableError"]

"""The engine over a broker in memory and a real Postgres: each event once and in order."""

from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from consumer import Event, EventHandler
from consumer.engine.apply import Applied
from consumer.errors import PositionError
from consumer.ports import Polled
from consumer.store.inbox import PostgresInbox
from tests.fix_bench import PARTITION, Bench, Recorded, ids
from tests.memory_broker import MemoryBroker


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

    class Zombie(MemoryBroker):
        """Its batch was polled before the other member took over."""

        def poll(self, timeout_s: float, most: int) -> Polled:
            polled = super().poll(timeout_s, most)
            if polled:
                bench.run()
                bench.sql("DELETE FROM processed_events")  # a prune that went too far
            return polled

    for _ in range(5):
        bench.log.add()

    with ExitStack() as opened:
        bench.loop(opened, Zombie(bench.log), said := Recorded()).run()

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


def test_the_session_is_bounded_where_the_user_has_set_nothing(bench: Bench) -> None:
    """A stopped member's open transaction ends; what the user set stays."""
    query = "SELECT current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout')"
    own = psycopg.conninfo.make_conninfo(bench.url, options="-c lock_timeout=3s")
    for url, expected in ((bench.url, ("10s", "5min")), (own, ("3s", "5min"))):
        with (
            PostgresInbox(url, "public", "ledger") as inbox,
            inbox.transaction(pipeline=False) as transaction,
        ):
            assert transaction.connection.execute(query.encode()).fetchone() == expected

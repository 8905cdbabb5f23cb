"""Several lanes over a broker in memory and a real Postgres: order, positions, revocation, the end."""

import threading
import time
from collections import defaultdict
from contextlib import ExitStack
from itertools import count
from typing import Any
from uuid import UUID, uuid4
from zlib import crc32

import psycopg
import pytest

from consumer import Event
from consumer.engine.apply import Applied
from consumer.errors import DatabaseRefusedError, PoisonError
from consumer.ports import Polled
from tests.fix_bench import PARTITION, Bench, Recorded, ids
from tests.memory_broker import MemoryBroker
from tests.waiting import until

LANES = 4


@pytest.fixture
def lanes(bench: Bench) -> Bench:
    """The bench with several lanes."""
    bench.lanes = LANES
    return bench


def test_every_event_takes_effect_once_and_each_keys_in_order(lanes: Bench) -> None:
    """Keys are spread over the lanes; some records come twice, some are passed over."""
    sent: dict[str, list[UUID]] = defaultdict(list)
    for number in range(600):
        key, identity = f"o-{number % 37}", uuid4()
        sent[key].append(identity)
        for _ in range(1 + (number % 10 == 0)):
            lanes.log.add(identity, key=key, partition=number % 37 % 3, gap=number % 2)

    said = lanes.run(most=25)

    applied: dict[str, list[UUID]] = defaultdict(list)
    key_of = {identity: key for key, own in sent.items() for identity in own}
    for identity in lanes.ledger():
        applied[key_of[identity]].append(identity)
    assert applied == sent
    assert said.applied == Applied(applied=600, duplicates_by_id=60)
    stored = lanes.sql("SELECT partition, next_offset FROM consumer_positions")
    assert dict(stored) == {place.number: lanes.log.end(place) for place in lanes.log.records}
    assert lanes.log.committed == {place: lanes.log.end(place) for place in lanes.log.records}


def key_of_lane(number: int) -> str:
    """A key that belongs to this lane, as long as keys go to lanes by their CRC."""
    return next(key for n in count() if crc32((key := f"o-{n}").encode()) % LANES == number)


def test_lanes_work_at_the_same_time(lanes: Bench) -> None:
    """Each waits for the others inside a handler: with fewer threads it would never end."""
    together = threading.Barrier(LANES, timeout=30)
    lanes.handler.then = lambda _event, _connection: bool(together.wait())
    for number in range(64):
        lanes.log.add(key=key_of_lane(number % LANES))

    lanes.run(most=20)

    assert len(lanes.ledger()) == 64


def test_a_position_never_passes_an_event_that_another_lane_has_not_applied(lanes: Bench) -> None:
    """The first event waits until all others are done."""
    records = [lanes.log.add(key=key_of_lane(number % LANES)) for number in range(40)]
    positions: list[Any] = []

    def wait_for_the_others(event: Event[Any], _connection: Any) -> None:
        if event.offset == 0:
            until(lambda: len(lanes.ledger()) == 30, "the other lanes")
            positions.append(lanes.position())

    lanes.handler.then = wait_for_the_others
    lanes.run(most=40)

    assert positions == [0]
    assert set(lanes.ledger()) == set(ids(records))
    assert lanes.position() == 40


def test_a_poison_event_stops_all_lanes_and_no_offset_passes_it(lanes: Bench) -> None:
    """What other lanes have applied beyond it is known by its ids."""
    records = [lanes.log.add(key=f"o-{number}") for number in range(40)]
    poison = ids(records)[3]

    def fail(event: Event[Any], _connection: Any) -> None:
        if event.id == poison:
            raise ValueError

    lanes.handler.then = fail
    with pytest.raises(PoisonError, match=str(poison)):
        lanes.run(most=5)
    assert lanes.log.committed.get(PARTITION, 0) <= 3
    assert (lanes.position() or 0) <= 3

    lanes.handler.then = lambda _event, _connection: None
    lanes.run()
    assert sorted(lanes.ledger()) == sorted(ids(records))


def test_a_lane_that_finds_a_missing_table_stops_the_consumer(lanes: Bench) -> None:
    """In words for a person."""
    lanes.log.add()
    lanes.sql("DROP TABLE ledger")

    with pytest.raises(DatabaseRefusedError, match="ledger"):
        lanes.run()


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_a_handler_that_ends_its_thread_ends_the_consumer(
    bench: Bench, error: type[BaseException]
) -> None:
    """Nothing of the event is committed, and nobody waits for a thread that is gone."""
    bench.log.add()

    def leave(_event: Event[Any], _connection: Any) -> None:
        raise error

    bench.handler.then = leave
    with pytest.raises(error):
        bench.run()
    assert bench.ledger() == []
    assert bench.position() is None


class Taking(MemoryBroker):
    """Takes the partition away as soon as its first event is in a handler."""

    def __init__(self, bench: Bench, patience_s: float) -> None:
        super().__init__(bench.log)
        self.in_handler, self.go_on = threading.Event(), threading.Event()
        self._patience_s, self._taken = patience_s, False

    def poll(self, timeout_s: float, most: int) -> Polled:
        if self.in_handler.is_set() and not self._taken:
            self._taken = True
            self.take_away([PARTITION], self._patience_s)
        return super().poll(timeout_s, most)

    def handler(self, _event: Event[Any], connection: psycopg.Connection[Any]) -> None:
        self.in_handler.set()
        self.go_on.wait(30)
        connection.execute("SELECT 1")


def test_a_batch_that_runs_when_its_partition_is_taken_away_may_end(bench: Bench) -> None:
    """Its offset is committed; what was queued behind it is the next member's."""
    records = [bench.log.add() for _ in range(3)]
    broker = Taking(bench, patience_s=30)
    bench.handler.then = broker.handler
    broker.on_let_go = broker.go_on.set

    with ExitStack() as opened:
        bench.loop(opened, broker, Recorded(), most=1).run()

    assert bench.ledger() == ids(records)[:1]
    assert bench.log.committed[PARTITION] == bench.position() == 1
    bench.handler.then = lambda _event, _connection: None
    bench.run()
    assert bench.ledger() == ids(records)


def test_a_batch_that_does_not_end_in_time_is_rolled_back_when_its_partition_goes(
    bench: Bench,
) -> None:
    """The next member applies it; the handler's late statement meets a broken connection."""
    records = [bench.log.add() for _ in range(3)]
    broker = Taking(bench, patience_s=0.1)
    bench.handler.then = broker.handler
    broker.on_cut = broker.go_on.set

    with ExitStack() as opened:
        bench.loop(opened, broker, said := Recorded(), most=1).run()

    assert bench.ledger() == []
    assert PARTITION not in bench.log.committed
    assert len(said.waits) == 1
    bench.handler.then = lambda _event, _connection: None
    bench.run()
    assert bench.ledger() == ids(records)


def test_a_full_queue_pauses_the_partitions_and_lets_them_flow_again(bench: Bench) -> None:
    """Polls go on meanwhile, so that the group stays alive."""
    records = [bench.log.add() for _ in range(50)]
    pauses: list[int] = []

    class Counting(MemoryBroker):
        def pause(self) -> None:
            super().pause()
            pauses.append(len(bench.ledger()))

    slow = threading.Event()
    bench.handler.then = lambda event, _connection: bool(event.offset or slow.wait(1))
    with ExitStack() as opened:
        bench.loop(opened, Counting(bench.log), Recorded(), most=5).run()

    assert pauses
    assert bench.ledger() == ids(records)


def test_a_stop_that_a_handler_outlasts_rolls_its_batch_back(bench: Bench) -> None:
    """Within the time that was given; the next start applies the event."""
    record = bench.log.add()
    in_handler, go_on = threading.Event(), threading.Event()

    def outlast(_event: Event[Any], connection: psycopg.Connection[Any]) -> None:
        in_handler.set()
        go_on.wait(30)
        connection.execute("SELECT 1")

    bench.handler.then, bench.shutdown_s = outlast, 0.2
    stopping = threading.Event()
    with ExitStack() as opened:
        loop = bench.loop(opened, MemoryBroker(bench.log), said := Recorded(), stopping=stopping)
        running = threading.Thread(target=loop.run)
        running.start()
        assert in_handler.wait(30)
        began = time.monotonic()
        stopping.set()
        running.join(30)
        took = time.monotonic() - began
        go_on.set()

    assert said.cut_offs == 1
    assert took < 5
    assert bench.ledger() == []
    bench.handler.then = lambda _event, _connection: None
    bench.run()
    assert bench.ledger() == ids([record])

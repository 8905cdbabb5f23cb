"""Hand-written loops without a framework: what the SQL and the client allow."""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import psycopg

from benchmarks.contestants.report import EFFECT, EFFECT_OF_MANY, Report

TOPIC, GROUP = os.environ["BENCH_TOPIC"], os.environ["BENCH_GROUP"]
SERVERS = os.environ["INBOX_KAFKA_BOOTSTRAP_SERVERS"]
EVENTS = int(os.environ["BENCH_EVENTS"])
BATCH = 500
CLAIM = (
    "INSERT INTO processed_events (consumer, event_id) SELECT %s, event_id "
    "FROM unnest(%s::uuid[]) AS event_id ORDER BY event_id ON CONFLICT DO NOTHING RETURNING event_id"
)
CLAIM_ONE = (
    "INSERT INTO processed_events (consumer, event_id) VALUES (%s, %s) ON CONFLICT DO NOTHING"
)
POSITION = (
    "INSERT INTO consumer_positions AS p (consumer, topic_id, partition, topic, next_offset) "
    "SELECT %s, '00000000-0000-0000-0000-000000000000', partition, %s, next_offset "
    "FROM unnest(%s::integer[], %s::bigint[]) AS new (partition, next_offset) "
    "ON CONFLICT (consumer, topic_id, partition) DO UPDATE SET next_offset = EXCLUDED.next_offset"
)


class Plain(NamedTuple):
    """What a loop reads of a record."""

    id: str
    key: str
    value: dict[str, Any]
    partition: int
    offset: int


Polls = Iterator[list[Plain]]
Client = Callable[[], tuple[Polls, Callable[[], None]]]


def kafka_python() -> tuple[Polls, Callable[[], None]]:
    """Batches by kafka-python, and what commits their offsets."""
    from kafka import KafkaConsumer  # noqa: PLC0415  # each loop loads its own client

    consumer = KafkaConsumer(
        TOPIC,
        bootstrap_servers=SERVERS.split(","),
        group_id=GROUP,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )

    def polls() -> Polls:
        while True:
            polled = consumer.poll(timeout_ms=250, max_records=BATCH)
            yield [
                Plain(_id(r.headers), r.key.decode(), json.loads(r.value), r.partition, r.offset)
                for records in polled.values()
                for r in records
            ]

    return polls(), consumer.commit


def confluent() -> tuple[Polls, Callable[[], None]]:
    """Batches by confluent-kafka, and what commits their offsets."""
    from confluent_kafka import Consumer  # noqa: PLC0415  # each loop loads its own client

    consumer = Consumer(
        {
            "bootstrap.servers": SERVERS,
            "group.id": GROUP,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([TOPIC])

    def polls() -> Polls:
        while True:
            yield [
                Plain(
                    _id(m.headers()),
                    m.key().decode(),
                    json.loads(m.value()),
                    m.partition(),
                    m.offset(),
                )
                for m in consumer.consume(BATCH, 0.25)
                if m.error() is None
            ]

    return polls(), lambda: consumer.commit(asynchronous=False)


def naive(connection: psycopg.Connection[Any], batch: list[Plain]) -> None:
    """One transaction an event."""
    for each in batch:
        with connection.transaction():
            if connection.execute(CLAIM_ONE, (GROUP, each.id)).rowcount:
                connection.execute(EFFECT, (each.key, each.value["amount"]))


def reads(connection: psycopg.Connection[Any], batch: list[Plain]) -> None:
    """One transaction an event, which reads before it writes."""
    for each in batch:
        with connection.transaction():
            if connection.execute(CLAIM_ONE, (GROUP, each.id)).rowcount:
                connection.execute(
                    "SELECT amount FROM totals WHERE customer = %s", [each.key]
                ).fetchone()
                connection.execute(EFFECT, (each.key, each.value["amount"]))


def pipelined(connection: psycopg.Connection[Any], batch: list[Plain]) -> None:
    """One transaction a batch, no round trip an event."""
    with connection.pipeline(), connection.transaction():
        for each in _fresh(connection, batch):
            connection.execute(EFFECT, (each.key, each.value["amount"]))
        _move_position(connection, batch)


def set_based(connection: psycopg.Connection[Any], batch: list[Plain]) -> None:
    """One transaction and one statement a batch."""
    with connection.pipeline(), connection.transaction():
        fresh = _fresh(connection, batch)
        amounts = [each.value["amount"] for each in fresh]
        connection.execute(EFFECT_OF_MANY, ([each.key for each in fresh], amounts))
        _move_position(connection, batch)


def nothing(_connection: psycopg.Connection[Any], _batch: list[Plain]) -> None:
    """No effect: what the client and the JSON alone take."""


def _fresh(connection: psycopg.Connection[Any], batch: Iterable[Plain]) -> list[Plain]:
    ids = [each.id for each in batch]
    claimed = {str(row[0]) for row in connection.execute(CLAIM, (GROUP, ids)).fetchall()}
    return [each for each in batch if each.id in claimed]


def _move_position(connection: psycopg.Connection[Any], batch: Iterable[Plain]) -> None:
    ends = {each.partition: each.offset + 1 for each in batch}
    connection.execute(POSITION, (GROUP, TOPIC, list(ends), list(ends.values())))


def _id(headers: Iterable[tuple[str, bytes]]) -> str:
    return next(value for name, value in headers if name == "id").decode()


def main() -> None:
    """Consume as many events as there are."""
    arguments = argparse.ArgumentParser(description=__doc__)
    clients = {"kafka-python": kafka_python, "confluent-kafka": confluent}
    effects = {each.__name__: each for each in (naive, reads, pipelined, set_based, nothing)}
    arguments.add_argument("client", choices=clients)
    arguments.add_argument("effect", choices=effects)
    given = arguments.parse_args()
    polls, commit = clients[given.client]()
    _run(polls, commit, effects[given.effect])


def _run(
    polls: Polls,
    commit: Callable[[], None],
    effect: Callable[[psycopg.Connection[Any], list[Plain]], None],
) -> None:
    report, left, commit_at = Report(), EVENTS, 0.0
    with psycopg.connect(os.environ["INBOX_DATABASE_URL"], autocommit=True) as connection:
        for batch in polls:
            if batch:
                report.begin()
                effect(connection, batch)
                report.count(len(batch))
                left -= len(batch)
            if time.monotonic() > commit_at or left <= 0:  # as often as this library does
                commit()
                commit_at = time.monotonic() + 1
            if left <= 0:
                break
    report.print()


if __name__ == "__main__":
    main()

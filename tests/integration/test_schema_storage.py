"""The storage settings do what the migration's comments say of them."""

from typing import Any
from uuid import uuid4

import pytest
from psycopg import errors

from consumer.store.connecting import connect

PARTITIONS, UPDATES = 100, 5


def test_positions_are_updated_in_place(database: str) -> None:
    """Every batch moves one: without room in the page, each would write both index and heap."""
    with connect(database, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO consumer_positions SELECT 'stock', %s, number, 'outbox.order', 0"
            " FROM generate_series(1, %s) AS number",
            [uuid4(), PARTITIONS],
        )
        for _ in range(UPDATES):
            connection.execute("UPDATE consumer_positions SET next_offset = next_offset + 1")
        connection.execute("SELECT pg_stat_force_next_flush()")
        counted = connection.execute(
            "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables"
            " WHERE relname = 'consumer_positions'"
        ).fetchone()
    assert counted == (UPDATES * PARTITIONS, UPDATES * PARTITIONS)


def test_the_pruner_finds_old_rows_by_index(database: str) -> None:
    """Oldest first, without a sort and without reading the young ones."""
    with connect(database, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO processed_events SELECT 'stock', gen_random_uuid(), now() - n * interval '1 s'"
            " FROM generate_series(1, 20000) AS n"
        )
        connection.execute("ANALYZE processed_events")
        plan = connection.execute(
            "EXPLAIN SELECT ctid FROM processed_events WHERE consumer = 'stock'"
            " AND processed_at < now() - interval '5 h' ORDER BY processed_at LIMIT 1000"
        ).fetchall()
    text = "\n".join(line for (line,) in plan)
    assert "using processed_events_by_age" in text
    assert "Sort" not in text


@pytest.mark.parametrize(("partition", "next_offset"), [(-1, 0), (0, -1)])
def test_a_position_that_kafka_cannot_have_is_refused(
    database: str, partition: int, next_offset: int
) -> None:
    """A negative one would be taken for one of Kafka's special offsets."""
    row: list[Any] = [uuid4(), partition, next_offset]
    with connect(database) as connection, pytest.raises(errors.CheckViolation):
        connection.execute("INSERT INTO consumer_positions VALUES ('c', %s, %s, 't', %s)", row)

"""From an outbox row to a Kafka record, through the real Debezium with the connector file we ship."""

from typing import Any
from uuid import uuid4

import pytest
from kafka.admin import KafkaAdminClient
from kafka.errors import InvalidTopicError

from consumer import Event, Outbox, OutboxEvent
from consumer.handler import Declaration
from consumer.slots.facts import read_slots
from consumer.store.connecting import connect
from consumer.wire.decode import decode
from tests.fix_stack import Chain
from tests.waiting import until

EVERYTHING = Declaration({}, {}, everything=True, any_payload=None)


def publish(chain: Chain, **facts: Any) -> Any:
    with connect(chain.shop) as connection:
        return Outbox().publish(connection, **facts)


def an_aggregate_type() -> str:
    return f"t-{uuid4().hex}"


def test_an_event_arrives_with_the_bytes_and_headers_that_the_consumer_reads(chain: Chain) -> None:
    """Key, value, id, type, aggregate type, time and extra headers; nothing else."""
    aggregate = an_aggregate_type()
    identity = publish(
        chain,
        aggregate_type=aggregate,
        aggregate_id="o-1",
        event_type="OrderPlaced",
        payload={"n": 1, "total": 1.5, "empty": [], "null": None},
        headers={"traceparent": "00-1"},
    )

    (record,) = chain.kafka.read(f"outbox.{aggregate}", 1)

    assert record.key == b"o-1"
    assert record.value == b'{"n": 1, "null": null, "empty": [], "total": 1.5}'
    assert [name for name, _ in record.headers] == [
        "id",
        "eventType",
        "aggregateType",
        "createdAt",
        "headers",
    ]
    event = decode(record, EVERYTHING)
    assert isinstance(event, Event)
    assert (event.id, event.type, event.aggregate_type) == (identity, "OrderPlaced", aggregate)
    assert event.header("traceparent") == b"00-1"
    (created_at,) = chain.sql(chain.shop, "SELECT created_at FROM outbox WHERE id = %s", identity)
    assert event.timestamp == created_at[0]


@pytest.mark.parametrize(
    "row",
    [
        {"payload": "null"},
        {"payload": "[]"},
        {"payload": '"text"'},
        {"payload": '"java.nio.HeapByteBuffer[pos=0 lim=7 cap=7]"'},
        {"headers": "{}"},
        {"aggregate_id": " "},
        {"aggregate_id": "ключ\nwith\tcontrol"},
        {"event_type": "Ünï/code with spaces"},
        {"created_at": "1970-01-01 00:00:00+00"},
        {"created_at": "9999-12-31 23:59:59.999999+00"},
        {"payload": '"' + "x" * 999_900 + '"'},
        {"payload": '"' + "ж" * 499_900 + '"'},
    ],
    ids=lambda row: str(row)[:40],
)
def test_every_row_that_the_table_accepts_flows(chain: Chain, row: dict[str, str]) -> None:
    """The edges of the constraints; an event after it arrives as well."""
    aggregate = an_aggregate_type()
    for facts in (row, {}):
        values = {
            "aggregate_id": "o-1",
            "event_type": "X",
            "payload": "{}",
            "headers": None,
            "created_at": "2026-01-01 00:00:00+00",
        } | facts
        chain.sql(
            chain.shop,
            "INSERT INTO outbox (id, aggregate_type, aggregate_id, event_type, payload, headers,"
            " created_at) VALUES (%s, %s, %s, %s, %s, %s, %s)",
            uuid4(),
            aggregate,
            *values.values(),
        )

    records = chain.kafka.read(f"outbox.{aggregate}", 2)

    assert len(records) == 2
    for record in records:
        assert isinstance(decode(record, EVERYTHING), Event)


def test_a_row_with_the_longest_aggregate_type_flows(chain: Chain) -> None:
    """242 characters and `outbox.` are Kafka's 249."""
    aggregate = uuid4().hex + "a" * 210
    publish(chain, aggregate_type=aggregate, aggregate_id="1", event_type="X", payload=1)

    assert len(chain.kafka.read(f"outbox.{aggregate}", 1)) == 1


def test_kafka_makes_no_topic_whose_name_differs_only_by_dot_and_underscore(chain: Chain) -> None:
    """Why the table refuses a dot in an aggregate type: such a row would stop the connector."""
    name = uuid4().hex
    admin = KafkaAdminClient(bootstrap_servers=chain.kafka.address)
    try:
        admin.create_topics({f"outbox.{name}_x": {"num_partitions": 1, "replication_factor": 1}})
        with pytest.raises(InvalidTopicError):
            admin.create_topics(
                {f"outbox.{name}.x": {"num_partitions": 1, "replication_factor": 1}}
            )
    finally:
        admin.close()


def test_updates_deletes_and_truncates_of_the_outbox_are_no_events(chain: Chain) -> None:
    """Housekeeping does not travel, and what comes after it does."""
    aggregate = an_aggregate_type()
    publish(chain, aggregate_type=aggregate, aggregate_id="1", event_type="X", payload=1)
    chain.kafka.read(f"outbox.{aggregate}", 1)
    chain.sql(chain.shop, "UPDATE outbox SET event_type = 'Y'")
    chain.sql(chain.shop, "DELETE FROM outbox")
    chain.sql(chain.shop, "TRUNCATE outbox")
    publish(chain, aggregate_type=aggregate, aggregate_id="1", event_type="Z", payload=2)

    records = chain.kafka.read(f"outbox.{aggregate}", 2)

    assert [dict(record.headers)["eventType"] for record in records] == [b"X", b"Z"]


def test_an_aborted_transactions_events_never_arrive(chain: Chain) -> None:
    """The WAL holds them, Kafka does not."""
    aggregate = an_aggregate_type()
    facts = {"aggregate_type": aggregate, "aggregate_id": "1", "payload": 1}
    with connect(chain.shop) as connection:
        Outbox().publish(connection, event_type="Aborted", **facts)
        connection.rollback()
        Outbox().publish(connection, event_type="Committed", **facts)
        connection.commit()

    (record,) = chain.kafka.read(f"outbox.{aggregate}", 1)

    assert dict(record.headers)["eventType"] == b"Committed"


def test_events_of_one_key_arrive_in_the_order_in_which_they_were_written(chain: Chain) -> None:
    """Across transactions, on one partition."""
    aggregate = an_aggregate_type()
    names = {"aggregate_type": aggregate, "event_type": "X"}
    with connect(chain.shop) as connection:
        for start in range(0, 200, 20):
            Outbox().publish_many(
                connection,
                [
                    OutboxEvent(aggregate_id=f"k-{number % 4}", payload=number, **names)
                    for number in range(start, start + 20)
                ],
            )
            connection.commit()

    records = chain.kafka.read(f"outbox.{aggregate}", 200)

    for key in {record.key for record in records}:
        of_key = [record for record in records if record.key == key]
        assert len({record.partition for record in of_key}) == 1
        numbers = [int(record.value) for record in sorted(of_key, key=lambda r: r.offset)]
        assert numbers == sorted(numbers)
        assert len(numbers) == 50


def test_an_idle_outboxs_slot_moves_while_others_write(chain: Chain) -> None:
    """The heartbeat's message does it; a heartbeat without its query would not."""
    chain.sql(chain.shop, "CREATE TABLE IF NOT EXISTS busy (filler text)")
    for _ in range(3):
        chain.sql(
            chain.shop, "INSERT INTO busy SELECT repeat('x', 900) FROM generate_series(1, 9000)"
        )

    def lag() -> int:
        (slot,) = [each for each in read_slots(chain.shop) if each.name == "outbox"]
        return slot.delivery_lag_bytes or 0

    until(lambda: lag() < 100_000, "the slot to follow 25 MB of other tables' WAL")

"""Our member of a Kafka group, on a real broker."""

import re
from collections.abc import Iterable, Mapping
from uuid import uuid4

import pytest
from kafka.admin import KafkaAdminClient

from consumer.errors import KafkaUnavailableError, SettingsError
from consumer.handler import Topics
from consumer.kafka import KafkaBroker, broker_answers
from consumer.ports import Partition
from tests.builders import headers
from tests.servers import KafkaServer
from tests.waiting import until

PARTITIONS = 6


class Idle:
    """An owner that works on nothing."""

    def let_go(self, partitions: Iterable[Partition]) -> None:
        pass

    def works_for(self, partitions: Iterable[Partition]) -> bool:
        return False

    def cut(self, partitions: Iterable[Partition]) -> None:
        pass

    def next_offsets(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        return {}

    def forget(self, partitions: Iterable[Partition]) -> None:
        pass


def a_member(kafka: KafkaServer, group: str, topics: Topics) -> KafkaBroker:
    return KafkaBroker(kafka.address, group, topics, revoke_timeout_s=5)


def test_a_rejoin_that_ends_after_the_polls_timeout_is_not_forgotten(kafka: KafkaServer) -> None:
    """The member hung: kafka-python dropped the answer, and the partitions stayed paused for ever."""
    topic = kafka.make_topic(PARTITIONS)
    with a_member(kafka, topic, (topic,)) as broker:
        broker.subscribe(Idle())
        until(lambda: broker.poll(0.2, 1) or len(broker.unplaced()) == PARTITIONS, "the join")
        admin = KafkaAdminClient(bootstrap_servers=kafka.address)
        admin.create_partitions({topic: PARTITIONS + 2})
        admin.close()
        cluster = broker._consumer._cluster

        def known() -> bool:
            cluster.request_update()
            return len(cluster.partitions_for_topic(topic)) == PARTITIONS + 2

        until(known, "the new partitions in the client's metadata")

        def rejoined() -> bool:
            broker.poll(0.001, 1)  # shorter than any answer takes
            return len(broker.unplaced()) == PARTITIONS + 2

        until(rejoined, "the rejoin")


def test_assigned_partitions_give_nothing_until_they_are_placed(kafka: KafkaServer) -> None:
    """The engine looks up its positions first."""
    topic = kafka.make_topic(PARTITIONS)
    kafka.produce(topic, *((f"k-{n}", b"1", headers(id=str(uuid4()))) for n in range(20)))
    with a_member(kafka, topic, (topic,)) as broker:
        broker.subscribe(Idle())
        polled: list[object] = []

        def assigned() -> bool:
            polled.extend(broker.poll(0.1, 100))
            return len(broker.unplaced()) == PARTITIONS

        until(assigned, "the partitions")
        polled.extend(broker.poll(0.5, 100))
        assert polled == []
        placed = broker.committed(broker.unplaced())
        assert set(placed.values()) == {0}
        assert sum(broker.end_offsets(placed).values()) == 20

        broker.start_at(placed)
        records: list[object] = []

        def all_read() -> bool:
            for of_partition in broker.poll(0.2, 100).values():
                records.extend(of_partition)
            return len(records) == 20

        until(all_read, "the records")


def test_a_pattern_subscribes_with_its_flags(kafka: KafkaServer) -> None:
    """Every topic that it matches, as re would."""
    topics = {kafka.make_topic(), kafka.make_topic()}
    for topic in topics:
        kafka.produce(topic, ("k", b"1", headers(id=str(uuid4()))))
    pattern = re.compile("|".join(topics).upper(), re.IGNORECASE)
    with a_member(kafka, str(uuid4()), pattern) as broker:
        assert broker.missing_topics() == []
        broker.subscribe(Idle())
        found: set[str] = set()

        def both() -> bool:
            unplaced = broker.unplaced()
            if unplaced:
                broker.start_at(broker.committed(unplaced))
            found.update(partition.topic for partition in broker.poll(0.2, 10))
            return found == topics

        until(both, "records of both topics")


@pytest.mark.parametrize("servers", ["127.0.0.1:1", "nowhere.invalid:9092", "[::1]:1"])
def test_a_broker_that_is_not_there_is_told_with_its_address(servers: str) -> None:
    """Soon, and without a thread left behind."""
    assert not broker_answers(servers)
    with pytest.raises(KafkaUnavailableError) as caught:
        KafkaBroker(servers, "g", ("t",), revoke_timeout_s=5)
    assert f"Kafka at {servers} does not answer" in str(caught.value)


@pytest.mark.parametrize("servers", ["", "host", "host:", "host:x"])
def test_an_address_that_is_none_is_told(servers: str) -> None:
    """With the variable's name."""
    with pytest.raises(SettingsError, match="INBOX_KAFKA_BOOTSTRAP_SERVERS: expected host:port"):
        KafkaBroker(servers, "g", ("t",), revoke_timeout_s=5)


def test_one_server_of_several_is_enough(kafka: KafkaServer) -> None:
    """The first is down."""
    assert broker_answers(f"127.0.0.1:1,{kafka.address}")

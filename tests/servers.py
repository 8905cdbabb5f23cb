"""Servers for tests: from pip, or from Docker by testcontainers."""

import contextlib
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from psycopg.conninfo import make_conninfo

from consumer.event import Headers
from consumer.local.postgres import Postgres
from consumer.local.process import is_root, stop
from consumer.local.state import State
from tests.waiting import until

POSTGRES_IMAGE = "postgres:18"
KAFKA_IMAGE = "apache/kafka:4.1.0"


@dataclass(frozen=True)
class PostgresServer:
    """A running server and how to reach its databases as superuser."""

    superuser_url: str

    def url(self, database: str) -> str:
        """A conninfo string for `database`."""
        return make_conninfo(self.superuser_url, dbname=database)


@dataclass(frozen=True)
class KafkaServer:
    """A running broker, and what tests do with its topics."""

    address: str

    def make_topic(self, partitions: int = 1) -> str:
        """A topic that no other test knows."""
        name = f"outbox.t-{uuid4().hex}"
        admin = KafkaAdminClient(bootstrap_servers=self.address)
        admin.create_topics({name: {"num_partitions": partitions, "replication_factor": 1}})
        admin.close()
        return name

    def produce(self, topic: str, *records: tuple[str, bytes | None, Headers]) -> None:
        """Send (key, value, headers) to the topic, without Connect."""
        producer = KafkaProducer(bootstrap_servers=self.address)
        for key, value, extra in records:
            producer.send(topic, key=key.encode(), value=value, headers=list(extra)).get(timeout=20)
        producer.close()

    def read(self, topic: str, count: int) -> list[Any]:
        """The first `count` records of a topic, waited for, by partition and offset."""
        consumer = KafkaConsumer(
            bootstrap_servers=self.address,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            allow_auto_create_topics=False,
        )
        found: list[Any] = []
        with contextlib.closing(consumer):
            until(lambda: topic in consumer.topics(), f"topic {topic}")
            partitions = consumer.partitions_for_topic(topic)
            consumer.assign([TopicPartition(topic, number) for number in partitions])

            def enough() -> bool:
                for records in consumer.poll(timeout_ms=200).values():
                    found.extend(records)
                return len(found) >= count

            until(enough, f"{count} records in {topic}")
        return found


@contextmanager
def a_folder(name: str) -> Iterator[Path]:
    """A folder that Postgres, which refuses root, may enter; pytest's own tmp_path is not."""
    folder = Path(tempfile.mkdtemp(prefix=f"debezium-inbox-{name}-"))
    folder.chmod(0o711 if is_root() else 0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def local_postgres() -> Iterator[PostgresServer]:
    """A server from pip, without fsync."""
    with a_folder("postgres") as folder:
        server = Postgres(folder / "postgres", State.new().ports["postgres"], durable=False)
        identity = server.start()
        try:
            until(server.answers, "Postgres to answer")
            yield PostgresServer(server.url())
        finally:
            stop(identity, signal.SIGINT, 10)


@contextmanager
def container_postgres() -> Iterator[PostgresServer]:
    """A server from Docker; skips with the reason where there is no engine or no image."""
    import docker.errors  # noqa: PLC0415  # only with --backend=containers
    from testcontainers.postgres import PostgresContainer  # noqa: PLC0415

    try:
        container = PostgresContainer(POSTGRES_IMAGE).with_command("-c wal_level=logical")
        container.start()
    except docker.errors.DockerException as error:
        pytest.skip(f"no Docker engine, or no image {POSTGRES_IMAGE}: {error}")
    try:
        yield PostgresServer(container.get_connection_url(driver=None))
    finally:
        container.stop()


@contextmanager
def container_kafka() -> Iterator[KafkaServer]:
    """A broker from Docker; skips with the reason where there is no engine or no image."""
    import docker.errors  # noqa: PLC0415  # only with --backend=containers
    from testcontainers.kafka import KafkaContainer  # noqa: PLC0415

    try:
        container = KafkaContainer(KAFKA_IMAGE).with_kraft()
        container.start()
    except docker.errors.DockerException as error:
        pytest.skip(f"no Docker engine, or no image {KAFKA_IMAGE}: {error}")
    try:
        yield KafkaServer(container.get_bootstrap_server())
    finally:
        container.stop()

"""Fixtures of the stack tier: the whole real chain, one for the session."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

from consumer.connect import apply as connector
from consumer.connect.client import ConnectClient
from consumer.connect.file import read_connector_file
from consumer.event import Headers
from consumer.local.stack import Stack
from consumer.slots.facts import slot_holder
from consumer.store import migrations
from consumer.store.connecting import connect
from consumer.store.migrations import Target
from tests.builders import headers
from tests.servers import a_folder
from tests.waiting import until

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Chain:
    """The running chain: outbox table → Debezium → Kafka → inbox tables."""

    stack: Stack
    settings: Mapping[str, str]

    @property
    def shop(self) -> str:
        """The outbox's database."""
        return self.settings["INBOX_SOURCE_DATABASE_URL"]

    @property
    def warehouse(self) -> str:
        """The inbox's database."""
        return self.settings["INBOX_DATABASE_URL"]

    @property
    def kafka(self) -> str:
        """Kafka's address."""
        return self.settings["INBOX_KAFKA_BOOTSTRAP_SERVERS"]

    @property
    def connect(self) -> str:
        """Kafka Connect's address."""
        return self.settings["INBOX_CONNECT_URL"]

    def sql(self, url: str, query: str, *values: Any) -> list[Any]:
        """Run one statement and answer its rows."""
        with connect(url, autocommit=True) as connection:
            cursor = connection.execute(query.encode(), values or None)
            return cursor.fetchall() if cursor.description else []

    def make_topic(self, partitions: int = 1) -> str:
        """A topic that no other test knows."""
        name = f"outbox.t-{uuid4().hex}"
        admin = KafkaAdminClient(bootstrap_servers=self.kafka)
        admin.create_topics({name: {"num_partitions": partitions, "replication_factor": 1}})
        admin.close()
        return name

    def produce(self, topic: str, *records: tuple[str, bytes | None, Headers]) -> None:
        """Send (key, value, headers) to the topic, without Connect."""
        producer = KafkaProducer(bootstrap_servers=self.kafka)
        for key, value, extra in records:
            producer.send(topic, key=key.encode(), value=value, headers=list(extra)).get(timeout=20)
        producer.close()

    def read(self, topic: str, count: int) -> list[Any]:
        """The first `count` records of a topic, waited for, by partition and offset."""
        consumer = KafkaConsumer(
            bootstrap_servers=self.kafka,
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


@dataclass
class Command:
    """A `debezium-inbox` process and what it says."""

    process: "subprocess.Popen[str]"
    log: Path
    signalled: bool = field(default=False)

    def said(self) -> str:
        """All of its output so far."""
        return self.log.read_text()

    def wait_for(self, text: str) -> None:
        """Wait until its output holds `text`."""
        until(lambda: text in self.said(), f"{text!r} in the output:\n{self.said()}")

    def terminate(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send the signal and answer the exit status."""
        self.process.send_signal(number)
        return self.exit_status()

    def exit_status(self) -> int:
        """Wait for the end."""
        return self.process.wait(timeout=60)


@pytest.fixture(scope="session")
def chain(request: pytest.FixtureRequest) -> Iterator[Chain]:
    """The stack with both schemas applied and the outbox connector running."""
    with a_folder("stack") as folder:
        stack = Stack(folder / "stack", durable=False)
        try:
            stack.up()
            running = Chain(stack, stack.environment())
            _prepare(running)
            yield running
        finally:
            stack.down()


def _prepare(chain: Chain) -> None:
    for url, target in ((chain.shop, Target.OUTBOX), (chain.warehouse, Target.INBOX)):
        with connect(url, autocommit=True) as connection:
            migrations.apply(connection, target, "public")
    with ConnectClient(chain.connect) as client:
        file = read_connector_file(ROOT / "connectors" / "outbox.json")
        connector.apply(client, file, slot_holder=lambda: slot_holder(chain.shop, "outbox"))


@pytest.fixture
def start(chain: Chain, tmp_path: Path) -> Iterator[Callable[..., Command]]:
    """Starts `debezium-inbox …` with the chain's settings; whatever runs at the end is killed."""
    started: list[Command] = []

    def run(*arguments: str, **environment: str) -> Command:
        log = tmp_path / f"command-{len(started)}.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "consumer", *arguments],
                env={**os.environ, **chain.settings, "PYTHONPATH": str(ROOT), **environment},
                cwd=tmp_path,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
            )
        started.append(Command(process, log))
        return started[-1]

    yield run
    for command in started:
        command.process.kill()
        command.process.wait()


def outbox_headers(event_type: str = "OrderPlaced", event_id: object = None) -> Headers:
    """What the connector sends with an event."""
    return headers(id=str(event_id or uuid4()), eventType=event_type)

"""Fixtures of the stack tier: the whole real chain, one for the session."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from consumer.connect import apply as connector
from consumer.connect.client import ConnectClient
from consumer.connect.file import ConnectorFile, read_connector_file
from consumer.event import Headers
from consumer.local.stack import Stack
from consumer.slots.facts import slot_holder
from consumer.store import migrations
from consumer.store.connecting import connect
from consumer.store.migrations import Target
from tests.builders import headers
from tests.servers import KafkaServer, a_folder, container_kafka
from tests.waiting import until

ROOT = Path(__file__).parents[1]
SHIPPED = ROOT / "connectors" / "outbox.json"


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
    def kafka(self) -> KafkaServer:
        """Its broker."""
        return KafkaServer(self.settings["INBOX_KAFKA_BOOTSTRAP_SERVERS"])

    @property
    def connect(self) -> str:
        """Kafka Connect's address."""
        return self.settings["INBOX_CONNECT_URL"]

    def sql(self, url: str, query: str, *values: Any) -> list[Any]:
        """Run one statement and answer its rows."""
        with connect(url, autocommit=True) as connection:
            cursor = connection.execute(query.encode(), values or None)
            return cursor.fetchall() if cursor.description else []


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
    if request.config.getoption("--backend") == "containers":
        pytest.skip("the whole chain comes from pip only; docker-compose.yml is its other form")
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
        file = read_connector_file(SHIPPED)
        connector.apply(client, file, slot_holder=lambda: slot_holder(chain.shop, "outbox"))


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Iterator[KafkaServer]:
    """A broker: the chain's, or one from Docker."""
    if request.config.getoption("--backend") == "containers":
        with container_kafka() as server:
            yield server
    else:
        yield request.getfixturevalue("chain").kafka


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


@pytest.fixture
def client(chain: Chain) -> Iterator[ConnectClient]:
    """A client of the chain's Connect."""
    with ConnectClient(chain.connect) as opened:
        yield opened


@pytest.fixture
def own(chain: Chain, client: ConnectClient) -> Iterator[ConnectorFile]:
    """The shipped connector with names of its own; it and its slot are gone at the end."""
    name = f"c{uuid4().hex}"
    file = read_connector_file(SHIPPED).renamed(name)
    yield replace(file, config={**file.config, "slot.name": name, "topic.prefix": name})
    client.delete(name)
    drop = (
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s"
    )
    until(lambda: slot_holder(chain.shop, name) is None, "the slot to be let go")
    chain.sql(chain.stack.superuser_url("shop"), drop, name)


def outbox_headers(event_type: str = "OrderPlaced", event_id: object = None) -> Headers:
    """What the connector sends with an event."""
    return headers(id=str(event_id or uuid4()), eventType=event_type)

"""`connector apply`, `status` and `delete` against the real Connect."""

import json
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from consumer import Outbox
from consumer.connect import apply as connector
from consumer.connect.apply import Change
from consumer.connect.client import ConnectClient
from consumer.connect.file import ConnectorFile
from consumer.errors import ConnectorConfigError, ConnectorFailedError, ConnectUnavailableError
from consumer.slots.facts import slot_holder
from consumer.store.connecting import connect
from tests.fix_stack import ROOT, Chain, Command
from tests.waiting import until

Start = Callable[..., Command]


def test_apply_creates_leaves_and_updates(
    chain: Chain, client: ConnectClient, own: ConnectorFile
) -> None:
    """PUT only on difference, and each time it waits until the right task holds the slot."""

    def holder() -> int | None:
        return slot_holder(chain.shop, own.name)

    assert connector.apply(client, own, slot_holder=holder).change is Change.CREATED
    first = holder()
    assert first is not None

    assert connector.plan(client, own).change is Change.UNCHANGED
    assert connector.apply(client, own, slot_holder=holder).change is Change.UNCHANGED
    assert holder() == first

    changed = ConnectorFile(own.name, {**own.config, "poll.interval.ms": "60"}, nested=False)
    planned = connector.apply(client, changed, slot_holder=holder)
    assert (planned.change, planned.differing) == (Change.UPDATED, ("poll.interval.ms",))
    assert holder() not in {None, first}


def test_a_missing_publication_is_told_with_its_cause(
    client: ConnectClient, own: ConnectorFile
) -> None:
    """The task FAILED, and the error says why."""
    broken = ConnectorFile(own.name, {**own.config, "publication.name": "nope"}, nested=False)

    with pytest.raises(
        ConnectorFailedError, match=r"FAILED: .*Publication autocreation is disabled"
    ):
        connector.apply(client, broken)


def test_a_slot_in_use_is_told_though_connect_says_running(
    chain: Chain, client: ConnectClient, own: ConnectorFile
) -> None:
    """Two connectors on one slot both say RUNNING; the second does nothing."""
    second = ConnectorFile(own.name, {**own.config, "slot.name": "outbox"}, nested=False)

    with pytest.raises(ConnectorFailedError, match=r"RUNNING, but nobody new holds its slot"):
        connector.apply(
            client, second, slot_holder=lambda: slot_holder(chain.shop, "outbox"), timeout_s=8
        )


def test_a_config_that_connect_refuses_is_told(client: ConnectClient, own: ConnectorFile) -> None:
    """With Connect's own words, and no secret."""
    broken = ConnectorFile(own.name, {**own.config, "connector.class": "Nope"}, nested=False)

    with pytest.raises((ConnectorConfigError, ConnectUnavailableError), match="Nope"):
        connector.apply(client, broken)


def test_the_command_applies_tells_and_deletes(
    chain: Chain, start: Start, own: ConnectorFile, tmp_path: Path
) -> None:
    """apply, apply again, status, delete, status; each with its exit status."""
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"name": own.name, "config": dict(own.config)}))

    applied = start("connector", "apply", str(file))
    assert applied.exit_status() == 0
    assert "created, and runs" in applied.said()
    assert "of POST" in applied.said()
    again = start("connector", "apply", str(file), "--json")
    assert again.exit_status() == 0
    assert '"change": "unchanged"' in again.said()
    status = start("connector", "status", own.name, "--json")
    assert status.exit_status() == 0
    assert json.loads(status.said())[own.name]["running"] is True
    deleted = start("connector", "delete", own.name)
    assert deleted.exit_status() == 0
    assert "Its replication slot stays" in deleted.said().replace("\n", " ")
    assert start("connector", "status", own.name).exit_status() == 1
    assert start("connector", "delete", own.name).exit_status() == 1


def test_connect_that_is_not_there_is_told(start: Start) -> None:
    """Exit status 4, with the address."""
    command = start(
        "connector",
        "apply",
        str(ROOT / "connectors" / "outbox.json"),
        INBOX_CONNECT_URL="http://127.0.0.1:1",
    )

    assert command.exit_status() == 4
    assert "Kafka Connect at http://127.0.0.1:1 does not answer" in command.said()


def test_the_file_is_deployable_with_a_plain_put(
    chain: Chain, client: ConnectClient, own: ConnectorFile
) -> None:
    """No tool of ours is needed: what the file holds is what Connect takes."""
    client.put_config(own.name, own.config)
    until(lambda: slot_holder(chain.shop, own.name), "the slot to be held")

    stored = client.config(own.name)

    assert stored == own.config
    assert "${env:INBOX_CONNECTOR_DATABASE_PASSWORD}" in stored.values()


def test_a_transaction_of_many_events_arrives_whole(chain: Chain) -> None:
    """One statement, one COPY: 3,000 rows that share a transaction."""
    aggregate = f"t-{uuid4().hex}"
    with connect(chain.shop) as connection:
        with connection.cursor().copy(
            "COPY outbox (id, aggregate_type, aggregate_id, event_type, payload) FROM STDIN"
        ) as copy:
            for number in range(3_000):
                copy.write_row([uuid4(), aggregate, str(number % 7), "X", str(number)])
        Outbox().publish(
            connection, aggregate_type=aggregate, aggregate_id="1", event_type="X", payload=3_000
        )
    records = chain.kafka.read(f"outbox.{aggregate}", 3_001)

    assert sorted(int(record.value) for record in records) == list(range(3_001))

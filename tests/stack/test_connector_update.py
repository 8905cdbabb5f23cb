"""`connector apply` on a connector that runs or failed before: no verdict of the old task's."""

import json
from collections.abc import Callable
from dataclasses import replace
from uuid import uuid4

import pytest

from consumer.connect import apply as connector
from consumer.connect.apply import Change
from consumer.connect.client import ConnectClient
from consumer.connect.file import ConnectorFile
from consumer.errors import ConnectorConfigError, ConnectorFailedError
from consumer.slots.facts import slot_holder
from tests.fix_stack import ROOT, Chain, Command
from tests.waiting import until

Start = Callable[..., Command]
FRAME = "at java.base/java.lang.Thread.run"
SHIPPED = ROOT / "connectors" / "outbox.json"


def with_changes(file: ConnectorFile, **changes: str) -> ConnectorFile:
    return replace(file, config={**file.config, **changes})


def holder(chain: Chain, file: ConnectorFile) -> connector.SlotHolder:
    return lambda: slot_holder(chain.shop, file.name)


@pytest.mark.parametrize("watched", [True, False])
def test_a_failed_connector_is_mended_by_applying_the_right_file(
    chain: Chain, client: ConnectClient, own: ConnectorFile, watched: bool
) -> None:
    """Connect tells of the old failure for a moment after the new config came."""
    broken = with_changes(own, **{"publication.name": "nope"})
    with pytest.raises(ConnectorFailedError, match="Publication autocreation is disabled"):
        connector.apply(client, broken)

    looking = holder(chain, own) if watched else None
    assert connector.apply(client, own, slot_holder=looking).change is Change.UPDATED

    assert slot_holder(chain.shop, own.name) is not None


@pytest.mark.parametrize("watched", [True, False])
def test_an_update_that_breaks_a_running_connector_is_told(
    chain: Chain, client: ConnectClient, own: ConnectorFile, watched: bool
) -> None:
    """Connect tells of the old task's RUNNING for a moment."""
    looking = holder(chain, own) if watched else None
    connector.apply(client, own, slot_holder=looking)

    broken = with_changes(own, **{"publication.name": "nope"})
    with pytest.raises(ConnectorFailedError, match=r"autocreation is disabled.*; mend the file"):
        connector.apply(client, broken, slot_holder=looking)
    with pytest.raises(ConnectorFailedError, match="autocreation is disabled"):
        connector.apply(client, broken, slot_holder=looking)  # unchanged, and still FAILED


def test_a_paused_connector_is_told_with_what_to_do(
    chain: Chain, client: ConnectClient, own: ConnectorFile
) -> None:
    """Applying a file does not resume what somebody paused."""
    connector.apply(client, own, slot_holder=holder(chain, own))
    client._http.put(f"/connectors/{own.name}/pause").raise_for_status()
    until(lambda: (s := client.status(own.name)) and s.state == "PAUSED", "the connector to pause")

    with pytest.raises(ConnectorFailedError, match=r"PAUSED.*; resume it with PUT"):
        connector.apply(client, own, timeout_s=1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"connector.class": "Nope"}, r"which name matches Nope$"),
        ({"slot.name": "Bad Slot"}, r"^Connect refused the config: The 'slot\.name' value"),
        ({"tasks.max": "zwei"}, r"Not a number of type INT; Invalid value null"),
        ({"database.password": "hunter2"}, r"INBOX_CONNECTOR_DATABASE_… right, password included"),
    ],
)
def test_a_config_that_connect_refuses_is_told_in_one_line(
    client: ConnectClient, own: ConnectorFile, changes: dict[str, str], said: str
) -> None:
    """Connect's own words, without its list of plugins, its padding or a secret."""
    with pytest.raises(ConnectorConfigError, match=said) as told:
        connector.apply(client, with_changes(own, **changes))

    assert "\n" not in str(told.value)
    assert "PluginDesc" not in str(told.value)
    assert "hunter2" not in str(told.value)


def test_the_command_takes_a_name_and_tells_what_it_would_do(start: Start) -> None:
    """--name, --dry-run; nothing is deployed."""
    name = f"d{uuid4().hex}"

    planned = start("connector", "apply", "outbox.json", "--name", name, "--dry-run")
    assert planned.exit_status() == 0
    assert f"connector {name}: would be created" in planned.said().replace("\n", " ")

    assert start("connector", "status", name).exit_status() == 1
    assert start("connector", "delete", name, "--dry-run").exit_status() == 1
    kept = start("connector", "delete", "outbox", "--dry-run")
    assert kept.exit_status() == 0
    assert "would be deleted" in kept.said()
    assert start("connector", "status", "outbox").exit_status() == 0


def test_a_trace_is_shown_whole_on_request(
    client: ConnectClient, start: Start, own: ConnectorFile
) -> None:
    """The cause in the table, all of Java's lines below it, and both for programs."""
    with pytest.raises(ConnectorFailedError):
        connector.apply(client, with_changes(own, **{"publication.name": "nope"}))

    told = start("connector", "status", own.name)
    assert told.exit_status() == 1
    assert FRAME not in told.said()
    whole = start("connector", "status", own.name, "--trace")
    assert whole.exit_status() == 1
    assert FRAME in whole.said()
    plain = start("connector", "status", own.name, "--trace", "--json")
    assert plain.exit_status() == 1
    assert FRAME in json.loads(plain.said())[own.name]["trace"]

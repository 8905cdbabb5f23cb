"""`inbox prune` with real topics: what may go, and what is refused."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from consumer.errors import KafkaUnavailableError, PruneRefusedError, SettingsError
from consumer.prune import BATCH_ROWS, parse_window, prune
from consumer.store.connecting import connect
from tests.fix_stack import Command
from tests.servers import KafkaServer

DAY = timedelta(days=1)


@pytest.fixture
def inbox(database: str) -> Iterator[str]:
    """Rows of every age from 0 to 29 days, of two consumers."""
    with connect(database, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO processed_events SELECT c, gen_random_uuid(), now() - n * interval '1 day'"
            " FROM generate_series(0, 29) AS n, unnest('{stock,loyalty}'::text[]) AS c"
        )
    return database


def reads(inbox: str, consumer: str, topic: str) -> None:
    with connect(inbox, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO consumer_positions (consumer, topic_id, partition, topic, next_offset)"
            " VALUES (%s, %s, 0, %s, 7)",
            [consumer, uuid4(), topic],
        )


def left(inbox: str, consumer: str) -> int:
    with connect(inbox, autocommit=True) as connection:
        query = "SELECT count(*) FROM processed_events WHERE consumer = %s"
        row = connection.execute(query, [consumer]).fetchone()
    assert row is not None
    return int(row[0])


def configure(kafka: KafkaServer, topic: str, **config: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=kafka.address)
    dotted = {name.replace("_", "."): value for name, value in config.items()}
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, dotted)])
    admin.close()


def run(
    kafka: KafkaServer, inbox: str, window: timedelta, *, dry_run: bool = False
) -> dict[str, int]:
    return dict(
        prune(
            inbox,
            schema="public",
            bootstrap_servers=kafka.address,
            older_than=window,
            dry_run=dry_run,
        ).rows
    )


def test_old_rows_go_young_ones_and_other_consumers_stay(kafka: KafkaServer, inbox: str) -> None:
    """A topic's records stay for retention.ms + segment.ms: 7 + 7 days by default."""
    reads(inbox, "stock", kafka.make_topic())

    assert run(kafka, inbox, 14 * DAY, dry_run=True) == {"stock": 16}
    assert left(inbox, "stock") == 30
    assert run(kafka, inbox, 14 * DAY) == {"stock": 16}

    assert left(inbox, "stock") == 14
    assert left(inbox, "loyalty") == 30
    assert run(kafka, inbox, 14 * DAY) == {"stock": 0}


def test_rows_go_in_batches(kafka: KafkaServer, inbox: str) -> None:
    """Each in a transaction of its own."""
    reads(inbox, "stock", kafka.make_topic())
    with connect(inbox, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO processed_events SELECT 'stock', gen_random_uuid(), now() - interval '20 days'"
            " FROM generate_series(1, %s)",
            [2 * BATCH_ROWS],
        )
    batches: list[int] = []

    prune(
        inbox,
        schema="public",
        bootstrap_servers=kafka.address,
        older_than=14 * DAY,
        on_batch=lambda _consumer, rows: batches.append(rows),
    )

    assert batches == [BATCH_ROWS, BATCH_ROWS, 16]


def test_a_window_shorter_than_the_topics_records_stay_is_refused(
    kafka: KafkaServer, inbox: str
) -> None:
    """With both numbers, and the topic that they come from."""
    short, long = kafka.make_topic(), kafka.make_topic()
    configure(kafka, long, retention_ms=str(20 * 86_400_000), segment_ms="86400000")
    for topic in (short, long):
        reads(inbox, "stock", topic)

    with pytest.raises(
        PruneRefusedError, match=rf"a window of 20d .* 21d .*'{long}'.* 21d or more"
    ):
        run(kafka, inbox, 20 * DAY)
    assert left(inbox, "stock") == 30
    assert run(kafka, inbox, 21 * DAY) == {"stock": 9}


@pytest.mark.parametrize("config", [{"retention_ms": "-1"}, {"cleanup_policy": "compact"}])
def test_a_topic_that_keeps_its_records_for_ever_is_refused(
    kafka: KafkaServer, inbox: str, config: dict[str, str]
) -> None:
    """Any of them could be delivered again."""
    topic = kafka.make_topic()
    configure(kafka, topic, **config)
    reads(inbox, "stock", topic)

    with pytest.raises(PruneRefusedError, match="for ever"):
        run(kafka, inbox, 9999 * DAY)


def test_a_topic_that_is_gone_holds_nothing_back(kafka: KafkaServer, inbox: str) -> None:
    """Nothing can be delivered from it."""
    reads(inbox, "stock", "outbox.gone")

    assert run(kafka, inbox, DAY) == {"stock": 29}


def test_without_kafka_nothing_is_pruned(kafka: KafkaServer, inbox: str) -> None:
    """The window cannot be checked."""
    reads(inbox, "stock", "outbox.order")

    with pytest.raises(KafkaUnavailableError, match="does not answer"):
        prune(inbox, schema="public", bootstrap_servers="127.0.0.1:1", older_than=99 * DAY)
    assert left(inbox, "stock") == 30


def test_a_second_pruner_is_refused(kafka: KafkaServer, inbox: str) -> None:
    """One at a time, told by an advisory lock."""
    reads(inbox, "stock", kafka.make_topic())
    with connect(inbox, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(hashtextextended('debezium-inbox prune public', 0))")
        with pytest.raises(PruneRefusedError, match="another prune"):
            run(kafka, inbox, 14 * DAY)


@pytest.mark.parametrize(
    "text", ["", "14", "0d", "-1d", "1.5d", "14 d", "１d", "d", "1y", "9999999d"]
)
def test_a_window_is_a_whole_number_and_a_unit(text: str) -> None:
    """Anything else is refused, not guessed."""
    with pytest.raises(SettingsError, match="--older-than: expected a whole number above zero"):
        parse_window(text)


def test_the_command_prints_what_it_did(
    kafka: KafkaServer, inbox: str, start: Callable[..., Command]
) -> None:
    """As JSON for programs; a refusal is exit status 1."""
    reads(inbox, "stock", kafka.make_topic())
    arguments = ("inbox", "prune", "--json", "--database-url", inbox, "--older-than")

    pruned = start(*arguments, "14d")
    assert pruned.exit_status() == 0
    facts = json.loads(pruned.said())
    assert facts["rows"] == {"stock": 16}
    assert datetime.fromisoformat(facts["cutoff"]) < datetime.now(UTC) - 13 * DAY
    assert start(*arguments, "1d").exit_status() == 1

"""`debezium-inbox run` as a process of its own, against real Kafka and Postgres."""

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from psycopg.conninfo import make_conninfo

from tests.builders import headers
from tests.fix_stack import Chain, Command, outbox_headers
from tests.waiting import until

Start = Callable[..., Command]
LEDGER = "shop_handlers:Ledger"


@pytest.fixture(autouse=True)
def _table(chain: Chain, tmp_path: Path) -> None:
    """The handlers' table, and the handlers where the process looks for them."""
    chain.sql(
        chain.warehouse,
        "CREATE TABLE IF NOT EXISTS seen"
        " (entry bigserial, consumer text, event_id uuid, key text, n integer)",
    )
    shutil.copy(Path(__file__).with_name("shop_handlers.py"), tmp_path)


@pytest.fixture
def topic(chain: Chain) -> Iterator[str]:
    return chain.kafka.make_topic()


def seen(chain: Chain, topic: str) -> list[int]:
    query = "SELECT n FROM seen WHERE consumer = %s ORDER BY entry"
    return [row[0] for row in chain.sql(chain.warehouse, query, topic)]


def event(n: int, key: str = "k", event_id: UUID | None = None) -> tuple[str, bytes, object]:
    return (key, json.dumps({"n": n}).encode(), outbox_headers(event_id=event_id))


def committed(chain: Chain, topic: str) -> int | None:
    admin = KafkaAdminClient(bootstrap_servers=chain.kafka.address)
    try:
        offsets = admin.list_group_offsets(topic)
    finally:
        admin.close()
    found = offsets[topic].get(TopicPartition(topic, 0))
    return found.offset if found else None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_consumer_applies_events_and_stops_cleanly(
    chain: Chain, start: Start, topic: str, number: signal.Signals
) -> None:
    """SIGTERM and SIGINT: exit status 0, offsets committed."""
    chain.kafka.produce(topic, *(event(n) for n in range(5)))
    consumer = start("run", LEDGER, TEST_TOPIC=topic)
    until(lambda: seen(chain, topic) == list(range(5)), "five events")

    assert consumer.terminate(number) == 0

    assert '"action": "stopped"' in consumer.said()
    assert committed(chain, topic) == 5


def test_events_published_through_the_outbox_take_effect(chain: Chain, start: Start) -> None:
    """The whole way: outbox row, Debezium, Kafka, handler; the topic comes with the first event."""
    from consumer import Outbox  # noqa: PLC0415
    from consumer.store.connecting import connect  # noqa: PLC0415

    aggregate = f"t-{uuid4().hex}"
    topic = f"outbox.{aggregate}"
    consumer = start("run", LEDGER, "--wait-for-topic", TEST_TOPIC=topic)
    consumer.wait_for("waiting_for_topics")
    with connect(chain.shop) as connection:
        for n in range(3):
            Outbox().publish(
                connection,
                aggregate_type=aggregate,
                aggregate_id="o-1",
                event_type="OrderPlaced",
                payload={"n": n},
            )

    until(lambda: seen(chain, topic) == [0, 1, 2], "three events")
    assert consumer.terminate() == 0


def test_a_consumer_killed_by_sigkill_goes_on_with_each_event_once(
    chain: Chain, start: Start, topic: str
) -> None:
    """Five times, while events come in."""
    for life in range(5):
        chain.kafka.produce(topic, *(event(n) for n in range(life * 40, life * 40 + 40)))
        consumer = start("run", LEDGER, TEST_TOPIC=topic, INBOX_GROUP_INSTANCE_ID=f"i-{topic}",
                         INBOX_MAX_BATCH_EVENTS="7")  # fmt: skip
        until(lambda life=life: len(seen(chain, topic)) > life * 40, "some of this life's events")
        consumer.process.kill()
        consumer.process.wait()
    start("run", LEDGER, TEST_TOPIC=topic, INBOX_GROUP_INSTANCE_ID=f"i-{topic}")

    until(lambda: len(seen(chain, topic)) >= 200, "all events")
    assert seen(chain, topic) == list(range(200))


def test_a_poison_event_ends_the_process_and_the_next_start_begins_with_it(
    chain: Chain, start: Start, topic: str
) -> None:
    """Exit status 3, one line that says which event, no word of its body; nothing is lost."""
    chain.kafka.produce(topic, event(1), event(-1), event(2))

    for _ in range(2):
        consumer = start("run", LEDGER, TEST_TOPIC=topic)
        assert consumer.exit_status() == 3
        (line,) = [each for each in consumer.said().splitlines() if each.startswith("error")]
        assert "[poison]" in line
        assert f"{topic}/0@1" in line
        assert "ValueError" in line
        assert "4111111111111111" not in consumer.said()
        assert "Traceback" not in consumer.said()
    assert seen(chain, topic) == [1]
    assert committed(chain, topic) == 1


def test_debug_shows_the_traceback_of_a_poison_event(
    chain: Chain, start: Start, topic: str
) -> None:
    """On request, for the person who mends the handler."""
    chain.kafka.produce(topic, event(-1))

    consumer = start("run", LEDGER, "--debug", TEST_TOPIC=topic)

    assert consumer.exit_status() == 3
    assert "ValueError: 4111111111111111" in consumer.said()


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (("k", b"not json", outbox_headers()), "not JSON"),
        (
            ("k", b'{"n": 1}', headers(eventType="OrderPlaced")),
            "no event id: header 'id' is missing",
        ),
        (("k", b'{"n": 1}', headers(id=str(uuid4()))), "no event type"),
        (("k", None, outbox_headers()), "does not fit Numbered"),
    ],
    ids=["not JSON", "no id", "no type", "null value"],
)
def test_a_record_that_cannot_be_read_ends_the_process_with_what_to_do(
    chain: Chain, start: Start, topic: str, record: tuple[str, bytes | None, object], said: str
) -> None:
    """Exit status 3, and the record is still there."""
    chain.kafka.produce(topic, event(1), record)  # type: ignore[arg-type]

    consumer = start("run", LEDGER, TEST_TOPIC=topic)

    assert consumer.exit_status() == 3
    assert said in consumer.said()
    assert f"{topic}/0@1" in consumer.said()
    assert seen(chain, topic) == [1]


def test_a_tombstone_is_passed_over(chain: Chain, start: Start, topic: str) -> None:
    """A null value without an id is a deletion mark, not an event."""
    chain.kafka.produce(topic, ("k", None, []), event(1))
    consumer = start("run", LEDGER, TEST_TOPIC=topic)

    until(lambda: seen(chain, topic) == [1], "the event")
    consumer.wait_for('"skipped": {"tombstone": 1}')


def test_a_topic_that_does_not_exist_is_named_with_near_names(
    chain: Chain, start: Start, topic: str
) -> None:
    """Exit status 2; a typo makes no topic."""
    consumer = start("run", LEDGER, TEST_TOPIC=f"{topic}x")

    assert consumer.exit_status() == 2
    assert f"topic '{topic}x' does not exist" in consumer.said()
    assert f"near names: {topic}" in consumer.said()


@pytest.mark.parametrize(
    ("environment", "status", "said"),
    [
        ({"INBOX_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"}, 4, "Kafka at 127.0.0.1:1 does not answer"),
        ({"INBOX_DATABASE_URL": "postgresql://u:hunter2@127.0.0.1:1/x"}, 4, "Postgres at u@127.0.0.1:1/x does not answer"),
        ({"INBOX_DATABASE_URL": "nonsense:hunter2"}, 2, "expected postgresql://user:password@host"),
        ({"INBOX_DATABASE_URL": ""}, 2, "INBOX_DATABASE_URL is not set"),
        ({"INBOX_DB_SCHEMA": "nowhere"}, 2, "debezium-inbox schema apply --target inbox"),
        ({"INBOX_MAX_BATCH_EVENTS": "0"}, 2, "INBOX_MAX_BATCH_EVENTS: "),
    ],
    ids=["Kafka", "Postgres", "URL", "no URL", "no schema", "batch"],
)  # fmt: skip
def test_what_is_not_there_or_wrong_is_said_in_one_line(
    start: Start, topic: str, environment: dict[str, str], status: int, said: str
) -> None:
    """Address or variable, what to do, exit status; no password, no traceback."""
    consumer = start("run", LEDGER, TEST_TOPIC=topic, **environment)

    assert consumer.exit_status() == status
    (line,) = [each for each in consumer.said().splitlines() if each.startswith("error")]
    assert said in line
    assert "hunter2" not in consumer.said()
    assert "Traceback" not in consumer.said()


def test_a_wrong_password_is_said_without_it(chain: Chain, start: Start, topic: str) -> None:
    """Exit status 2: waiting does not help."""
    url = make_conninfo(chain.warehouse, password="hunter2")
    consumer = start("run", LEDGER, TEST_TOPIC=topic, INBOX_DATABASE_URL=url)

    assert consumer.exit_status() == 2
    assert "password authentication failed" in consumer.said()
    assert "hunter2" not in consumer.said()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("shop_handlers", "expected MODULE:HANDLER"),
        ("nowhere:Ledger", "cannot import 'nowhere'"),
        ("shop_handlers:Ledgr", "Ledgr is not there; did you mean Ledger?"),
        ("shop_handlers:NoConsumerBase", "is no EventHandler subclass"),
        ("shop_handlers:NeedsArguments", "cannot be made without arguments"),
    ],
)
def test_a_handler_path_that_does_not_import_says_why(start: Start, path: str, said: str) -> None:
    """Exit status 2."""
    consumer = start("run", path, TEST_TOPIC="t")

    assert consumer.exit_status() == 2
    assert said in consumer.said()
    assert "Traceback" not in consumer.said()


def test_two_members_share_the_partitions_and_one_takes_over(chain: Chain, start: Start) -> None:
    """A rebalance in the middle loses and repeats nothing."""
    topic = chain.kafka.make_topic(partitions=4)
    first = start("run", LEDGER, TEST_TOPIC=topic)
    first.wait_for("partition_placed")
    second = start("run", LEDGER, TEST_TOPIC=topic)
    for n in range(60):
        chain.kafka.produce(topic, event(n, key=f"k-{n % 10}"))
    second.wait_for("partition_placed")
    assert first.terminate() == 0
    for n in range(60, 90):
        chain.kafka.produce(topic, event(n, key=f"k-{n % 10}"))

    until(lambda: len(seen(chain, topic)) >= 90, "all events")

    assert sorted(seen(chain, topic)) == list(range(90))
    query = "SELECT key, array_agg(n ORDER BY entry) FROM seen WHERE consumer = %s GROUP BY key"
    for _key, numbers in chain.sql(chain.warehouse, query, topic):
        assert numbers == sorted(numbers)

"""After an outage of Postgres or Kafka a running consumer goes on by itself, each event once."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fix_stack import Chain, Command, outbox_headers
from tests.waiting import until

Start = Callable[..., Command]


def seen(chain: Chain, topic: str) -> list[int]:
    query = "SELECT n FROM seen WHERE consumer = %s ORDER BY entry"
    return [row[0] for row in chain.sql(chain.warehouse, query, topic)]


@pytest.mark.parametrize("part", ["postgres", "kafka"])
def test_a_consumer_goes_on_after_an_outage(
    chain: Chain, start: Start, tmp_path: Path, part: str
) -> None:
    """SIGKILL to the server while a consumer runs; the server comes back at its old address."""
    shutil.copy(Path(__file__).with_name("shop_handlers.py"), tmp_path)
    chain.sql(
        chain.warehouse,
        "CREATE TABLE IF NOT EXISTS seen"
        " (entry bigserial, consumer text, event_id uuid, key text, n integer)",
    )
    topic = chain.kafka.make_topic()

    def produce(*numbers: int) -> None:
        events = [("k", json.dumps({"n": n}).encode(), outbox_headers()) for n in numbers]
        chain.kafka.produce(topic, *events)

    produce(*range(10))
    consumer = start("run", "shop_handlers:Ledger", TEST_TOPIC=topic)
    until(lambda: seen(chain, topic) == list(range(10)), "the events before the outage")
    server = chain.stack.identities()[part].process()
    assert server is not None
    if part == "postgres":
        server.kill()
        server.wait(10)
        produce(*range(10, 20))
        consumer.wait_for("transient_failure")
        chain.stack.up()
    else:
        server.kill()
        server.wait(10)
        chain.stack.up()
        produce(*range(10, 20))

    until(lambda: len(seen(chain, topic)) >= 20, "the events after the outage", timeout_s=90)
    assert seen(chain, topic) == list(range(20))
    assert consumer.terminate() == 0


def test_the_chain_goes_on_after_the_outboxs_server_and_connects_worker_were_killed(
    chain: Chain,
) -> None:
    """Both at once: the connector takes up its slot again, and nothing is lost."""
    from uuid import uuid4  # noqa: PLC0415

    from consumer import Outbox  # noqa: PLC0415
    from consumer.store.connecting import connect  # noqa: PLC0415

    aggregate = f"t-{uuid4().hex}"

    def publish(number: int) -> None:
        with connect(chain.shop) as connection:
            Outbox().publish(
                connection,
                aggregate_type=aggregate,
                aggregate_id="k",
                event_type="X",
                payload=number,
            )

    publish(1)
    chain.kafka.read(f"outbox.{aggregate}", 1)
    publish(2)
    for part in ("connect", "postgres"):
        server = chain.stack.identities()[part].process()
        assert server is not None
        server.kill()
        server.wait(10)
    chain.stack.up()
    publish(3)

    records = chain.kafka.read(f"outbox.{aggregate}", 3)

    assert sorted({int(record.value) for record in records}) == [1, 2, 3]

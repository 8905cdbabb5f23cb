"""How long from commit to effect, through the whole chain, at low load.

Run it with `make bench`. It brings up a stack of its own, publishes events at a steady pace, and
prints the delay between the publishing transaction's commit and the commit of the effect, both by
the clock of the one Postgres that holds both databases.
"""

import argparse
import statistics
import threading
import time
from typing import Any

import psycopg
from pydantic import SecretStr

from benchmarks.stack import running_stack
from consumer import Consumer, Event, EventHandler, Outbox, Settings
from consumer.connect import apply as connector
from consumer.connect.client import ConnectClient
from consumer.connect.file import read_connector_file
from consumer.resources import data_folder
from consumer.slots.facts import slot_holder
from consumer.store import migrations
from consumer.store.connecting import connect
from consumer.store.migrations import Target


class Stamp(EventHandler):
    """Writes down when an event took effect."""

    consumer = "stamp"
    topics = ("outbox.latency",)

    def handle(self, event: Event[Any], connection: psycopg.Connection[Any]) -> None:
        """Stamp at the end of the batch's transaction, within a round trip of its commit."""
        connection.execute(
            "INSERT INTO stamps VALUES (%s, clock_timestamp())", [event.payload["n"]]
        )


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--events", type=int, default=2000)
    arguments.add_argument("--per-second", type=float, default=50)
    given = arguments.parse_args()
    with running_stack() as stack:
        delays = sorted(_measure(stack.environment(), given.events, given.per_second))
    percentiles = statistics.quantiles(delays, n=100)
    print(f"{len(delays)} events at {given.per_second:.0f}/s, commit to effect, milliseconds:")
    print(f"p50 {percentiles[49]:.0f}  p90 {percentiles[89]:.0f}  p99 {percentiles[98]:.0f}  "
          f"max {delays[-1]:.0f}")  # fmt: skip


def _measure(settings: dict[str, str], events: int, per_second: float) -> list[float]:
    shop, warehouse = settings["INBOX_SOURCE_DATABASE_URL"], settings["INBOX_DATABASE_URL"]
    _prepare(settings, shop, warehouse)
    consumer = Consumer(
        Stamp(),
        Settings(
            database_url=SecretStr(warehouse),
            kafka_bootstrap_servers=settings["INBOX_KAFKA_BOOTSTRAP_SERVERS"],
            wait_for_topic=True,
        ),
    )
    running = threading.Thread(target=consumer.run)
    running.start()
    try:
        committed = _publish(shop, events, per_second)
        applied = _await_stamps(warehouse, events)
    finally:
        consumer.stop()
        running.join()
    warm = events // 10  # the first events wait for the topic to be made
    return [(applied[n] - committed[n]) * 1000 for n in range(warm, events)]


def _prepare(settings: dict[str, str], shop: str, warehouse: str) -> None:
    with connect(shop, autocommit=True) as connection:
        migrations.apply(connection, Target.OUTBOX, "public")
    with connect(warehouse, autocommit=True) as connection:
        connection.execute("CREATE TABLE stamps (n int, at timestamptz)")
    file = read_connector_file(data_folder("connectors") / "outbox.json")
    with ConnectClient(settings["INBOX_CONNECT_URL"]) as client:
        connector.apply(client, file, slot_holder=lambda: slot_holder(shop, "outbox"))


def _publish(shop: str, events: int, per_second: float) -> dict[int, float]:
    """Publish at a steady pace; answers when each commit had returned."""
    committed: dict[int, float] = {}
    outbox, start = Outbox(), time.monotonic()
    with connect(shop, autocommit=True) as connection:
        for n in range(events):
            time.sleep(max(0.0, start + n / per_second - time.monotonic()))
            with connection.transaction():
                outbox.publish(
                    connection,
                    aggregate_type="latency",
                    aggregate_id=str(n % 50),
                    event_type="Tick",
                    payload={"n": n},
                )
            committed[n] = time.time()
    return committed


def _await_stamps(warehouse: str, events: int) -> dict[int, float]:
    with connect(warehouse, autocommit=True) as connection:
        while True:
            rows = connection.execute("SELECT n, extract(epoch FROM at) FROM stamps").fetchall()
            if len(rows) >= events:
                return {n: float(at) for n, at in rows}
            time.sleep(0.1)


if __name__ == "__main__":
    main()

"""Our own handlers, measured by its own log events."""

import argparse
import os
import time
from collections.abc import MutableMapping, Sequence
from typing import Any

import psycopg
import structlog

from benchmarks.contestants.report import EFFECT, EFFECT_OF_MANY, Report
from consumer import Consumer, Event, EventHandler, Settings

report = Report()
TOPIC = os.environ["BENCH_TOPIC"]
GROUP = os.environ["BENCH_GROUP"]


class PerEvent(EventHandler):
    """One upsert an event."""

    consumer = GROUP
    topics = (TOPIC,)

    def handle(self, event: Event[Any], connection: psycopg.Connection[Any]) -> None:
        """Add the order to its customer's totals."""
        connection.execute(EFFECT, (event.key, event.payload["amount"]))


class PerBatch(EventHandler):
    """One upsert a batch."""

    consumer = GROUP
    topics = (TOPIC,)

    def handle_batch(
        self, events: Sequence[Event[Any]], connection: psycopg.Connection[Any]
    ) -> None:
        """Add the orders to their customers' totals."""
        customers = [event.key for event in events]
        connection.execute(EFFECT_OF_MANY, (customers, [e.payload["amount"] for e in events]))


class Reads(EventHandler):
    """Reads a row before it writes: one round trip an event."""

    consumer = GROUP
    topics = (TOPIC,)

    def handle(self, event: Event[Any], connection: psycopg.Connection[Any]) -> None:
        """Look the customer up, then add the order."""
        connection.execute("SELECT amount FROM totals WHERE customer = %s", [event.key]).fetchone()
        connection.execute(EFFECT, (event.key, event.payload["amount"]))


class Waits(EventHandler):
    """Asks a service that answers after 5 ms."""

    consumer = GROUP
    topics = (TOPIC,)

    def handle(self, event: Event[Any], connection: psycopg.Connection[Any]) -> None:
        """Wait, then add the order."""
        time.sleep(0.005)
        connection.execute(EFFECT, (event.key, event.payload["amount"]))


def watch(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Take the times from the log events, and print none of them but warnings."""
    if event["action"] == "partition_placed":
        report.begin()
    elif event["action"] == "batch_applied":
        by_position, by_id = event["duplicates_by_position"], event["duplicates_by_id"]
        report.count(event["applied"] + by_position + by_id)
    raise structlog.DropEvent


def main() -> None:
    """Consume all that is in the topic."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("handler", choices=["PerEvent", "PerBatch", "Reads", "Waits"])
    arguments.add_argument("--lanes", type=int, default=1)
    given = arguments.parse_args()
    structlog.configure(processors=[watch])
    handler: EventHandler = globals()[given.handler]()
    Consumer(handler, Settings(lanes=given.lanes)).run_until_idle()
    report.print()


if __name__ == "__main__":
    main()

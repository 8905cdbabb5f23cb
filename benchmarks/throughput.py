"""How many events a second, side by side: this library, hand-written loops, a framework, a sink.

Run it with `make bench`. It brings up a stack of its own, fills topics, lets each contestant consume
them in a process of its own, several rounds in alternation, checks the effects, and prints a table.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import uuid4

from benchmarks.stack import running_stack
from benchmarks.topic import fill, make_topic
from consumer.store.connecting import connect


@dataclass(frozen=True)
class Contestant:
    """Who runs, and how."""

    name: str
    module: str
    arguments: tuple[str, ...]
    share: float = 1.0
    """Of the events; slow ones get fewer, so that a run lasts seconds."""
    effects: bool = True


CONTESTANTS = (
    Contestant("per event, 1 lane", "ours", ("PerEvent",)),
    Contestant("per event, 4 lanes", "ours", ("PerEvent", "--lanes", "4")),
    Contestant("handle_batch, 1 lane", "ours", ("PerBatch",)),
    Contestant("floor: kafka-python, pipelined", "plain", ("kafka-python", "pipelined")),
    Contestant("floor: kafka-python, set-based", "plain", ("kafka-python", "set_based")),
    Contestant("floor: confluent-kafka, pipelined", "plain", ("confluent-kafka", "pipelined")),
    Contestant("naive: kafka-python", "plain", ("kafka-python", "naive"), 0.2),
    Contestant("naive: confluent-kafka", "plain", ("confluent-kafka", "naive"), 0.2),
    Contestant("naive: FastStream", "faststream_loop", (), 0.1),
    Contestant("poll and JSON only", "plain", ("kafka-python", "nothing"), effects=False),
    Contestant("reads once, 1 lane", "ours", ("Reads",), 0.5),
    Contestant("reads once, 4 lanes", "ours", ("Reads", "--lanes", "4"), 0.5),
    Contestant("reads once, naive", "plain", ("kafka-python", "reads"), 0.2),
    Contestant("waits 5 ms, 1 lane", "ours", ("Waits",), 0.01),
    Contestant("waits 5 ms, 16 lanes", "ours", ("Waits", "--lanes", "16"), 0.1),
)


class Course:
    """The servers and the topics that the contestants consume."""

    def __init__(self, environment: Mapping[str, str], events: int) -> None:
        self._environment, self._events = environment, events
        self._topics: dict[int, str] = {}

    def run(self, contestant: Contestant) -> tuple[float, float]:
        """Let it consume all; answer events a second, and its memory in MB."""
        events = int(self._events * contestant.share)
        self._clear()
        report = self._report(contestant, events)
        if contestant.effects:
            self._check(events)
        seconds = report["done"][-1][0] - report["began"]
        return events / seconds, report["rss_mb"]

    def _report(self, contestant: Contestant, events: int) -> dict[str, object]:
        environment = {
            **os.environ,
            **self._environment,
            "BENCH_TOPIC": self._topic(events),
            "BENCH_GROUP": f"bench-{uuid4().hex[:8]}",
            "BENCH_EVENTS": str(events),
        }
        module = f"benchmarks.contestants.{contestant.module}"
        command = [sys.executable, "-m", module, *contestant.arguments]
        ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        report: dict[str, object] = json.loads(ended.stdout.splitlines()[-1])
        return report

    def _topic(self, events: int) -> str:
        if events not in self._topics:
            servers = self._environment["INBOX_KAFKA_BOOTSTRAP_SERVERS"]
            self._topics[events] = make_topic(servers)
            fill(servers, self._topics[events], events)
        return self._topics[events]

    def _clear(self) -> None:
        with connect(self._environment["INBOX_DATABASE_URL"], autocommit=True) as connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS totals "
                "(customer text PRIMARY KEY, orders bigint, amount bigint)"
            )
            connection.execute("TRUNCATE totals, processed_events, consumer_positions")
            connection.execute("VACUUM ANALYZE totals, processed_events, consumer_positions")

    def _check(self, events: int) -> None:
        with connect(self._environment["INBOX_DATABASE_URL"], autocommit=True) as connection:
            [row] = connection.execute("SELECT sum(orders) FROM totals").fetchall()
        if row[0] != events:
            raise SystemExit(f"{row[0]} effects of {events} events: this run does not count")


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--events", type=int, default=100_000)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--only", default="", help="contestants whose name holds this")
    given = arguments.parse_args()
    chosen = [each for each in CONTESTANTS if given.only in each.name]
    with running_stack() as stack:
        course = Course(stack.environment(), given.events)
        results: dict[str, list[tuple[float, float]]] = {each.name: [] for each in chosen}
        for _ in range(given.rounds):
            for contestant in chosen:
                results[contestant.name].append(course.run(contestant))
                print(f"  {contestant.name}: {results[contestant.name][-1][0]:,.0f}/s", flush=True)
    print("\n".join(_table(results)))


def _table(results: Mapping[str, Iterable[tuple[float, float]]]) -> Iterable[str]:
    yield "| contestant | events/s, median | lowest to highest | memory, MB |"
    yield "|---|---|---|---|"
    for name, runs in results.items():
        rates = [rate for rate, _ in runs]
        memory = max(rss for _, rss in runs)
        yield (
            f"| {name} | {statistics.median(rates):,.0f} | {min(rates):,.0f} to {max(rates):,.0f} "
            f"| {memory:.0f} |"
        )


if __name__ == "__main__":
    main()

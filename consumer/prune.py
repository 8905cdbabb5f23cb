"""Prune the inbox: delete old rows of `processed_events`, and never one that could be needed again."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import psycopg

from consumer.errors import PruneRefusedError, SettingsError
from consumer.kafka import longest_redelivery_ms
from consumer.store.connecting import connect
from consumer.store.queries import load_queries, with_names

BATCH_ROWS = 5_000
LOCK_TIMEOUT = "2s"

_QUERIES = load_queries("prune.sql")
_WINDOW = re.compile(r"([1-9][0-9]{0,5})(s|m|h|d|w)", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a prune did, or would do."""

    cutoff: datetime
    rows: Mapping[str, int]
    """Rows deleted (or, in a dry run, counted) by consumer."""


def parse_window(text: str) -> timedelta:
    """`14d`, `12h`, `30m`, `45s` or `2w` as a timedelta; raises SettingsError on anything else."""
    found = _WINDOW.fullmatch(text)
    if not found:
        raise SettingsError(
            f"--older-than: expected a whole number above zero and a unit, such as 14d, 12h, 30m, "
            f"45s or 2w; got {text!r}"
        )
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def prune(
    database_url: str,
    *,
    schema: str,
    bootstrap_servers: str,
    older_than: timedelta,
    dry_run: bool = False,
    on_batch: Callable[[str, int], None] = lambda _consumer, _rows: None,
) -> Pruned:
    """Delete rows older than the window, per consumer, in batches each in its own transaction.

    Raises PruneRefusedError when the window is shorter than a topic keeps its events: Kafka could
    deliver one of them again, and nothing would tell that it was applied.
    """
    with connect(database_url, autocommit=True) as connection:
        queries = _Queries(connection, schema)
        topics = dict(queries.run("topics"))
        _check_window(older_than, topics, bootstrap_servers)
        queries.alone()
        cutoff = queries.run("cutoff", older_than=older_than)[0][0]
        delete = queries.count if dry_run else queries.delete
        return Pruned(cutoff, {each: delete(each, cutoff, on_batch) for each in topics})


def _check_window(
    older_than: timedelta, topics: Mapping[str, Sequence[str]], bootstrap_servers: str
) -> None:
    names = sorted({name for of_consumer in topics.values() for name in of_consumer})
    for name, kept_ms in longest_redelivery_ms(bootstrap_servers, names).items():
        if kept_ms is None:
            raise PruneRefusedError(
                f"topic {name!r} keeps its events for ever (retention.ms or cleanup.policy), so each "
                f"could be delivered again; give the topic a retention first"
            )
        kept = timedelta(milliseconds=kept_ms)
        if older_than < kept:
            raise PruneRefusedError(
                f"a window of {_shown(older_than)} is shorter than the {_shown(kept)} for which topic {name!r} may "
                f"keep an event (retention.ms + segment.ms); an event delivered again would be "
                f"applied twice; prune with --older-than {_shown(kept)} or more"
            )


def _shown(window: timedelta) -> str:
    """The window as the option takes it."""
    whole = int(window.total_seconds())
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if whole % size == 0:
            return f"{whole // size}{unit}"
    return f"{whole}s"


class _Queries:
    def __init__(self, connection: psycopg.Connection[Any], schema: str) -> None:
        self._connection, self._schema = connection, schema
        connection.execute("SELECT set_config('lock_timeout', %s, false)", [LOCK_TIMEOUT])

    def run(self, name: str, **parameters: Any) -> list[tuple[Any, ...]]:
        return self._execute(name, parameters).fetchall()

    def alone(self) -> None:
        if not self.run("one_pruner", schema=self._schema)[0][0]:
            raise PruneRefusedError(
                f"another prune of schema {self._schema!r} is running; let it finish"
            )

    def count(self, consumer: str, cutoff: datetime, _: Callable[[str, int], None]) -> int:
        return int(self.run("count", consumer=consumer, cutoff=cutoff)[0][0])

    def delete(self, consumer: str, cutoff: datetime, on_batch: Callable[[str, int], None]) -> int:
        total = 0
        parameters = {"consumer": consumer, "cutoff": cutoff, "batch": BATCH_ROWS}
        while rows := self._execute("delete_batch", parameters).rowcount:
            total += rows
            on_batch(consumer, rows)
        return total

    def _execute(self, name: str, parameters: Mapping[str, Any]) -> psycopg.Cursor[Any]:
        query = with_names(_QUERIES[name], schema=self._schema)
        return self._connection.execute(query, parameters)

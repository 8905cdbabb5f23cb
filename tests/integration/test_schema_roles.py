"""The documented grants are enough for the statements that consumers and the pruner really run."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import errors, sql
from psycopg.conninfo import make_conninfo

from consumer.ports import Partition
from consumer.store import migrations
from consumer.store.connecting import connect
from consumer.store.inbox import PostgresInbox
from consumer.store.migrations import Target
from consumer.store.queries import load_queries, with_names

SCHEMA = "Odd Inbox"
DOCS = Path(__file__).parents[2] / "docs" / "schema.md"


@pytest.fixture
def owner(empty_database: str) -> Iterator[psycopg.Connection[Any]]:
    with connect(empty_database, autocommit=True) as opened:
        yield opened


@pytest.fixture
def role(owner: psycopg.Connection[Any]) -> Iterator[str]:
    """A role that may log in and nothing else; `as_role` gives the URL with which it does."""
    name = f"role_{uuid4().hex}"
    owner.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(name)))
    yield name
    owner.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name)))
    owner.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def as_role(url: str, role: str) -> str:
    return make_conninfo(url, options=f"-c role={role}")


def test_a_consumer_applies_whole_batches_with_its_grants(
    owner: psycopg.Connection[Any], empty_database: str, role: str
) -> None:
    """Everything that the engine does with its tables: check, place, open, claim, close, again."""
    migrations.apply(owner, Target.INBOX, SCHEMA, grant_to=role)
    partition, event_id = Partition(topic="t", topic_id=uuid4(), number=0), uuid4()

    with PostgresInbox(as_role(empty_database, role), SCHEMA, "stock") as inbox:
        inbox.require_current_schema()
        assert inbox.positions([partition]) == {}
        for next_offset, fresh in ((1, {event_id}), (2, set())):
            with inbox.transaction(pipeline=True) as transaction:
                _, claimed = transaction.open_batch([partition], [event_id])
                assert claimed == fresh
                transaction.close_batch({partition: next_offset})
        assert inbox.positions([partition]) == {partition: 2}


def test_a_consumers_grants_do_not_let_it_prune(
    owner: psycopg.Connection[Any], empty_database: str, role: str
) -> None:
    """Who deletes processed events can make them apply twice."""
    migrations.apply(owner, Target.INBOX, SCHEMA, grant_to=role)

    with pytest.raises(errors.InsufficientPrivilege):
        prune_as(as_role(empty_database, role))


def test_the_documented_grants_let_a_role_prune(
    owner: psycopg.Connection[Any], empty_database: str, role: str
) -> None:
    """The block in docs/schema.md, with the names put in."""
    migrations.apply(owner, Target.INBOX, SCHEMA)
    owner.execute(
        sql.SQL(
            "INSERT INTO {}.processed_events VALUES ('stock', gen_random_uuid(), '2020-01-01')"
        ).format(sql.Identifier(SCHEMA))
    )
    (block,) = re.findall(r"```sql\n(-- the pruner\n.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    owner.execute(block.replace("inbox.", f'"{SCHEMA}".').replace("inbox ", f'"{SCHEMA}" ')
                  .replace("pruner", role).encode())  # fmt: skip

    assert prune_as(as_role(empty_database, role)) == 1


def prune_as(url: str) -> int:
    """Run the pruner's queries; answers how many rows went."""
    queries = load_queries("prune.sql")
    yesterday = datetime.now(UTC) - timedelta(days=1)
    with connect(url, autocommit=True) as connection:
        connection.execute(queries["one_pruner"], {"schema": SCHEMA})
        connection.execute(with_names(queries["topics"], schema=SCHEMA), {})
        about = {"consumer": "stock", "cutoff": yesterday, "batch": 10}
        connection.execute(with_names(queries["count"], schema=SCHEMA), about)
        return connection.execute(
            with_names(queries["delete_batch"], schema=SCHEMA), about
        ).rowcount

"""Close the books: what the shop published against what took effect in the warehouse's database."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg

from consumer.store.connecting import connect
from consumer.store.queries import load_queries, with_names

Ledger = Sequence[tuple[UUID, str, int]]
"""Event id, key and the event's version within its key, in the order in which they took effect."""

_QUERIES = load_queries("books.sql", package=__package__)
_TAKEN = {
    "stock": {"OrderPlaced", "OrderCancelled"},
    "loyalty": {"CustomerRegistered", "OrderPlaced"},
}
_LEDGERS = {"stock": "stock_ledger", "loyalty": "points_ledger"}


@dataclass(frozen=True, slots=True)
class Account:
    """What one consumer should have applied, and what it did."""

    published: int
    applied: int
    lost: int
    twice: int
    out_of_order: int

    @property
    def balanced(self) -> bool:
        """Every event took effect once and in order."""
        return not (self.lost or self.twice or self.out_of_order)


@dataclass(frozen=True, slots=True)
class Books:
    """The closed books of a demo."""

    orders: int
    accounts: Mapping[str, Account]
    reserved_by_shop: int
    """Pieces in orders that are not cancelled, by the shop's own tables."""
    reserved_in_stock: int
    """The same by the warehouse's, which only ever saw events."""

    @property
    def balanced(self) -> bool:
        """Nothing lost, nothing twice, nothing out of order, and both sides agree."""
        return self.reserved_by_shop == self.reserved_in_stock and all(
            account.balanced for account in self.accounts.values()
        )


def close_books(shop_url: str, warehouse_url: str, outbox_schema: str) -> Books:
    """Read both databases as they are now."""
    with connect(shop_url, autocommit=True) as shop:
        published = _rows(shop, "published", outbox_schema)
        orders = _number(shop, "orders")
        by_shop = _number(shop, "reserved_by_shop")
    with connect(warehouse_url, autocommit=True) as warehouse:
        accounts = {
            consumer: account(
                (event_id for event_id, _, _, event_type in published if event_type in types),
                _rows(warehouse, _LEDGERS[consumer]),
            )
            for consumer, types in _TAKEN.items()
        }
        return Books(orders, accounts, by_shop, _number(warehouse, "reserved_in_stock"))


def account(published: Iterable[UUID], ledger: Ledger) -> Account:
    """Compare what was published for a consumer with its ledger."""
    wanted = set(published)
    times = Counter(event_id for event_id, _, _ in ledger)
    return Account(
        published=len(wanted),
        applied=len(ledger),
        lost=len(wanted - times.keys()),
        twice=sum(count - 1 for count in times.values()),
        out_of_order=_out_of_order(ledger),
    )


def _out_of_order(ledger: Ledger) -> int:
    """How many entries have a lower version than one of the same key before them."""
    highest: dict[str, int] = {}
    late = 0
    for _, key, version in ledger:
        late += version < highest.get(key, version)
        highest[key] = max(version, highest.get(key, version))
    return late


def _rows(
    connection: psycopg.Connection[Any], name: str, schema: str = "public"
) -> list[tuple[Any, ...]]:
    return connection.execute(with_names(_QUERIES[name], schema=schema), {}).fetchall()


def _number(connection: psycopg.Connection[Any], name: str) -> int:
    return int(_rows(connection, name)[0][0])

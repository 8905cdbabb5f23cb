"""The shop: every change and its event are written in one transaction.

Run it with `python -m examples.orders.shop --orders 100`; it needs INBOX_SOURCE_DATABASE_URL.
"""

import argparse
import os
import random
import time
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg

from consumer import Outbox

from .events import CustomerRegistered, OrderCancelled, OrderPlaced

SKUS = ("apple", "banana", "cherry", "damson")
CUSTOMERS = 20
CANCELLED_PERCENT = 30

Connection = psycopg.Connection[Any]
pick = random.Random().choice  # noqa: S311  # a simulation, no secret


class Shop:
    """A shop on one connection in autocommit mode: each method is one transaction."""

    def __init__(self, connection: Connection, outbox: Outbox) -> None:
        self._connection, self._outbox = connection, outbox

    def register_customer(self) -> UUID:
        """Make a customer known, and tell of it."""
        customer_id = uuid4()
        with self._connection.transaction():
            self._connection.execute("INSERT INTO customers VALUES (%s)", [customer_id])
            self._outbox.publish(
                self._connection,
                aggregate_type="customer",
                aggregate_id=str(customer_id),
                event_type="CustomerRegistered",
                payload=CustomerRegistered(customer_id=customer_id),
            )
        return customer_id

    def place_order(self, customer_id: UUID, sku: str, quantity: int) -> OrderPlaced:
        """Write an order, and tell of it."""
        order = OrderPlaced(
            order_id=uuid4(), customer_id=customer_id, sku=sku, quantity=quantity, version=1
        )
        with self._connection.transaction():
            self._connection.execute(
                "INSERT INTO orders VALUES (%s, %s, %s, %s)",
                [order.order_id, customer_id, sku, quantity],
            )
            self._tell(order.order_id, order)
        return order

    def cancel_order(self, order: OrderPlaced) -> None:
        """Take an order back, and tell of it."""
        cancelled = OrderCancelled(
            order_id=order.order_id, sku=order.sku, quantity=order.quantity, version=2
        )
        with self._connection.transaction():
            self._connection.execute(
                "UPDATE orders SET cancelled = true WHERE order_id = %s", [order.order_id]
            )
            self._tell(order.order_id, cancelled)

    def _tell(self, order_id: UUID, event: OrderPlaced | OrderCancelled) -> None:
        self._outbox.publish(
            self._connection,
            aggregate_type="order",
            aggregate_id=str(order_id),
            event_type=type(event).__name__,
            payload=event,
        )


def trade(shop: Shop, orders: int, per_second: float) -> None:
    """Write `orders` orders at a steady pace; some are cancelled a little later."""
    customers = [shop.register_customer() for _ in range(CUSTOMERS)]
    to_cancel: list[OrderPlaced] = []
    start = time.monotonic()
    for number in range(orders):
        order = shop.place_order(pick(customers), pick(SKUS), pick(range(1, 6)))
        if pick(range(100)) < CANCELLED_PERCENT:
            to_cancel.append(order)
        if len(to_cancel) > CUSTOMERS:
            shop.cancel_order(to_cancel.pop(0))
        time.sleep(max(0.0, start + number / per_second - time.monotonic()))
    for order in to_cancel:
        shop.cancel_order(order)


def main() -> None:
    """Make the shop's tables and trade."""
    arguments = argparse.ArgumentParser(description="Write orders with their outbox rows.")
    arguments.add_argument("--orders", type=int, default=100)
    arguments.add_argument("--per-second", type=float, default=100)
    given = arguments.parse_args()
    url = os.environ["INBOX_SOURCE_DATABASE_URL"]
    outbox = Outbox(os.environ.get("INBOX_SOURCE_DB_SCHEMA", "public"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(Path(__file__).with_name("shop.sql").read_bytes())
        trade(Shop(connection, outbox), given.orders, given.per_second)


if __name__ == "__main__":
    main()

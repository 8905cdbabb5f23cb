"""The loyalty programme: points for customers, from two aggregates.

Run it with `debezium-inbox run examples.orders.loyalty:Loyalty`.
"""

from typing import Any
from uuid import UUID

import psycopg

from consumer import Event, EventHandler, handles

from .events import CustomerRegistered, OrderPlaced

Connection = psycopg.Connection[Any]

WELCOME = 100
PER_PIECE = 10


class Loyalty(EventHandler):
    """Gives points for registering and for orders; cancelled orders keep theirs.

    Order holds within one aggregate, not between two: an order may come before its customer's
    registration, so both add to the balance, and neither needs the other.
    """

    consumer = "loyalty"
    topics = ("outbox.customer", "outbox.order")

    @handles("CustomerRegistered")
    def welcome(self, event: Event[CustomerRegistered], connection: Connection) -> None:
        _add(event.id, event.payload.customer_id, WELCOME, connection)

    @handles("OrderPlaced")
    def reward(self, event: Event[OrderPlaced], connection: Connection) -> None:
        _add(event.id, event.payload.customer_id, PER_PIECE * event.payload.quantity, connection)


def _add(event_id: UUID, customer_id: UUID, points: int, connection: Connection) -> None:
    connection.execute(
        "INSERT INTO point_movements (event_id, customer_id, points) VALUES (%s, %s, %s)",
        [event_id, customer_id, points],
    )
    connection.execute(
        "INSERT INTO points AS p VALUES (%s, %s)"
        " ON CONFLICT (customer_id) DO UPDATE SET balance = p.balance + EXCLUDED.balance",
        [customer_id, points],
    )

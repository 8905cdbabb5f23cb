"""The warehouse: reserves stock for orders.

Run it with `debezium-inbox run examples.orders.warehouse:Warehouse`.
"""

from typing import Any

import psycopg

from consumer import Event, EventHandler, handles

from .events import OrderCancelled, OrderPlaced

Connection = psycopg.Connection[Any]


class Warehouse(EventHandler):
    """Keeps the stock reserved for orders, and a ledger of how it came about."""

    consumer = "stock"
    topics = ("outbox.order",)

    @handles("OrderPlaced")
    def reserve(self, event: Event[OrderPlaced], connection: Connection) -> None:
        _move(event, event.payload.quantity, connection)

    @handles("OrderCancelled")
    def release(self, event: Event[OrderCancelled], connection: Connection) -> None:
        _move(event, -event.payload.quantity, connection)


def _move(
    event: Event[OrderPlaced] | Event[OrderCancelled], quantity: int, connection: Connection
) -> None:
    order = event.payload
    connection.execute(
        "INSERT INTO stock_movements (event_id, order_id, version, quantity)"
        " VALUES (%s, %s, %s, %s)",
        [event.id, order.order_id, order.version, quantity],
    )
    connection.execute(
        "INSERT INTO stock AS s VALUES (%s, %s)"
        " ON CONFLICT (sku) DO UPDATE SET reserved = s.reserved + EXCLUDED.reserved",
        [order.sku, quantity],
    )

"""Handlers that the process tests run."""

from typing import Any

import psycopg
from pydantic import BaseModel

from consumer import Event, EventHandler, handles


class Numbered(BaseModel):
    """An event's payload."""

    n: int


class Ledger(EventHandler):
    """Writes down what it saw; the table has no unique key. Topics come from the environment."""

    consumer = "ledger"
    topics = ("placeholder",)

    def __init__(self) -> None:
        import os  # noqa: PLC0415  # the test says which topic and which table

        type(self).topics = (os.environ["TEST_TOPIC"],)
        type(self).consumer = os.environ["TEST_TOPIC"]

    @handles("OrderPlaced")
    def placed(self, event: Event[Numbered], connection: psycopg.Connection[Any]) -> None:
        """Write it down, or fail where the event says so."""
        connection.execute(
            "INSERT INTO seen (consumer, event_id, key, n) VALUES (%s, %s, %s, %s)",
            [self.consumer, event.id, event.key, event.payload.n],
        )
        if event.payload.n < 0:
            raise ValueError("4111111111111111")


class NoConsumerBase:
    """No handler at all."""


class NeedsArguments(EventHandler):
    """Cannot be made by the command."""

    consumer = "needs-arguments"
    topics = ("t",)

    def __init__(self, service: object) -> None:
        self.service = service

    def handle(self, event: Event[Any], connection: Any) -> None:
        """Do nothing."""

"""The hand-written loop under FastStream: one transaction an event, as its documentation shows."""

import asyncio
import os
from typing import Any

import psycopg
from faststream import AckPolicy, FastStream
from faststream.kafka import KafkaBroker, KafkaMessage

from benchmarks.contestants.plain import CLAIM_ONE, EVENTS, GROUP, SERVERS, TOPIC
from benchmarks.contestants.report import EFFECT, Report

broker = KafkaBroker(SERVERS, logger=None)
app = FastStream(broker, logger=None)
report = Report()
connections: list[psycopg.AsyncConnection[Any]] = []


@broker.subscriber(TOPIC, group_id=GROUP, auto_offset_reset="earliest", ack_policy=AckPolicy.ACK)
async def apply(body: dict[str, Any], message: KafkaMessage) -> None:
    """Claim the event and add the order to its customer's totals."""
    report.begin()
    [connection] = connections
    async with connection.transaction():
        claimed = await connection.execute(CLAIM_ONE, (GROUP, message.headers["id"]))
        if claimed.rowcount:
            await connection.execute(EFFECT, (body["customer"], body["amount"]))
    report.count(1)
    if len(report.done) >= EVENTS:
        app.exit()


async def main() -> None:
    """Consume as many events as there are."""
    url = os.environ["INBOX_DATABASE_URL"]
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        connections.append(connection)
        await app.run()
    report.print()


if __name__ == "__main__":
    asyncio.run(main())

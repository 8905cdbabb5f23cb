"""A topic of events as Debezium's outbox router writes them."""

import json
import time
from uuid import uuid4

import uuid_utils
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

PARTITIONS = 3
KEYS = 5_000


def make_topic(servers: str) -> str:
    """An empty topic with a name of its own."""
    name = f"outbox.bench-{uuid4().hex[:8]}"
    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.create_topics({name: {"num_partitions": PARTITIONS, "replication_factor": 1}})
    admin.close()
    return name


def fill(servers: str, topic: str, events: int, *, size: int = 200, copies: int = 1) -> None:
    """Write events whose values are about `size` bytes, in key order, each so many times."""
    producer = KafkaProducer(bootstrap_servers=servers, linger_ms=20, batch_size=200_000)
    padding = "x" * (size - 60)
    for n in range(events):
        key = str(n % KEYS)
        value = {"order": n, "customer": key, "amount": n % 997, "note": padding}
        headers = _headers()
        for _ in range(copies):
            producer.send(
                topic, key=key.encode(), value=json.dumps(value).encode(), headers=headers
            )
    producer.flush()
    producer.close()


def _headers() -> list[tuple[str, bytes]]:
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    return [
        ("id", str(uuid_utils.uuid7()).encode()),
        ("eventType", b"OrderPlaced"),
        ("aggregateType", b"order"),
        ("createdAt", now.encode()),
    ]

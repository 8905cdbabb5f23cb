"""The two ports that every effect of the engine goes through: the broker and the inbox."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol
from uuid import UUID

from consumer.event import Record
from consumer.handler import Connection


class Partition(NamedTuple):
    """A topic's partition, with the topic's id: a topic that is deleted and made again is another."""

    topic: str
    topic_id: UUID
    number: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.number}"


Polled = Mapping[Partition, Sequence[Record]]
"""What one poll gave: records by partition, in offset order."""


class Broker(Protocol):
    """Kafka, as the engine needs it."""

    def unplaced(self) -> frozenset[Partition]:
        """Assigned partitions that are paused until `start_at` says where they start."""
        ...

    def committed(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        """The group's committed offset of each partition, else the log's first offset."""
        ...

    def end_offsets(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        """The offset after the last record of each partition."""
        ...

    def start_at(self, next_offsets: Mapping[Partition, int]) -> None:
        """Seek to each offset and let the partition flow."""
        ...

    def poll(self, timeout_s: float, most: int) -> Polled:
        """Keep the group alive and take up to `most` records, waiting up to `timeout_s`."""
        ...

    def hold(self) -> None:
        """Pause every assigned partition and make it unplaced; what was polled is taken back."""
        ...

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Commit explicit offsets; a failure is logged, since redelivery is absorbed."""
        ...


class InboxTransaction(Protocol):
    """One open transaction of the inbox."""

    @property
    def connection(self) -> Connection:
        """The connection that handlers write through."""
        ...

    def open_batch(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        """The positions of these partitions, locked; from here on only a closed batch commits."""
        ...

    def claim(self, event_ids: Iterable[UUID]) -> set[UUID]:
        """Insert the ids and answer those that are fresh; the rest are duplicates."""
        ...

    def close_batch(self, next_offsets: Mapping[Partition, int]) -> None:
        """Move the positions up; the transaction may commit."""
        ...


class Inbox(Protocol):
    """The inbox's database, as the engine needs it."""

    def positions(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        """The stored positions of these partitions."""
        ...

    def transaction(self) -> AbstractContextManager[InboxTransaction]:
        """One transaction; it commits when the block ends and rolls back when the block raises."""
        ...

    @property
    def broken(self) -> bool:
        """Whether the connection is lost."""
        ...

    def probe(self) -> None:
        """Connect again if needed and ask the database for an answer; raises when there is none."""
        ...

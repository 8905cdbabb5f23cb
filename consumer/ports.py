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

    def subscribe(self, owner: "Owner") -> None:
        """Join the group; `owner` is asked when partitions are taken away."""
        ...

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

    def pause(self) -> None:
        """Take no records for now; polls keep the group alive."""
        ...

    def resume(self) -> None:
        """Take records again, of all partitions that are placed."""
        ...

    def at_end(self) -> bool:
        """Whether all there was of the assigned partitions, when asked, has been polled."""
        ...

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Commit explicit offsets; a failure is logged, since redelivery is absorbed."""
        ...


class Owner(Protocol):
    """Who works on the partitions, as the broker needs it to take some away; called inside of poll()."""

    def let_go(self, partitions: Iterable[Partition]) -> None:
        """Drop what is queued of these; what runs may finish."""
        ...

    def works_for(self, partitions: Iterable[Partition]) -> bool:
        """Whether a transaction runs that has an event of one of these."""
        ...

    def cut(self, partitions: Iterable[Partition]) -> None:
        """Roll back what runs for these."""
        ...

    def next_offsets(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        """How far these are done, where that is further than the committed offset."""
        ...

    def forget(self, partitions: Iterable[Partition]) -> None:
        """These are another member's now."""
        ...


class InboxTransaction(Protocol):
    """One open transaction of the inbox."""

    @property
    def connection(self) -> Connection:
        """The connection that handlers write through."""
        ...

    def open_batch(
        self, partitions: Iterable[Partition], event_ids: Iterable[UUID]
    ) -> tuple[Mapping[Partition, int], set[UUID]]:
        """Claim the ids; answer the partitions' positions, and the ids that are fresh.

        The other ids are duplicates. From here on only a closed batch commits.
        """
        ...

    def close_batch(self, next_offsets: Mapping[Partition, int]) -> None:
        """Move the positions up; the transaction may commit."""
        ...


class Inbox(Protocol):
    """The inbox's database, as the engine needs it."""

    def positions(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        """The stored positions of these partitions."""
        ...

    def raise_positions(self, next_offsets: Mapping[Partition, int]) -> None:
        """Move the positions up, never down, without any event."""
        ...

    def transaction(self, *, pipeline: bool) -> AbstractContextManager[InboxTransaction]:
        """One transaction; it commits when the block ends and rolls back when the block raises.

        `pipeline`: statements are sent without waiting for their results.
        """
        ...

    def close(self) -> None:
        """Close the connection."""
        ...

    def cut(self) -> None:
        """Break the connection, from any thread; what runs on it raises, and Postgres rolls back."""
        ...

    @property
    def broken(self) -> bool:
        """Whether the connection is lost."""
        ...

    def probe(self) -> None:
        """Connect again if needed and ask the database for an answer; raises when there is none."""
        ...

"""A batch: consecutive records of some partitions, decoded up to the first that cannot be read."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from consumer.errors import DecodeError, PoisonError
from consumer.event import Event, Record, place
from consumer.handler import Declaration
from consumer.ports import Partition, Polled
from consumer.wire.decode import Skipped, decode


@dataclass(slots=True)
class Batch:
    """Events to apply in one transaction, and how far they reach in each partition."""

    events: list[tuple[Partition, Event[Any]]] = field(default_factory=list)
    next_offsets: dict[Partition, int] = field(default_factory=dict)
    """The offset after the last record of each partition that this batch covers."""
    skipped: Counter[str] = field(default_factory=Counter)
    """How many records were passed over, by reason."""
    poison: PoisonError | None = None
    """Why the batch ends in front of a record that cannot be read."""

    def singles(self) -> Iterator["Batch"]:
        """The same events one by one, then what remains of the offsets."""
        for partition, event in self.events:
            yield Batch([(partition, event)], {partition: event.offset + 1})
        yield Batch(next_offsets=self.next_offsets, skipped=self.skipped)


def read_batch(polled: Polled, declaration: Declaration) -> Batch:
    """Decode what was polled, partition by partition, and stop at the first undecodable record."""
    batch = Batch()
    for partition, record in _records(polled):
        try:
            outcome = decode(record, declaration)
        except DecodeError as error:
            batch.poison = _unreadable(record, error)
            return batch
        batch.next_offsets[partition] = record.offset + 1
        if isinstance(outcome, Skipped):
            batch.skipped[outcome.reason] += 1
        else:
            batch.events.append((partition, outcome))
    return batch


def _records(polled: Polled) -> Iterator[tuple[Partition, Record]]:
    for partition, records in polled.items():
        for record in records:
            yield partition, record


def _unreadable(record: Record, error: DecodeError) -> PoisonError:
    return PoisonError(
        f"record {place(record)} cannot be read: {error}; the consumer stopped in front of it and "
        f"nothing is lost"
    )

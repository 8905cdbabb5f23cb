"""Polled records become events in the lanes' queues, partition by partition, in offset order."""

from collections import Counter
from collections.abc import Mapping, Sequence

from consumer.engine.assignment import Assignment
from consumer.engine.batch import Taken
from consumer.engine.lanes import Lanes
from consumer.errors import DecodeError, PoisonError
from consumer.event import Record, place
from consumer.handler import Declaration
from consumer.wire.decode import Skipped, decode


class Dispatcher:
    """Decodes ahead of the lanes, up to the first record that cannot be read."""

    def __init__(self, declaration: Declaration, lanes: Lanes) -> None:
        self._declaration, self._lanes = declaration, lanes
        self.poison: PoisonError | None = None
        """Why nothing more is taken: a record that cannot be read."""

    def dispatch(self, assignment: Assignment, records: Sequence[Record]) -> Mapping[str, int]:
        """Take the records of one partition; answer how many were passed over, by reason."""
        taken: list[Taken] = []
        skipped: Counter[str] = Counter()
        for record in records:
            try:
                outcome = decode(record, self._declaration)
            except DecodeError as error:
                self.poison = _unreadable(record, error)
                break
            assignment.take(record.offset)
            if isinstance(outcome, Skipped):
                skipped[outcome.reason] += 1
                assignment.finish([record.offset])
            else:
                taken.append(Taken(outcome, assignment, _size(record)))
        self._lanes.give(taken)
        return skipped


def _size(record: Record) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers


def _unreadable(record: Record, error: DecodeError) -> PoisonError:
    return PoisonError(
        f"record {place(record)} cannot be read: {error}; the consumer stopped in front of it and "
        f"nothing is lost"
    )

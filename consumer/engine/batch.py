"""A batch: events of one lane that take effect in one transaction, and what they mean for positions."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from consumer.engine.assignment import Assignment
from consumer.event import Event
from consumer.ports import Partition


class Taken(NamedTuple):
    """An event, the stay of its partition that it came with, and its record's size in bytes."""

    event: Event[Any]
    assignment: Assignment
    size: int


class Batch:
    """Events to apply in one transaction."""

    def __init__(self, taken: list[Taken]) -> None:
        self.taken = taken
        self._offsets: dict[Assignment, set[int]] = defaultdict(set)
        for each in taken:
            self._offsets[each.assignment].add(each.event.offset)

    @property
    def partitions(self) -> list[Partition]:
        """Where the events are from."""
        return [assignment.partition for assignment in self._offsets]

    def next_offsets(self) -> Mapping[Partition, int]:
        """How far each partition's position goes with this batch."""
        return {each.partition: each.reach(offsets) for each, offsets in self._offsets.items()}

    def finish(self, stored: Mapping[Partition, int]) -> None:
        """The batch's transaction was committed, with these positions."""
        for assignment, offsets in self._offsets.items():
            assignment.finish(offsets, stored[assignment.partition])

    def pending(self) -> "Batch":
        """The events that are not done, and whose partitions are still with this member."""
        return Batch([each for each in self.taken if each.assignment.awaits(each.event.offset)])

    def concerns(self, assignments: Iterable[Assignment]) -> bool:
        """Whether it has an event of one of these."""
        return not self._offsets.keys().isdisjoint(assignments)

    def singles(self) -> Iterator["Batch"]:
        """The same events one by one."""
        for each in self.taken:
            yield Batch([each])

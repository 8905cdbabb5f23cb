"""The partitions that this member has, and what the broker must know to take one away."""

from collections.abc import Iterable, Mapping

from consumer.engine.assignment import Assignment
from consumer.engine.lanes import Lanes
from consumer.ports import Partition


class Assignments:
    """All stays of partitions with this member; the broker's side of it is the port `Owner`."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._assignments: dict[Partition, Assignment] = {}
        self._committed: dict[Partition, int] = {}

    @property
    def idle(self) -> bool:
        """Whether all that was taken is done."""
        return all(each.idle for each in self._assignments.values())

    def add(self, start: Mapping[Partition, int], committed: Mapping[Partition, int]) -> None:
        """Partitions begin at these offsets; the group has committed those."""
        for partition, offset in start.items():
            self._assignments[partition] = Assignment(partition, offset)
        self._committed |= committed

    def of(self, partition: Partition) -> Assignment:
        """The partition's present stay."""
        return self._assignments[partition]

    def behind(self, *, only_idle: bool) -> Mapping[Partition, int]:
        """How far partitions are done whose stored position is lower."""
        return {
            partition: each.next_offset
            for partition, each in self._assignments.items()
            if each.stored < each.next_offset and (each.idle or not only_idle)
        }

    def stored(self, positions: Mapping[Partition, int]) -> None:
        """The inbox has these positions."""
        for partition, offset in positions.items():
            self._assignments[partition].finish((), stored=offset)

    def committed(self, next_offsets: Mapping[Partition, int]) -> None:
        """The group has these offsets."""
        self._committed |= next_offsets

    def to_commit(self) -> Mapping[Partition, int]:
        """How far partitions are done whose committed offset is lower."""
        return self.next_offsets(self._assignments)

    def let_go(self, partitions: Iterable[Partition]) -> None:
        """Drop what is queued of these; what runs may finish."""
        self._lanes.let_go(self._present(partitions))

    def works_for(self, partitions: Iterable[Partition]) -> bool:
        """Whether a transaction runs that has an event of one of these."""
        return self._lanes.work_for(self._present(partitions))

    def cut(self, partitions: Iterable[Partition]) -> None:
        """Roll back what runs for these."""
        self._lanes.cut(self._present(partitions))

    def next_offsets(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        """How far these are done, where that is further than the committed offset."""
        return {
            each.partition: each.next_offset
            for each in self._present(partitions)
            if each.next_offset > self._committed.get(each.partition, 0)
        }

    def forget(self, partitions: Iterable[Partition]) -> None:
        """These are another member's now."""
        for each in partitions:
            self._assignments.pop(each, None)
            self._committed.pop(each, None)

    def _present(self, partitions: Iterable[Partition]) -> list[Assignment]:
        return [self._assignments[each] for each in partitions if each in self._assignments]

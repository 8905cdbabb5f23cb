"""A broker in memory: one member, any number of partitions, commits kept; the real one's port."""

from collections.abc import Callable, Iterable, Mapping
from uuid import UUID, uuid4

from consumer.event import Record
from consumer.ports import Owner, Partition, Polled
from tests.builders import ARecord, headers
from tests.waiting import until

TOPIC_ID = UUID(int=7)


class MemoryBroker:
    """Holds records by partition; a new instance over the same log is a new member."""

    def __init__(self, log: "MemoryLog") -> None:
        self.log, self.paused = log, False
        self.on_let_go: Callable[[], object] = lambda: None
        self.on_cut: Callable[[], object] = lambda: None
        self._unplaced = frozenset(log.records)
        self._next: dict[Partition, int] = {}

    def subscribe(self, owner: Owner) -> None:
        self.owner = owner

    def unplaced(self) -> frozenset[Partition]:
        return self._unplaced

    def committed(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        return {each: self.log.committed.get(each, 0) for each in partitions}

    def end_offsets(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        return {each: self.log.end(each) for each in partitions}

    def start_at(self, next_offsets: Mapping[Partition, int]) -> None:
        self._next |= next_offsets
        self._unplaced -= next_offsets.keys()

    def poll(self, timeout_s: float, most: int) -> Polled:
        polled: dict[Partition, list[Record]] = {}
        if self.paused:
            return polled
        for partition, start in self._next.items():
            if partition in self._unplaced:
                continue
            found = [r for r in self.log.records[partition] if r.offset >= start]
            found = found[: most - sum(map(len, polled.values()))]
            if found:
                polled[partition] = list(found)
                self._next[partition] = found[-1].offset + 1
        return polled

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def at_end(self) -> bool:
        return all(self._next[each] >= self.log.end(each) for each in self._next)

    def take_away(self, partitions: list[Partition], patience_s: float) -> None:
        """What the real broker does inside of poll() when a rebalance takes partitions away."""
        self._next = {p: offset for p, offset in self._next.items() if p not in partitions}
        self.owner.let_go(partitions)
        self.on_let_go()
        if not self._ended(partitions, patience_s):
            self.owner.cut(partitions)
            self.on_cut()
            self._ended(partitions, 10)
        self.commit(self.owner.next_offsets(partitions))
        self.owner.forget(partitions)

    def _ended(self, partitions: list[Partition], seconds: float) -> bool:
        try:
            until(lambda: not self.owner.works_for(partitions), "the work to end", seconds)
        except AssertionError:
            return False
        return True

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        self.log.committed |= next_offsets


class MemoryLog:
    """What survives a member: the records and the group's committed offsets."""

    def __init__(self) -> None:
        self.records: dict[Partition, list[ARecord]] = {}
        self.committed: dict[Partition, int] = {}

    def add(
        self,
        event_id: UUID | str | None = None,
        *,
        key: str = "o-1",
        event_type: str = "OrderPlaced",
        value: bytes = b"{}",
        partition: int = 0,
        gap: int = 0,
    ) -> ARecord:
        """Append a record, after `gap` offsets that hold none."""
        place = Partition("outbox.order", TOPIC_ID, partition)
        record = ARecord(
            partition=partition,
            offset=self.end(place) + gap,
            key=key.encode(),
            value=value,
            headers=headers(id=str(event_id or uuid4()), eventType=event_type),
        )
        self.records.setdefault(place, []).append(record)
        return record

    def end(self, partition: Partition) -> int:
        """The offset after the partition's last record."""
        records = self.records.get(partition)
        return records[-1].offset + 1 if records else 0

"""Which assigned partitions are placed, so that nothing is read before the engine says from where."""

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition

from consumer.errors import KafkaUnavailableError
from consumer.event import Record
from consumer.ports import Partition, Polled


class Placement:
    """Assigned partitions: paused until they are placed, and paused again when told to."""

    def __init__(self, consumer: KafkaConsumer) -> None:
        self._consumer = consumer
        self._unplaced: set[TopicPartition] = set()
        self._placed: dict[TopicPartition, Partition] = {}
        self._paused = False
        self._assigned_before = False

    def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        """These came to this member."""
        came = set(partitions)
        if came:
            self._consumer.pause(*came)
        for each in came:
            self._placed.pop(each, None)
        self._unplaced |= came
        self._assigned_before = True

    def taken_away(self, partitions: Iterable[TopicPartition]) -> list[Partition]:
        """These went; answer those of them that were placed."""
        gone = set(partitions)
        self._unplaced -= gone
        return [self._placed.pop(each) for each in gone if each in self._placed]

    def placed(self, partitions: Iterable[TopicPartition]) -> list[Partition]:
        """Those of the partitions that are placed."""
        return [self._placed[each] for each in partitions if each in self._placed]

    def unplaced(self) -> frozenset[Partition]:
        """Partitions that are to be placed."""
        return frozenset(self._identified(each) for each in list(self._unplaced))

    def start_at(self, next_offsets: Mapping[Partition, int]) -> None:
        """Seek to each offset and let the partition flow."""
        for partition, offset in next_offsets.items():
            place = topic_partition(partition)
            self._unplaced.discard(place)
            if place in self._consumer.assignment():  # else it was revoked in the meantime
                self._placed[place] = partition
                self._consumer.seek(place, offset)
                if not self._paused:
                    self._consumer.resume(place)

    def pause(self) -> None:
        """Give no records."""
        self._paused = True
        self._consumer.pause(*self._consumer.assignment())

    def resume(self) -> None:
        """Give records of all partitions that are placed."""
        self._paused = False
        self._consumer.resume(*self._placed)

    def at_end(self) -> bool:
        """Whether the next fetch of every partition is at or beyond its end."""
        if not self._assigned_before or self._unplaced:
            return False
        ends = self._consumer.end_offsets(list(self._placed)) if self._placed else {}
        return all(self._consumer.position(each) >= end for each, end in ends.items())

    def of_placed(self, polled: Mapping[TopicPartition, Sequence[Record]]) -> Polled:
        """What was polled, of partitions that are placed.

        One that was assigned anew inside this very poll is not, and neither is one whose topic was
        deleted and made again under the same name; that one is placed anew.
        """
        given: dict[Partition, Sequence[Record]] = {}
        for place, records in polled.items():
            partition = self._placed.get(place)
            if partition is None or place in self._unplaced:
                continue
            if partition.topic_id == self._topic_id(place):
                given[partition] = records
            else:
                self.assigned([place])
        return given

    def _identified(self, place: TopicPartition) -> Partition:
        topic_id = self._topic_id(place)
        if topic_id is None:
            raise KafkaUnavailableError(
                f"Kafka gives no id for topic {place.topic!r}: the topic was deleted, or the broker is "
                f"older than 2.8"
            )
        return Partition(place.topic, topic_id, place.partition)

    def _topic_id(self, place: TopicPartition) -> UUID | None:
        # kafka-python has no public way to a topic's id
        found: UUID | None = self._consumer._cluster.topic_id(place.topic)  # noqa: SLF001
        return found


def topic_partition(partition: Partition) -> TopicPartition:
    """The partition, as kafka-python names it."""
    return TopicPartition(partition.topic, partition.number)


def to_offsets(next_offsets: Mapping[Partition, int]) -> dict[TopicPartition, OffsetAndMetadata]:
    """Explicit offsets, as kafka-python commits them."""
    return {
        topic_partition(partition): OffsetAndMetadata(offset, "", -1)
        for partition, offset in next_offsets.items()
    }

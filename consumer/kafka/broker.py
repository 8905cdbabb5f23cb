"""One member of a consumer group.

kafka-python runs a consumer's network on a thread of its own, and calls the rebalance listener there
while the user's thread is inside poll() or close(). What was assigned is paused at once, and the engine
places those partitions before its next poll.
"""

import difflib
import re
import time
from collections.abc import Iterable, Mapping
from typing import Self

from kafka import KafkaConsumer
from kafka import errors as kafka_errors

from consumer.errors import TopicMissingError
from consumer.handler import Topics
from consumer.kafka.listener import Listener, log_not_committed
from consumer.kafka.placement import Placement, to_offsets, topic_partition
from consumer.kafka.reaching import BOOTSTRAP_TIMEOUT_MS, check_reachable, reaching
from consumer.ports import Owner, Partition, Polled

CLOSE_TIMEOUT_MS = 5_000
COMMIT_TIMEOUT_MS = 5_000
JOIN_PATIENCE_S = 3.0
JOIN_POLL_MS = 250
MAX_POLL_INTERVAL_MS = 300_000
_NEAR_NAMES = 3


class KafkaBroker:
    """One member of a consumer group."""

    def __init__(
        self,
        bootstrap_servers: str,
        group_id: str,
        topics: Topics,
        group_instance_id: str | None = None,
        *,
        revoke_timeout_s: float,
    ) -> None:
        self._servers, self._topics = bootstrap_servers, topics
        self._revoke_timeout_s = revoke_timeout_s
        with reaching(bootstrap_servers):
            check_reachable(bootstrap_servers)
            self._consumer = KafkaConsumer(
                bootstrap_servers=bootstrap_servers.split(","),
                group_id=group_id,
                group_instance_id=group_instance_id,
                client_id="debezium-inbox",
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                isolation_level="read_committed",  # an exactly-once connector's aborted records
                allow_auto_create_topics=False,  # a typo in a topic's name must not make the topic
                max_poll_interval_ms=MAX_POLL_INTERVAL_MS,
                bootstrap_timeout_ms=BOOTSTRAP_TIMEOUT_MS,
            )
        self._placement = Placement(self._consumer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close(autocommit=False, timeout_ms=CLOSE_TIMEOUT_MS)

    def subscribe(self, owner: Owner) -> None:
        """Join the group for the topics; `owner` is asked when partitions are taken away."""
        listener = Listener(self._consumer, self._placement, owner, self._revoke_timeout_s)
        if isinstance(self._topics, re.Pattern):
            self._consumer.subscribe(pattern=self._topics, listener=listener)
        else:
            self._consumer.subscribe(topics=list(self._topics), listener=listener)

    def missing_topics(self) -> list[str]:
        """Names of topics, or the pattern, that nothing in the cluster answers to; asks Kafka."""
        present = self._present()
        if isinstance(self._topics, re.Pattern):
            return [] if any(map(self._topics.match, present)) else [self._topics.pattern]
        return [name for name in self._topics if name not in present]

    def topic_missing_error(self, name: str) -> TopicMissingError:
        """The error for a topic that is not there, with names that are near."""
        present = sorted(self._present())
        near = difflib.get_close_matches(name, present, n=_NEAR_NAMES) or present[:_NEAR_NAMES]
        return TopicMissingError(
            f"topic {name!r} does not exist at {self._servers}; "
            + (f"near names: {', '.join(near)}; " if near else "there are no topics at all; ")
            + "Connect makes it with the first event: start with --wait-for-topic to wait for that"
        )

    def unplaced(self) -> frozenset[Partition]:
        """Assigned partitions that are paused until `start_at` says where they start."""
        with reaching(self._servers):
            return self._placement.unplaced()

    def committed(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        """The group's committed offset of each partition, else the log's first offset."""
        asked = {topic_partition(each): each for each in partitions}
        with reaching(self._servers):
            first = self._consumer.beginning_offsets(list(asked))
            committed = {each: self._consumer.committed(each) for each in asked}
        return {
            asked[each]: first[each] if offset is None else offset
            for each, offset in committed.items()
        }

    def end_offsets(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        """The offset after the last record of each partition."""
        asked = {topic_partition(each): each for each in partitions}
        with reaching(self._servers):
            ends = self._consumer.end_offsets(list(asked)) if asked else {}
        return {asked[each]: offset for each, offset in ends.items()}

    def start_at(self, next_offsets: Mapping[Partition, int]) -> None:
        """Seek to each offset and let the partition flow."""
        self._placement.start_at(next_offsets)

    def pause(self) -> None:
        """Take no records for now; polls keep the group alive."""
        self._placement.pause()

    def resume(self) -> None:
        """Take records again, of all partitions that are placed."""
        self._placement.resume()

    def at_end(self) -> bool:
        """Whether all there was of the assigned partitions, when asked, has been polled.

        By what the client will fetch next, not by the last record: an exactly-once connector's
        transactions end in markers, which have offsets and are no records.
        """
        with reaching(self._servers):
            return self._placement.at_end()

    def poll(self, timeout_s: float, most: int) -> Polled:
        """Keep the group alive and take up to `most` records, waiting up to `timeout_s`."""
        with reaching(self._servers):
            polled = self._consumer.poll(timeout_ms=int(timeout_s * 1000), max_records=most)
            until = time.monotonic() + JOIN_PATIENCE_S
            while self._still_joining() and not polled and time.monotonic() < until:
                polled = self._consumer.poll(timeout_ms=JOIN_POLL_MS, max_records=most)
            return self._placement.of_placed(polled)

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Commit explicit offsets; a failure is logged, since redelivery is absorbed."""
        try:
            self._consumer.commit(to_offsets(next_offsets), timeout_ms=COMMIT_TIMEOUT_MS)
        except kafka_errors.KafkaError as error:
            log_not_committed(error, next_offsets)

    def _still_joining(self) -> bool:
        """Whether the last poll() left a rejoin in flight; then the next one goes on with it.

        Without being asked to, kafka-python 3.0.12 forgets a rejoin for changed metadata whose answer
        comes after poll()'s timeout: the listener is never called, heartbeats stay off, and nothing is
        ever consumed. And a rejoin that ends between two polls is begun again, which is why polls
        follow each other at once until it is over.
        """
        coordinator = self._consumer._coordinator  # noqa: SLF001  # there is no public way
        if coordinator.rejoining:
            coordinator.request_rejoin()
        return bool(coordinator.rejoining)

    def _present(self) -> set[str]:
        with reaching(self._servers):
            return set(self._consumer.topics())

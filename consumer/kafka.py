"""Kafka, through kafka-python: the only module that imports it.

kafka-python runs a consumer's network on a thread of its own, and calls the rebalance listener there
while the user's thread is inside poll() or close(); a listener may not make blocking calls. So the
listener only pauses what was assigned, and the engine places those partitions before the next poll.
"""

import difflib
import re
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Self

import structlog
from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka import errors as kafka_errors
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient
from kafka.consumer.subscription_state import ConsumerRebalanceListener

from consumer.errors import KafkaUnavailableError, SettingsError, TopicMissingError
from consumer.handler import Topics
from consumer.ports import Partition, Polled

BOOTSTRAP_TIMEOUT_MS = 10_000
CONNECT_TIMEOUT_S = 5
CLOSE_TIMEOUT_MS = 5_000
JOIN_PATIENCE_S = 3.0
JOIN_POLL_MS = 250
MAX_POLL_INTERVAL_MS = 300_000
_NEAR_NAMES = 3

_log = structlog.get_logger("debezium-inbox")


class KafkaBroker:
    """One member of a consumer group."""

    def __init__(
        self,
        bootstrap_servers: str,
        group_id: str,
        topics: Topics,
        group_instance_id: str | None = None,
    ) -> None:
        self._servers, self._topics = bootstrap_servers, topics
        self._unplaced: set[TopicPartition] = set()
        with _reaching(bootstrap_servers):
            _check_reachable(bootstrap_servers)
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close(autocommit=False, timeout_ms=CLOSE_TIMEOUT_MS)

    def subscribe(self) -> None:
        """Join the group for the topics."""
        listener = _Listener(self._assigned, self._revoked)
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
        return frozenset(self._partition(each) for each in list(self._unplaced))

    def committed(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        """The group's committed offset of each partition, else the log's first offset."""
        asked = {_topic_partition(each): each for each in partitions}
        with _reaching(self._servers):
            first = self._consumer.beginning_offsets(list(asked))
            committed = {each: self._consumer.committed(each) for each in asked}
        return {
            asked[each]: first[each] if offset is None else offset
            for each, offset in committed.items()
        }

    def end_offsets(self, partitions: Iterable[Partition]) -> Mapping[Partition, int]:
        """The offset after the last record of each partition."""
        asked = {_topic_partition(each): each for each in partitions}
        with _reaching(self._servers):
            ends = self._consumer.end_offsets(list(asked)) if asked else {}
        return {asked[each]: offset for each, offset in ends.items()}

    def start_at(self, next_offsets: Mapping[Partition, int]) -> None:
        """Seek to each offset and let the partition flow."""
        for partition, offset in next_offsets.items():
            placed = _topic_partition(partition)
            if placed in self._consumer.assignment():  # else it was revoked in the meantime
                self._consumer.seek(placed, offset)
                self._consumer.resume(placed)
            self._unplaced.discard(placed)

    def poll(self, timeout_s: float, most: int) -> Polled:
        """Keep the group alive and take up to `most` records, waiting up to `timeout_s`."""
        with _reaching(self._servers):
            polled = self._consumer.poll(timeout_ms=int(timeout_s * 1000), max_records=most)
            until = time.monotonic() + JOIN_PATIENCE_S
            while self._still_joining() and not polled and time.monotonic() < until:
                polled = self._consumer.poll(timeout_ms=JOIN_POLL_MS, max_records=most)
        # A partition that is unplaced by now was assigned anew inside this very poll.
        return {self._partition(k): v for k, v in polled.items() if k not in self._unplaced}

    def hold(self) -> None:
        """Pause every assigned partition and make it unplaced; what was polled is taken back."""
        self._assigned(self._consumer.assignment())

    def commit(self, next_offsets: Mapping[Partition, int]) -> None:
        """Commit explicit offsets; a failure is logged, since redelivery is absorbed."""
        offsets = {
            _topic_partition(partition): OffsetAndMetadata(offset, "", -1)
            for partition, offset in next_offsets.items()
        }
        try:
            self._consumer.commit(offsets)
        except kafka_errors.KafkaError as error:
            _log.warning(
                "offsets not committed, redelivery will be absorbed",
                action="offsets_not_committed",
                error=type(error).__name__,
                partitions=[str(partition) for partition in next_offsets],
            )

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
        with _reaching(self._servers):
            return set(self._consumer.topics())

    def _partition(self, assigned: TopicPartition) -> Partition:
        # kafka-python has no public way to a topic's id
        topic_id = self._consumer._cluster.topic_id(assigned.topic)  # noqa: SLF001
        if topic_id is None:
            raise KafkaUnavailableError(
                f"{self._servers} gives no id for topic {assigned.topic!r}: the topic was deleted, "
                f"or the broker is older than 2.8"
            )
        return Partition(assigned.topic, topic_id, assigned.partition)

    def _assigned(self, partitions: Iterable[TopicPartition]) -> None:
        assigned = set(partitions)
        if assigned:
            self._consumer.pause(*assigned)
        self._unplaced |= assigned

    def _revoked(self, partitions: Iterable[TopicPartition]) -> None:
        self._unplaced -= set(partitions)


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python has no types
    def __init__(self, assigned: Any, revoked: Any) -> None:
        self._on_assigned, self._on_revoked = assigned, revoked

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self._on_assigned(assigned)

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self._on_revoked(revoked)


def broker_answers(bootstrap_servers: str) -> bool:
    """Whether a broker answers a request."""
    try:
        with _admin(bootstrap_servers):
            return True
    except (KafkaUnavailableError, SettingsError):
        return False


def longest_redelivery_ms(bootstrap_servers: str, topics: Iterable[str]) -> dict[str, int | None]:
    """How long each topic that exists keeps an event at the most; None is for ever.

    A segment goes as a whole, `retention.ms` after its youngest record, and takes records for up to
    `segment.ms`, so the oldest record of a segment stays for the sum.
    """
    with _admin(bootstrap_servers) as admin:
        present = set(admin.list_topics())
        asked = [name for name in topics if name in present]
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in asked]
        described = admin.describe_configs(resources, config_filter="all") if asked else {}
    return {name: _kept_ms(described["topic"][name]) for name in asked}


@contextmanager
def _admin(servers: str) -> Iterator[Any]:
    with _reaching(servers):
        _check_reachable(servers)
        admin = KafkaAdminClient(
            bootstrap_servers=servers.split(","), bootstrap_timeout_ms=BOOTSTRAP_TIMEOUT_MS
        )
        with closing(admin):
            yield admin


def _check_reachable(servers: str) -> None:
    """Raise OSError when no server takes a connection.

    A kafka-python client that finds nobody raises as well, but later, and leaves its thread behind.
    """
    failed = OSError("no address")
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        try:
            socket.create_connection(
                (host.strip("[]"), int(port)), timeout=CONNECT_TIMEOUT_S
            ).close()
        except OSError as error:
            failed = error
        except ValueError:
            raise SettingsError(
                f"INBOX_KAFKA_BOOTSTRAP_SERVERS: expected host:port, got {server!r}"
            ) from None
        else:
            return
    raise failed


def _kept_ms(config: Mapping[str, Mapping[str, str]]) -> int | None:
    retention_ms = int(config["retention.ms"]["value"])
    deletes = "delete" in config["cleanup.policy"]["value"]
    return (
        retention_ms + int(config["segment.ms"]["value"]) if deletes and retention_ms >= 0 else None
    )


def _topic_partition(partition: Partition) -> TopicPartition:
    return TopicPartition(partition.topic, partition.number)


@contextmanager
def _reaching(servers: str) -> Iterator[None]:
    """Map kafka-python's errors: what a person must change, and what may heal."""
    try:
        yield
    except (
        kafka_errors.AuthorizationError,
        kafka_errors.FencedInstanceIdError,
        kafka_errors.SaslAuthenticationFailedError,
        kafka_errors.UnsupportedCodecError,
        kafka_errors.KafkaConfigurationError,
    ) as error:
        raise SettingsError(
            f"Kafka at {servers} refused: {type(error).__name__}: {error}"
        ) from error
    except (kafka_errors.KafkaError, OSError) as error:
        raise KafkaUnavailableError(
            f"Kafka at {servers} does not answer ({_reason(error)}); is it running, and is "
            f"INBOX_KAFKA_BOOTSTRAP_SERVERS right?"
        ) from error


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or type(error).__name__

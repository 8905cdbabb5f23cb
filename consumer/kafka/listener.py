"""What happens when partitions come and go; kafka-python awaits it on its network thread."""

import time
from collections.abc import Iterable, Mapping, Sequence

import structlog
from kafka import KafkaConsumer, TopicPartition
from kafka import errors as kafka_errors
from kafka.consumer.subscription_state import AsyncConsumerRebalanceListener

from consumer.kafka.placement import Placement, to_offsets
from consumer.ports import Owner, Partition

_LOOK_EVERY_S = 0.01
_AFTER_CUT_S = 1.0

_log = structlog.get_logger("debezium-inbox")


class Listener(AsyncConsumerRebalanceListener):  # type: ignore[misc]  # kafka-python has no types
    """Lets go of partitions in order: what runs may end, what is done is committed, the rest dropped."""

    def __init__(
        self, consumer: KafkaConsumer, placement: Placement, owner: Owner, patience_s: float
    ) -> None:
        self._consumer, self._placement, self._owner = consumer, placement, owner
        self._patience_s = patience_s

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Keep them paused until the engine has placed them."""
        self._placement.assigned(assigned)

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Wait for what runs, for so long; roll it back then; commit what is done."""
        gone = self._placement.taken_away(revoked)
        self._owner.let_go(gone)
        if not await self._ended(gone, self._patience_s):
            self._owner.cut(gone)
            await self._ended(gone, _AFTER_CUT_S)
        await self._commit(self._owner.next_offsets(gone))
        self._owner.forget(gone)

    async def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        """They are another member's already: commit nothing."""
        gone = self._placement.taken_away(lost)
        self._owner.let_go(gone)
        self._owner.forget(gone)

    async def _ended(self, partitions: Sequence[Partition], seconds: float) -> bool:
        until = time.monotonic() + seconds
        while self._owner.works_for(partitions):
            if time.monotonic() >= until:
                return False
            await self._consumer._net.sleep(_LOOK_EVERY_S)  # noqa: SLF001  # there is no public way
        return True

    async def _commit(self, next_offsets: Mapping[Partition, int]) -> None:
        if not next_offsets:
            return
        try:
            await self._consumer.commit_async(to_offsets(next_offsets))
        except kafka_errors.KafkaError as error:
            log_not_committed(error, next_offsets)


def log_not_committed(error: Exception, next_offsets: Iterable[Partition]) -> None:
    """A failed commit is no fault: redelivery is absorbed."""
    _log.warning(
        "offsets not committed, redelivery will be absorbed",
        action="offsets_not_committed",
        error=type(error).__name__,
        partitions=[str(partition) for partition in next_offsets],
    )

"""What the loop says of itself: one log event with a stable `action` for each thing that happens."""

from collections.abc import Mapping
from dataclasses import asdict

import structlog

from consumer.engine.apply import Applied
from consumer.engine.poison import describe
from consumer.ports import Partition


class Telemetry:
    """Log events of one consumer; every skip, duplicate and wait leaves a line."""

    def __init__(self, consumer: str) -> None:
        self._log = structlog.get_logger("debezium-inbox").bind(consumer=consumer)

    def started(self, group_id: str, topics: str) -> None:
        """The consumer begins."""
        self._log.info("consuming", action="started", group_id=group_id, topics=topics)

    def stopped(self) -> None:
        """The consumer ended by itself, offsets committed."""
        self._log.info("stopped", action="stopped")

    def waiting_for_topics(self, missing: list[str]) -> None:
        """Topics that are not there yet."""
        self._log.warning("waiting for topics", action="waiting_for_topics", missing=missing)

    def partitions_placed(
        self, committed: Mapping[Partition, int], positions: Mapping[Partition, int]
    ) -> None:
        """Partitions came to this member; redelivery below the inbox's position is passed over."""
        for partition, offset in committed.items():
            start = positions.get(partition, offset)
            self._log.info(
                "partition placed",
                action="partition_placed",
                partition=str(partition),
                next_offset=start,
                redelivery_skipped=max(0, start - offset),
            )

    def records_skipped(self, skipped: Mapping[str, int]) -> None:
        """Records that hold nothing for the handler were passed over, by reason."""
        if skipped:
            self._log.info("records skipped", action="records_skipped", skipped=dict(skipped))

    def batch_applied(self, applied: Applied) -> None:
        """A batch was committed."""
        self._log.info("batch applied", action="batch_applied", **asdict(applied))

    def transient_failure(self, error: BaseException, tries: int, pause_s: float) -> None:
        """Something that heals by itself; the same events are tried again."""
        self._log.warning(
            "waiting",
            action="transient_failure",
            error=describe(error),
            tries=tries,
            pause_s=round(pause_s, 3),
        )

    def cut_off(self, after_s: float) -> None:
        """A batch did not end in time when the consumer was stopped: it was rolled back."""
        self._log.warning(
            "a batch was rolled back to stop in time", action="cut_off", after_s=after_s
        )

    def not_written_down(self, error: BaseException) -> None:
        """How far the consumer came could not be stored at its end; redelivery will be absorbed."""
        self._log.warning(
            "positions not stored", action="positions_not_stored", error=describe(error)
        )

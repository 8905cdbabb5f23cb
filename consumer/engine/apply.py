"""One batch is one transaction: positions, claim, handlers, positions moved up, commit."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from consumer.engine.batch import Batch
from consumer.event import Event
from consumer.handler import EventHandler
from consumer.ports import Inbox
from consumer.store.guard import guarded


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a batch's events."""

    applied: int = 0
    duplicates_by_position: int = 0
    """Events below the stored position, which another member of the group has applied."""
    duplicates_by_id: int = 0
    """Events that came again at new offsets, or twice in one batch."""

    def __add__(self, other: "Applied") -> "Applied":
        return Applied(
            self.applied + other.applied,
            self.duplicates_by_position + other.duplicates_by_position,
            self.duplicates_by_id + other.duplicates_by_id,
        )


def apply_batch(inbox: Inbox, handler: EventHandler, batch: Batch) -> Applied:
    """Apply the batch's fresh events and move the positions, in one transaction or not at all."""
    events = [each.event for each in batch.taken]
    with inbox.transaction(pipeline=handler.pipeline) as transaction:
        positions, claimed = transaction.open_batch(
            batch.partitions, (event.id for event in events)
        )
        unseen = [
            each.event
            for each in batch.taken
            if each.event.offset >= positions.get(each.assignment.partition, 0)
        ]
        fresh = list(_first_of_each(unseen, claimed))
        if fresh:
            with guarded(transaction.connection, pipeline=handler.pipeline):
                handler.handle_batch(fresh, transaction.connection)
        next_offsets = batch.next_offsets()
        transaction.close_batch(next_offsets)
    batch.finish(next_offsets)
    return Applied(
        applied=len(fresh),
        duplicates_by_position=len(events) - len(unseen),
        duplicates_by_id=len(unseen) - len(fresh),
    )


def _first_of_each(events: Iterable[Event[Any]], claimed: set[UUID]) -> Iterator[Event[Any]]:
    """The first event of each claimed id: one batch may hold the same event twice."""
    for event in events:
        if event.id in claimed:
            claimed.remove(event.id)
            yield event

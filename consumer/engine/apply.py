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
    with inbox.transaction() as transaction:
        positions = transaction.open_batch(batch.next_offsets)
        unseen = [event for p, event in batch.events if event.offset >= positions.get(p, 0)]
        fresh = list(_first_of_each(unseen, transaction.claim(event.id for event in unseen)))
        if fresh:
            with guarded(transaction.connection):
                handler.handle_batch(fresh, transaction.connection)
        transaction.close_batch(batch.next_offsets)
    return Applied(
        applied=len(fresh),
        duplicates_by_position=len(batch.events) - len(unseen),
        duplicates_by_id=len(unseen) - len(fresh),
    )


def _first_of_each(events: Iterable[Event[Any]], claimed: set[UUID]) -> Iterator[Event[Any]]:
    """The first event of each claimed id: one batch may hold the same event twice."""
    waiting = set(claimed)
    for event in events:
        if event.id in waiting:
            waiting.remove(event.id)
            yield event

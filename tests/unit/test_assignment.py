"""How far a partition is done: the contiguous prefix of what was delivered, whoever finishes first."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from consumer.engine.assignment import Assignment
from consumer.ports import Partition

PARTITION = Partition("outbox.order", UUID(int=7), 0)


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Offsets with holes in them, and an order in which they are finished."""
    offsets = sorted(draw(st.sets(st.integers(0, 60), max_size=30)))
    return offsets, draw(st.permutations(offsets))


@given(deliveries(), st.integers(0, 30))
def test_the_prefix_is_what_a_reader_from_the_start_would_find_done(
    delivered: tuple[list[int], list[int]], count: int
) -> None:
    """After any part of the work; what is reached with more is said before it is done."""
    offsets, order = delivered
    done, rest = order[:count], order[count:]
    assignment = Assignment(PARTITION, 0)
    for offset in offsets:
        assignment.take(offset)

    assert assignment.reach(set(done)) == _prefix(offsets, set(done))
    for offset in done:
        assignment.finish([offset])
    assert assignment.next_offset == _prefix(offsets, set(done))
    assert assignment.reach(set(rest)) == _prefix(offsets, set(offsets))
    assert assignment.idle == (not rest)
    assert [offset for offset in offsets if assignment.awaits(offset)] == sorted(rest)


def _prefix(offsets: list[int], done: set[int]) -> int:
    prefix = 0
    for offset in offsets:
        if offset not in done:
            break
        prefix = offset + 1
    return prefix


def test_what_is_finished_twice_leaves_nothing_behind() -> None:
    """A batch that is run again after its first events took effect singly."""
    assignment = Assignment(PARTITION, 5)
    for offset in (5, 6):
        assignment.take(offset)
    for _ in range(2):
        assignment.finish([5])

    assert assignment.next_offset == 6
    assert assignment._done == set()


def test_a_revoked_partition_awaits_nothing() -> None:
    """Its events are another member's."""
    assignment = Assignment(PARTITION, 0)
    assignment.take(0)
    assignment.revoked = True

    assert not assignment.awaits(0)

"""What the facts mean: facts in, verdicts out, nothing asked and nothing written."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from consumer.slots.facts import SlotFacts

WARNING_BYTES = 1 * 2**30
CRITICAL_BYTES = 5 * 2**30


class Severity(IntEnum):
    """How bad; the number is the exit status of `slots check`."""

    OK = 0
    WARNING = 1
    CRITICAL = 2
    BLIND = 3


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From how many bytes on a slot is a danger.

    Retained WAL is a sawtooth (restart_lsn moves only with a running-transactions record), and a
    healthy connector lags by what is written in one `offset.flush.interval.ms` (a minute by default),
    so bounds of a few megabytes would alarm on good days. The defaults: a warning from Postgres's own
    default max_wal_size on, which a server may hold with no slot at all; critical from five times that.
    """

    warning_bytes: int = WARNING_BYTES
    critical_bytes: int = CRITICAL_BYTES


@dataclass(frozen=True, slots=True)
class Verdict:
    """One slot's state in words."""

    slot: str
    severity: Severity
    reason: str
    advice: str
    facts: SlotFacts | None = None
    """What the verdict stands on; None when there is no slot, or nothing could be seen."""


def assess(
    slots: Sequence[SlotFacts], expected: Iterable[str], thresholds: Thresholds
) -> list[Verdict]:
    """A verdict for each expected slot, or for every slot when none is named; worst first."""
    by_name = {slot.name: slot for slot in slots}
    names = list(expected) or list(by_name)
    verdicts = [
        _assess_one(by_name[name], thresholds) if name in by_name else _missing(name)
        for name in names
    ]
    return sorted(verdicts, key=lambda verdict: (-verdict.severity, verdict.slot))


def worst(verdicts: Iterable[Verdict]) -> Severity:
    """The severity of the whole."""
    return max((verdict.severity for verdict in verdicts), default=Severity.OK)


def _assess_one(slot: SlotFacts, thresholds: Thresholds) -> Verdict:
    return replace(_verdict(slot, thresholds), facts=slot)


def _verdict(slot: SlotFacts, thresholds: Thresholds) -> Verdict:
    """Lost first: its other numbers stand still or vanish, and look like a good day's."""
    if slot.wal_status == "lost" or slot.invalidation_reason:
        return _lost(slot)
    if slot.wal_status == "unreserved":
        return _unreserved(slot)
    return max(_inactive(slot, thresholds), _lagging(slot, thresholds), key=lambda v: v.severity)


def _missing(name: str) -> Verdict:
    return Verdict(
        name,
        Severity.CRITICAL,
        "there is no such slot: events committed since it went are not in Kafka",
        "apply the connector, which makes the slot; what was committed in between must be published again",
    )


def _lost(slot: SlotFacts) -> Verdict:
    reason = slot.invalidation_reason or "its WAL was removed"
    return Verdict(
        slot.name,
        Severity.CRITICAL,
        f"lost ({reason}): the connector cannot go on from it",
        "stop the connector, drop the slot, start the connector, and publish again the outbox rows "
        "that never reached Kafka",
    )


def _unreserved(slot: SlotFacts) -> Verdict:
    return Verdict(
        slot.name,
        Severity.CRITICAL,
        f"about to be lost: past max_slot_wal_keep_size, {_size(slot.retained_wal_bytes)} retained",
        "let the connector catch up now, or raise max_slot_wal_keep_size",
    )


def _inactive(slot: SlotFacts, thresholds: Thresholds) -> Verdict:
    if slot.active:
        return _ok(slot)
    retained = slot.retained_wal_bytes or 0
    since = f" since {slot.inactive_since:%Y-%m-%d %H:%M:%S %Z}" if slot.inactive_since else ""
    return Verdict(
        slot.name,
        Severity.CRITICAL if retained >= thresholds.critical_bytes else Severity.WARNING,
        f"inactive{since}: nobody reads it, and it retains {_size(retained)} of WAL, growing",
        f"start its connector; if nothing needs it any more: SELECT pg_drop_replication_slot('{slot.name}')",
    )


def _lagging(slot: SlotFacts, thresholds: Thresholds) -> Verdict:
    numbers = {
        "retained WAL": slot.retained_wal_bytes or 0,
        "delivery lag": slot.delivery_lag_bytes or 0,
    }
    what = max(numbers, key=lambda name: numbers[name])
    for severity in (Severity.CRITICAL, Severity.WARNING):
        bound = (
            thresholds.critical_bytes if severity is Severity.CRITICAL else thresholds.warning_bytes
        )
        if numbers[what] >= bound:
            return Verdict(
                slot.name,
                severity,
                f"{what} {_size(numbers[what])}, at or above {_size(bound)}",
                _lag_advice(slot),
            )
    return _ok(slot)


def _lag_advice(slot: SlotFacts) -> str:
    lag, retained = slot.delivery_lag_bytes or 0, slot.retained_wal_bytes or 0
    if lag < retained // 2:
        return "delivery is ahead of what is retained: look for a long or prepared transaction"
    return "look at the connector: is its task running, does its heartbeat move the slot?"


def _ok(slot: SlotFacts) -> Verdict:
    return Verdict(
        slot.name,
        Severity.OK,
        f"retained WAL {_size(slot.retained_wal_bytes)}, delivery lag {_size(slot.delivery_lag_bytes)}",
        "",
    )


def _size(count: int | None) -> str:
    if count is None:
        return "unknown"
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:  # noqa: PLR2004  # the units' own step
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"

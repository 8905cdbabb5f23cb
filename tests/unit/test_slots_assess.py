"""Verdicts over facts: lost first, missing is the worst, numbers last."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from consumer.slots.assess import Severity, Thresholds, assess, worst
from consumer.slots.facts import SlotFacts

GOOD = SlotFacts(
    name="outbox",
    database="shop",
    plugin="pgoutput",
    temporary=False,
    active=True,
    active_pid=4711,
    wal_status="reserved",
    invalidation_reason=None,
    restart_lsn="0/1000",
    confirmed_flush_lsn="0/1384",
    retained_wal_bytes=1000,
    delivery_lag_bytes=100,
    safe_wal_bytes=None,
    inactive_since=None,
)
THRESHOLDS = Thresholds(warning_bytes=10_000, critical_bytes=100_000)


@pytest.mark.parametrize(
    ("change", "severity", "reason", "advice"),
    [
        ({}, Severity.OK, "retained WAL 1000 B, delivery lag 100 B", ""),
        ({"wal_status": "extended"}, Severity.OK, "retained", ""),
        (
            {"wal_status": "lost", "retained_wal_bytes": None, "active": False},
            Severity.CRITICAL,
            "lost (its WAL was removed)",
            "publish again",
        ),
        (
            # idle_timeout keeps restart_lsn, so the numbers look like a good day's
            {"wal_status": "lost", "invalidation_reason": "idle_timeout"},
            Severity.CRITICAL,
            "lost (idle_timeout)",
            "publish again",
        ),
        (
            {"invalidation_reason": "rows_removed"},
            Severity.CRITICAL,
            "rows_removed",
            "drop the slot",
        ),
        ({"wal_status": "unreserved"}, Severity.CRITICAL, "about to be lost", "catch up now"),
        ({"active": False}, Severity.WARNING, "inactive: nobody reads", "pg_drop_replication_slot"),
        (
            {"active": False, "inactive_since": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)},
            Severity.WARNING,
            "inactive since 2026-01-02 03:04:05 UTC",
            "start its connector",
        ),
        ({"active": False, "retained_wal_bytes": 100_000}, Severity.CRITICAL, "97.7 KiB", "start"),
        ({"retained_wal_bytes": 10_000}, Severity.WARNING, "retained WAL 9.8 KiB", "transaction"),
        ({"retained_wal_bytes": 9_999}, Severity.OK, "", ""),
        ({"retained_wal_bytes": 100_000}, Severity.CRITICAL, "retained WAL", "transaction"),
        (
            {"retained_wal_bytes": 50_000, "delivery_lag_bytes": 50_000},
            Severity.WARNING,
            "at or above 9.8 KiB",
            "look at the connector",
        ),
        ({"delivery_lag_bytes": 200_000}, Severity.CRITICAL, "delivery lag", "connector"),
        ({"delivery_lag_bytes": None, "retained_wal_bytes": None}, Severity.OK, "unknown", ""),
    ],
)
def test_a_slot_is_judged_by_its_worst_fact(
    change: dict[str, object], severity: Severity, reason: str, advice: str
) -> None:
    """Each state with its words and what to do."""
    (verdict,) = assess([replace(GOOD, **change)], [], THRESHOLDS)  # type: ignore[arg-type]

    assert verdict.severity == severity
    assert reason in verdict.reason
    assert advice in verdict.advice
    assert verdict.facts == replace(GOOD, **change)  # type: ignore[arg-type]


def test_an_expected_slot_that_is_missing_is_critical() -> None:
    """No slot has no lag: the worst state must not look like the best."""
    verdicts = assess([GOOD], ["outbox", "gone"], THRESHOLDS)

    assert [(v.slot, v.severity) for v in verdicts] == [
        ("gone", Severity.CRITICAL),
        ("outbox", Severity.OK),
    ]
    assert worst(verdicts) == Severity.CRITICAL


def test_without_names_every_slot_is_judged_and_named_ones_alone_otherwise() -> None:
    """Another team's inactive slot is no alarm of ours."""
    other = replace(GOOD, name="other", active=False)

    assert len(assess([GOOD, other], [], THRESHOLDS)) == 2
    assert worst(assess([GOOD, other], ["outbox"], THRESHOLDS)) == Severity.OK
    assert worst([]) == Severity.OK

"""The demo balances its books across crashes, and leaves nothing running."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from uuid import UUID

import psutil
import pytest

from consumer.demo.books import account
from tests.fix_stack import ROOT


def test_the_demo_balances_its_books_across_crashes_and_cleans_up(tmp_path: Path) -> None:
    """Three SIGKILLs at random places; from another folder, with nothing useful on the PATH."""
    before = {process.pid for process in psutil.process_iter()}
    folders = set(Path(tempfile.gettempdir()).glob("debezium-inbox-demo-*"))
    demo = subprocess.run(
        [sys.executable, "-m", "consumer", "demo", "--orders", "400", "--crashes", "3"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": str(tmp_path), "COLUMNS": "200"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "the books balance" in demo.stdout
    for row in ("lost", "applied twice", "out of order"):
        assert re.search(rf"│ {row} +│ 0 +│ 0 +│", demo.stdout), demo.stdout
    assert demo.stderr.count("with SIGKILL") == 3
    assert re.search(r"│ outbox +│ ok +│", demo.stdout)
    assert "refused: a window of 1m is shorter than the 14d" in demo.stdout
    left = [
        process
        for process in psutil.process_iter(["pid", "cmdline"])
        if process.pid not in before
        and "debezium-inbox-demo" in " ".join(process.info["cmdline"] or [])
    ]
    assert left == []
    assert set(Path(tempfile.gettempdir()).glob("debezium-inbox-demo-*")) == folders


A, B, C = (UUID(int=number) for number in range(3))


@pytest.mark.parametrize(
    ("published", "ledger", "found"),
    [
        ([A, B], [(A, "k", 1), (B, "k", 2)], (0, 0, 0)),
        ([A, B], [(A, "k", 1)], (1, 0, 0)),
        ([A, B], [(A, "k", 1), (B, "k", 2), (A, "k", 1)], (0, 1, 1)),
        ([A, B], [(B, "k", 2), (A, "k", 1)], (0, 0, 1)),
        ([A, B], [(B, "k", 2), (A, "other", 1)], (0, 0, 0)),
        ([], [], (0, 0, 0)),
    ],
)
def test_the_books_find_what_is_lost_twice_or_out_of_order(
    published: list[UUID], ledger: list[tuple[UUID, str, int]], found: tuple[int, int, int]
) -> None:
    """The demo's own check can fail."""
    closed = account(published, ledger)

    assert (closed.lost, closed.twice, closed.out_of_order) == found
    assert closed.balanced == (found == (0, 0, 0))


@pytest.mark.parametrize("arguments", [["--orders", "5"], ["--orders", "20", "--crashes", "20"]])
def test_a_demo_that_cannot_be_is_refused(arguments: list[str]) -> None:
    """Before anything is started."""
    refused = subprocess.run(
        [sys.executable, "-m", "consumer", "demo", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert refused.returncode == 2

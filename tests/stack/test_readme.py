"""The README's own words are run: its quickstart from an empty folder, its links, its commands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from consumer.cli.app import app
from consumer.local.stack import Stack
from consumer.settings import ENVIRONMENT_PREFIX, Settings
from tests.fix_stack import ROOT
from tests.servers import a_folder
from tests.waiting import until

README = (ROOT / "README.md").read_text()
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("connectors/*.md")])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_quickstart_ends_with_the_effect_in_the_database(tmp_path: Path) -> None:
    """Copied as it stands: two Python files, then the commands."""
    quickstart = README.partition("## Your own service")[2].partition("## Guarantees")[0]
    blocks = BLOCK.findall(quickstart)
    for language, text in blocks:
        if language == "python":
            (tmp_path / text.splitlines()[0].removeprefix("# ")).write_text(text)
    script = "\n".join(text for language, text in blocks if language == "sh")
    with a_folder("readme") as folder:
        stack = Stack(folder / "stack")
        try:
            run = subprocess.Popen(
                ["bash", "-eu", "-c", f"{script}\nwait"],
                cwd=tmp_path,
                env={
                    **os.environ,
                    "INBOX_LOCAL_FOLDER": str(folder / "stack"),
                    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                },
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
            until(lambda: run.poll() is not None or _reserved(stack), "the reservation", 120)
            assert _reserved(stack) == [("apple", 3)], run.stdout and run.stdout.read()
        finally:
            os.killpg(run.pid, 15)
            run.communicate(timeout=30)
            stack.down()


def _reserved(stack: Stack) -> list[tuple[object, ...]]:
    try:
        with psycopg.connect(stack.environment()["INBOX_DATABASE_URL"]) as connection:
            return connection.execute("TABLE reservations").fetchall()
    except Exception:  # noqa: BLE001  # no stack, no server, no table yet
        return []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_that_exist(page: Path) -> None:
    """Also those from the guarantees to the tests that prove them."""
    for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in link:
            assert (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_the_text_exist(page: Path) -> None:
    """Each `debezium-inbox …` in a page is a command of the tree, each make target one of make's."""
    text = page.read_text()
    groups = {group.name: group for group in app.registered_groups}
    names = {command.name or command.callback.__name__ for command in app.registered_commands}  # type: ignore[union-attr]
    for words in re.findall(r"debezium-inbox ((?:[a-z]+ ?){1,2})", text):
        first, *rest = words.split()
        if first in groups:
            inside = {each.name for each in groups[first].typer_instance.registered_commands}  # type: ignore[union-attr]
            assert not rest or rest[0] in inside, words
        else:
            assert first in names, words
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for target in re.findall(r"`make ([a-z-]+)", text):
        assert target in targets, target


def test_the_page_of_settings_names_every_setting_and_its_default() -> None:
    """And no other."""
    page = (ROOT / "docs" / "settings.md").read_text()
    told = dict(re.findall(r"^\| `(INBOX_\w+)` \| (.+?) \|", page, re.MULTILINE))

    assert set(told) == {ENVIRONMENT_PREFIX + name.upper() for name in Settings.model_fields}
    for name, field in Settings.model_fields.items():
        if field.default is not None:
            assert told[ENVIRONMENT_PREFIX + name.upper()] == f"`{str(field.default).lower()}`"

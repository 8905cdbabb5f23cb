"""The commands in the documentation's pages are run as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from consumer.connect import apply as connector
from consumer.connect.client import ConnectClient
from consumer.connect.file import read_connector_file
from consumer.slots.facts import slot_holder
from tests.fix_stack import ROOT, SHIPPED, Chain

PAGES = ["connectors/README.md", "docs/connectors.md", "docs/slots.md"]
ELSEWHERE = {
    "CONTRIBUTING.md": "make targets, which CI runs",
    "README.md": "the quickstart, in test_readme.py",
    "docs/docker.md": "needs an engine that can pull images",
    "docs/schema.md": "SQL, in test_schema_roles.py",
}
BLOCK = re.compile(r"^```(?:sh|sql|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[str]:
    return BLOCK.findall((ROOT / page).read_text())


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work(chain: Chain, client: ConnectClient, page: str) -> None:
    """With the settings of a running stack, from a checkout."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    try:
        for block in blocks(page):
            run = subprocess.run(
                ["bash", "-eu", "-c", block],
                cwd=ROOT,
                env={**os.environ, **chain.settings, "PATH": path},
                capture_output=True,
                text=True,
                check=False,
            )
            assert run.returncode == 0, f"{block}\n{run.stdout}\n{run.stderr}"
    finally:  # a page that shows how to delete the connector has deleted it
        connector.apply(
            client,
            read_connector_file(SHIPPED),
            slot_holder=lambda: slot_holder(chain.shop, "outbox"),
        )


def test_every_page_with_code_is_run_somewhere() -> None:
    """A page that gains its first block has to say where it is run."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("connectors/*.md")]
    with_code = {str(page.relative_to(ROOT)) for page in pages if BLOCK.search(page.read_text())}

    assert with_code == {*PAGES, *ELSEWHERE}

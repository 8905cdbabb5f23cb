"""What the wheel and the sdist hold."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from consumer.resources import data_folder
from consumer.version import __version__
from tests.fix_stack import ROOT

DATA = {
    "connectors": "outbox.json",
    "schema": "inbox/001_inbox.sql",
    "examples": "orders/warehouse.sql",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def test_the_wheel_holds_one_import_name_with_its_data_inside(built: Path) -> None:
    """`schema`, `connectors` and `examples` are other people's import names."""
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()

    assert {name.split("/")[0] for name in names} == {
        "consumer",
        f"debezium_inbox-{__version__}.dist-info",
    }
    for folder, file in DATA.items():
        assert f"consumer/{folder}/{file}" in names
    assert "consumer/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_command_and_its_data_work_from_the_wheel_outside_a_checkout(
    built: Path, tmp_path: Path
) -> None:
    """The version, the shipped connector file, the schema, the example's handlers."""
    (wheel,) = built.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")  # noqa: S202  # built above
    (tmp_path / "empty").mkdir()

    def told(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path / "empty",
            env={"PYTHONPATH": str(tmp_path / "site")},
            capture_output=True,
            text=True,
            check=False,
        )

    assert told("-m", "consumer", "--version").stdout == f"debezium-inbox {__version__}\n"
    assert (
        "CREATE TABLE processed_events"
        in told("-m", "consumer", "schema", "sql", "--target", "inbox").stdout
    )
    unreachable = told(
        "-m", "consumer", "connector", "apply", "outbox.json", "--connect-url", "http://127.0.0.1:1"
    )
    assert "does not answer" in unreachable.stderr
    script = (
        "from consumer.resources import examples_package\n"
        "from consumer.engine.handler_path import load_handler\n"
        "print(load_handler(f'{examples_package()}.orders.warehouse:Warehouse').__module__)"
    )
    assert told("-c", script).stdout == "consumer.examples.orders.warehouse\n"


def test_the_sdist_holds_all_that_a_packager_needs(built: Path) -> None:
    """Sources, tests, documentation and licence; no environment of this machine."""
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    for name in ("consumer/__init__.py", "tests/conftest.py", "README.md", "LICENSE", "Makefile"):
        assert name in names
    assert not [name for name in names if name.startswith((".venv", ".git/"))]


def test_in_a_checkout_the_data_is_beside_the_package() -> None:
    """One place for each file."""
    for folder, file in DATA.items():
        assert (data_folder(folder) / file).exists()
        assert data_folder(folder) == ROOT / folder

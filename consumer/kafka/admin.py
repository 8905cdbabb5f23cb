"""Questions to the cluster that need no member of a group."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from consumer.errors import KafkaUnavailableError, SettingsError
from consumer.kafka.reaching import BOOTSTRAP_TIMEOUT_MS, check_reachable, reaching


def broker_answers(bootstrap_servers: str) -> bool:
    """Whether a broker answers a request."""
    try:
        with _admin(bootstrap_servers):
            return True
    except (KafkaUnavailableError, SettingsError):
        return False


def longest_redelivery_ms(bootstrap_servers: str, topics: Iterable[str]) -> dict[str, int | None]:
    """How long each topic that exists keeps an event at the most; None is for ever.

    A segment goes as a whole, `retention.ms` after its youngest record, and takes records for up to
    `segment.ms`, so the oldest record of a segment stays for the sum.
    """
    with _admin(bootstrap_servers) as admin:
        present = set(admin.list_topics())
        asked = [name for name in topics if name in present]
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in asked]
        described = admin.describe_configs(resources, config_filter="all") if asked else {}
    return {name: _kept_ms(described["topic"][name]) for name in asked}


@contextmanager
def _admin(servers: str) -> Iterator[Any]:
    with reaching(servers):
        check_reachable(servers)
        admin = KafkaAdminClient(
            bootstrap_servers=servers.split(","), bootstrap_timeout_ms=BOOTSTRAP_TIMEOUT_MS
        )
        with closing(admin):
            yield admin


def _kept_ms(config: Mapping[str, Mapping[str, str]]) -> int | None:
    retention_ms = int(config["retention.ms"]["value"])
    deletes = "delete" in config["cleanup.policy"]["value"]
    return (
        retention_ms + int(config["segment.ms"]["value"]) if deletes and retention_ms >= 0 else None
    )

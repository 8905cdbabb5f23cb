"""What is configured from outside: one frozen object, read from the environment once, at the edge."""

from typing import Annotated

from pydantic import Field, SecretStr, StringConstraints, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from consumer.errors import SettingsError

ENVIRONMENT_PREFIX = "INBOX_"

Identifier = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=r"^[^\x00]+$")]
"""A Postgres identifier as it is stored, without quotes; it is quoted wherever it is used."""


class Settings(BaseSettings):
    """The settings of one process; each field is also `INBOX_` + its name in upper case."""

    model_config = SettingsConfigDict(
        env_prefix=ENVIRONMENT_PREFIX, frozen=True, extra="forbid", env_ignore_empty=True
    )

    database_url: SecretStr | None = None
    """The inbox's database, as a Postgres URL or conninfo string."""

    source_database_url: SecretStr | None = None
    """The outbox's database, where the replication slot lives."""

    kafka_bootstrap_servers: str = "localhost:9092"
    """Kafka's addresses, `host:port`, separated by commas."""

    connect_url: str = "http://localhost:8083"
    """Kafka Connect's REST address."""

    db_schema: Identifier = "public"
    """The Postgres schema of the inbox's tables."""

    source_db_schema: Identifier = "public"
    """The Postgres schema of the outbox table."""

    group_id: str | None = None
    """Kafka's consumer group; by default the handler's `consumer`."""

    group_instance_id: str | None = None
    """A name of this process that stays the same when it starts again (Kafka's static membership).

    Kafka then gives it its partitions back at once after a crash, instead of after the 45 seconds in
    which it holds the dead member for alive. No two running processes may share one.
    """

    wait_for_topic: bool = False
    """Wait for topics that do not exist yet, instead of stopping with an error."""

    lanes: int = Field(default=1, ge=1, le=64)
    """Worker threads, each with a database connection; a key's events always go to the same one.

    With more than one, the handler's methods run on several threads at once.
    """

    max_batch_events: int = Field(default=500, ge=1, le=100_000)
    """The most events that one transaction applies; larger is faster and repeats more after a crash."""

    max_batch_bytes: int = Field(default=4_000_000, ge=1)
    """The most bytes of records that one transaction applies, but for a single larger event."""

    linger_ms: int = Field(default=0, ge=0, le=10_000)
    """How long a batch that is not full waits for more events, in milliseconds."""

    revoke_timeout_ms: int = Field(default=10_000, ge=0, le=240_000)
    """How long a running batch may go on when its partition is taken away, then it is rolled back."""

    shutdown_timeout_ms: int = Field(default=20_000, ge=0)
    """How long running batches may go on after SIGTERM, then they are rolled back."""


def load_settings(**overrides: object) -> Settings:
    """Read the environment, put `overrides` that are not None over it, and name what is wrong.

    Raises SettingsError with the variable, the expectation and never the value (it may be a secret).
    """
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**given)  # type: ignore[arg-type]  # pydantic checks them
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = ENVIRONMENT_PREFIX + "_".join(str(part) for part in first["loc"]).upper()
        raise SettingsError(f"{name}: {first['msg']}") from None


def required_url(settings: Settings, field: str) -> str:
    """The secret URL in `field`; raises SettingsError that names the variable when it is not set."""
    value: SecretStr | None = getattr(settings, field)
    if value is None:
        variable = ENVIRONMENT_PREFIX + field.upper()
        raise SettingsError(
            f"{variable} is not set: give the database's URL, e.g. postgresql://user@host/name"
        )
    return value.get_secret_value()

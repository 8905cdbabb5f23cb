"""Every error that debezium-inbox raises on purpose.

    InboxError
    ├── ConfigurationError          a person must change something; waiting does not help
    │   ├── SettingsError           an environment variable or option is missing or wrong
    │   ├── DeclarationError        a handler class is declared wrongly
    │   ├── HandlerPathError        MODULE:HANDLER does not import
    │   ├── SchemaError             the database's schema is missing, older or newer than the code
    │   ├── TopicMissingError       a topic does not exist
    │   ├── DatabaseRefusedError    a statement can never work: no such table, no privilege
    │   ├── PositionError           a topic ends before the position that the inbox has for it
    │   └── ConnectorConfigError    connector JSON is wrong or was refused
    ├── UnavailableError            a part of the system cannot be reached; waiting may help
    │   ├── PostgresUnavailableError
    │   ├── KafkaUnavailableError
    │   └── ConnectUnavailableError
    ├── ConnectorFailedError        the connector was applied but does not run
    ├── DecodeError                 a record cannot be read as an event
    ├── PoisonError                 an event cannot be applied; the consumer stops in front of it
    ├── TransactionGuardError       a handler tried to end or leave the framework's transaction
    ├── PublishError                an event is refused before its outbox row is written
    ├── PruneRefusedError           a prune could make a redelivered event apply twice
    └── LocalStackError             the stack on this machine
        ├── PortTakenError
        ├── DiskFullError
        ├── ChecksumError
        ├── FetchError
        └── PartDiedError

`code` is for programs and never changes; `exit_status` is what the command exits with. Texts are one
line: what failed, with which value, what to do. They hold no secret and no event body.
"""

from typing import ClassVar


class InboxError(Exception):
    """The root of the tree."""

    code: ClassVar[str] = "inbox"
    exit_status: ClassVar[int] = 1


class ConfigurationError(InboxError):
    """A person must change something; waiting does not help."""

    code = "configuration"
    exit_status = 2


class SettingsError(ConfigurationError):
    """An environment variable or option is missing or wrong."""

    code = "settings"


class DeclarationError(ConfigurationError):
    """A handler class is declared wrongly."""

    code = "declaration"


class HandlerPathError(ConfigurationError):
    """MODULE:HANDLER does not import."""

    code = "handler-path"


class SchemaError(ConfigurationError):
    """The database's schema is missing, older or newer than the code."""

    code = "schema"


class TopicMissingError(ConfigurationError):
    """A topic does not exist."""

    code = "topic-missing"


class DatabaseRefusedError(ConfigurationError):
    """A statement can never work until a person changes something: no such table, no privilege."""

    code = "database-refused"


class PositionError(ConfigurationError):
    """A topic ends before the position that the inbox has for it."""

    code = "position"


class ConnectorConfigError(ConfigurationError):
    """Connector JSON is wrong or was refused by Connect."""

    code = "connector-config"


class UnavailableError(InboxError):
    """A part of the system cannot be reached; waiting may help."""

    code = "unavailable"
    exit_status = 4


class PostgresUnavailableError(UnavailableError):
    """Postgres cannot be reached."""

    code = "postgres-unavailable"


class KafkaUnavailableError(UnavailableError):
    """Kafka cannot be reached."""

    code = "kafka-unavailable"


class ConnectUnavailableError(UnavailableError):
    """Kafka Connect cannot be reached."""

    code = "connect-unavailable"


class ConnectorFailedError(InboxError):
    """The connector was applied but does not run."""

    code = "connector-failed"
    exit_status = 3


class DecodeError(InboxError):
    """A record cannot be read as an event."""

    code = "undecodable"


class PoisonError(InboxError):
    """An event cannot be applied; the consumer stops in front of it."""

    code = "poison"
    exit_status = 3


class TransactionGuardError(InboxError):
    """A handler tried to end or leave the framework's transaction."""

    code = "transaction-guard"


class PublishError(InboxError):
    """An event is refused before its outbox row is written."""

    code = "publish-refused"


class PruneRefusedError(InboxError):
    """A prune could make a redelivered event apply twice."""

    code = "prune-refused"


class LocalStackError(InboxError):
    """The stack on this machine cannot start, run or stop."""

    code = "local-stack"


class PortTakenError(LocalStackError):
    """A port that the stack needs belongs to another process."""

    code = "port-taken"


class DiskFullError(LocalStackError):
    """The disk has no room for the stack."""

    code = "disk-full"


class ChecksumError(LocalStackError):
    """A fetched file is not the one in the lock."""

    code = "checksum"


class FetchError(LocalStackError):
    """A file of the stack cannot be fetched or kept."""

    code = "fetch"


class PartDiedError(LocalStackError):
    """A part of the stack ended by itself or did not get ready."""

    code = "part-died"

"""Reach Kafka, and say plainly why that did not work."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from kafka import errors as kafka_errors

from consumer.errors import KafkaUnavailableError, SettingsError

BOOTSTRAP_TIMEOUT_MS = 10_000
CONNECT_TIMEOUT_S = 5


@contextmanager
def reaching(servers: str) -> Iterator[None]:
    """Map kafka-python's errors: what a person must change, and what may heal."""
    try:
        yield
    except (
        kafka_errors.AuthorizationError,
        kafka_errors.FencedInstanceIdError,
        kafka_errors.SaslAuthenticationFailedError,
        kafka_errors.UnsupportedCodecError,
        kafka_errors.KafkaConfigurationError,
    ) as error:
        raise SettingsError(
            f"Kafka at {servers} refused: {type(error).__name__}: {error}"
        ) from error
    except (kafka_errors.KafkaError, OSError) as error:
        raise KafkaUnavailableError(
            f"Kafka at {servers} does not answer ({_reason(error)}); is it running, and is "
            f"INBOX_KAFKA_BOOTSTRAP_SERVERS right?"
        ) from error


def check_reachable(servers: str) -> None:
    """Raise OSError when no server takes a connection.

    A kafka-python client that finds nobody raises as well, but later, and leaves its thread behind.
    """
    failed = OSError("no address")
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        try:
            socket.create_connection(
                (host.strip("[]"), int(port)), timeout=CONNECT_TIMEOUT_S
            ).close()
        except OSError as error:
            failed = error
        except ValueError:
            raise SettingsError(
                f"INBOX_KAFKA_BOOTSTRAP_SERVERS: expected host:port, got {server!r}"
            ) from None
        else:
            return
    raise failed


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or type(error).__name__

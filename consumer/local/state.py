"""What the stack remembers in its folder: ports and passwords."""

import json
import os
import random
import secrets
import socket
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from consumer.errors import LocalStackError, PortTakenError
from consumer.local.databases import ROLES

FILE = "stack.json"
PORTS = ("postgres", "kafka", "kafka controller", "connect")
_PORT_RANGE = range(20_000, 32_000)  # below what systems hand out to outgoing connections


@dataclass(frozen=True, slots=True)
class State:
    """Kept in `stack.json`, which only its owner may read."""

    ports: dict[str, int]
    passwords: dict[str, str]

    @classmethod
    def load(cls, folder: Path) -> "State | None":
        """What `folder` remembers, or None."""
        file = folder / FILE
        try:
            kept = json.loads(file.read_bytes())
            return cls(
                {name: int(kept["ports"][name]) for name in PORTS},
                {role: str(kept["passwords"][role]) for role in ROLES},
            )
        except FileNotFoundError:
            return None
        except OSError as error:
            raise LocalStackError(
                f"cannot read {file}: {error.strerror}; is it another user's stack? choose another "
                f"with --folder"
            ) from error
        except (ValueError, KeyError, TypeError) as error:
            raise LocalStackError(
                f"{file} is damaged, so the stack's ports and passwords are lost; make a new stack: "
                f"debezium-inbox local down --delete, then local up"
            ) from error

    @classmethod
    def new(cls) -> "State":
        """Free ports and new passwords."""
        shuffled = random.sample(_PORT_RANGE, len(_PORT_RANGE))
        ports = islice(filter(is_free, shuffled), len(PORTS))
        return cls(
            dict(zip(PORTS, ports, strict=True)),
            {role: secrets.token_urlsafe(18) for role in ROLES},
        )

    def save(self, folder: Path) -> None:
        """Write it down, whole or not at all."""
        half = folder / f"{FILE}.half"
        half.unlink(missing_ok=True)
        with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(asdict(self), file, indent=2)
            file.flush()
            os.fsync(file.fileno())  # a power cut must not leave an empty file in its place
        half.replace(folder / FILE)


def check_port_is_free(part: str, port: int) -> None:
    """Raise PortTakenError when something listens on the port that `part` is about to use."""
    if not is_free(port):
        raise PortTakenError(
            f"port {port}, which the stack's {part} had before, is taken by another process; "
            f"end that process, or make a new stack: debezium-inbox local down --delete"
        )


def is_free(port: int) -> bool:
    """Whether nobody listens on the port of 127.0.0.1."""
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True

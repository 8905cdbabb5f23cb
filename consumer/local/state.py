"""What the stack remembers in its folder: ports, passwords, and which processes are its own."""

import json
import os
import random
import secrets
import socket
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path

from consumer.errors import LocalStackError, PortTakenError
from consumer.local.databases import ROLES
from consumer.local.process import Identity

PORTS = ("postgres", "kafka", "kafka controller", "connect")
_PORT_RANGE = range(20_000, 32_000)  # below what systems hand out to outgoing connections


@dataclass(slots=True)
class State:
    """Kept in `stack.json`, which only its owner may read."""

    ports: dict[str, int]
    passwords: dict[str, str]
    processes: dict[str, Identity] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: Path) -> "State | None":
        """What `folder` remembers, or None."""
        file = _file(folder)
        if not file.exists():
            return None
        try:
            kept = json.loads(file.read_text())
            processes = {part: Identity(**identity) for part, identity in kept["processes"].items()}
            return cls(kept["ports"], kept["passwords"], processes)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise LocalStackError(
                f"{file} is damaged ({type(error).__name__}); end what still runs of the stack by "
                f"hand, then remove {folder}"
            ) from None

    @classmethod
    def new(cls) -> "State":
        """Free ports and new passwords."""
        ports = dict(zip(PORTS, _free_ports(len(PORTS)), strict=True))
        return cls(ports, {role: secrets.token_urlsafe(18) for role in ROLES})

    def save(self, folder: Path) -> None:
        """Write it down, whole or not at all."""
        half = _file(folder).with_suffix(".half")
        half.unlink(missing_ok=True)
        with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(asdict(self), file, indent=2)
        half.replace(_file(folder))


def check_port_is_free(part: str, port: int) -> None:
    """Raise PortTakenError when something listens on the port that `part` is about to use."""
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            raise PortTakenError(
                f"port {port}, which the stack's {part} had before, is taken by another process; "
                f"end that process, or make a new stack: debezium-inbox local down --delete"
            ) from None


def _free_ports(count: int) -> list[int]:
    chosen: list[int] = []
    for port in random.sample(_PORT_RANGE, len(_PORT_RANGE)):
        if len(chosen) == count:
            break
        try:
            check_port_is_free("part", port)
        except PortTakenError:
            continue
        chosen.append(port)
    return chosen


def _file(folder: Path) -> Path:
    return folder / "stack.json"

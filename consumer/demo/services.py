"""The demo's services: the example's shop and consumers, each a process of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from consumer.resources import PACKAGE, examples_package

CONSUMERS = {"stock": "warehouse:Warehouse", "loyalty": "loyalty:Loyalty"}
STOP_WITHIN_S = 20.0


@dataclass(slots=True)
class Service:
    """One process and what it says, written to a file."""

    command: list[str]
    environment: Mapping[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> None:
        """Start it; a service that ran before goes on in the same log."""
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                self.command,
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def kill(self) -> None:
        """SIGKILL: no goodbye, no clean-up, as a crash is."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        """SIGTERM, and SIGKILL for one that does not end."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def tell_where_it_is(self) -> None:
        """Ask a consumer to write the stacks of its threads into its log."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGUSR1)

    def exit_status(self) -> int | None:
        """How it ended, or None while it runs."""
        return self.process.poll() if self.process else None


def shop(orders: int, per_second: float, settings: Mapping[str, str], folder: Path) -> Service:
    """The shop, which writes orders with their outbox rows."""
    module = f"{examples_package()}.orders.shop"
    numbers = ["--orders", str(orders), "--per-second", str(per_second)]
    command = [sys.executable, "-m", module, *numbers]
    return Service(command, _environment(settings), folder / "shop.log")


def consumers(settings: Mapping[str, str], folder: Path) -> dict[str, Service]:
    """The example's consumers by their `consumer`."""
    return {
        name: Service(
            [*_RUN, f"{examples_package()}.orders.{path}", "--wait-for-topic"],
            # started again under the same name, it gets its partitions back at once
            _environment({**settings, "INBOX_GROUP_INSTANCE_ID": f"demo-{name}"}),
            folder / f"{name}.log",
        )
        for name, path in CONSUMERS.items()
    }


_RUN = [sys.executable, "-m", "consumer", "run"]


def _environment(settings: Mapping[str, str]) -> dict[str, str]:
    """The environment of this process, with the stack's settings and where the package is."""
    paths = [str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
    return os.environ | settings | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}

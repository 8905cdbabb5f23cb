"""Write consumer/local/artifacts.lock.toml: every file of the local stack, by coordinate and sha256.

Run it after a change of version below: `python tools/lock_jars.py`. No addresses are written.
"""

import hashlib
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tomli_w
from jgo.maven import Artifact, Dependency, MavenContext, PythonResolver

KAFKA = "4.4.0"
DEBEZIUM = "3.7.0.Final"
LOCK = Path(__file__).parent.parent / "consumer" / "local" / "artifacts.lock.toml"
JARS = (
    ("org.apache.kafka", "kafka_2.13", KAFKA),
    ("org.apache.kafka", "kafka-tools", KAFKA),
    ("org.apache.kafka", "connect-runtime", KAFKA),
    ("org.apache.kafka", "connect-json", KAFKA),
    ("org.apache.kafka", "connect-transforms", KAFKA),
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.5"),
)


def main() -> None:
    """Resolve, fetch, hash, write."""
    with tempfile.TemporaryDirectory() as folder:
        context = MavenContext(repo_cache=Path(folder), resolver=PythonResolver(), timeout=60)
        jars = _jars(context)
        plugin = (
            context.project("io.debezium", "debezium-connector-postgres")
            .at_version(DEBEZIUM)
            .artifact(classifier="plugin", packaging="tar.gz")
        )
        with ThreadPoolExecutor(8) as pool:
            entries = list(pool.map(_entry, [*jars, plugin]))
    entries.sort(key=lambda each: (each["group"], each["artifact"]))
    LOCK.write_text("# Made by tools/lock_jars.py.\n" + tomli_w.dumps({"artifacts": entries}))
    print(f"{len(entries)} files in {LOCK}")


def _jars(context: MavenContext) -> list[Artifact]:
    # raw: without it the resolver takes each root as a bill of materials for all the others
    roots = [
        Dependency(context.project(group, name).at_version(version).artifact(), raw=True)
        for group, name, version in JARS
    ]
    inputs, transitive = context.resolver.resolve(roots)
    return [each.artifact for each in inputs + transitive]


def _entry(artifact: Artifact) -> dict[str, str | int]:
    path = artifact.resolve()
    entry: dict[str, str | int] = {
        "group": artifact.groupId,
        "artifact": artifact.artifactId,
        "version": artifact.version,
        "packaging": artifact.packaging,
        "classifier": artifact.classifier or "",
        "size": path.stat().st_size,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
    return {key: value for key, value in entry.items() if value}


if __name__ == "__main__":
    main()

"""Named queries are read from .sql files and filled in with quoted names."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from consumer.store.queries import load_queries, with_names

Load = Callable[[str], Mapping[str, str]]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Loads queries from a text, by way of a package of its own."""
    package = "package_with_queries"
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, package, raising=False)

    def from_text(text: str) -> Mapping[str, str]:
        (tmp_path / package / "some.sql").write_text(text, "utf-8")
        return load_queries("some.sql", package)

    return from_text


def test_a_query_is_what_follows_its_name(load: Load) -> None:
    """Comments and lines in between belong to it; the semicolon does not."""
    queries = load("-- name: one\n-- Why.\nSELECT 1;\n\n-- name: two_words\nSELECT\n\n  2;\n")

    assert queries == {"one": "-- Why.\nSELECT 1", "two_words": "SELECT\n\n  2"}


def test_what_stands_before_the_first_name_is_no_query(load: Load) -> None:
    """A file may begin with a comment."""
    assert load("-- About this file.\n\n-- name: one\nSELECT 1;\n") == {"one": "SELECT 1"}


def test_only_the_last_semicolon_goes(load: Load) -> None:
    """Several statements may share a name."""
    assert load("-- name: both\nSELECT 1; SELECT 2;\n")["both"] == "SELECT 1; SELECT 2"


@pytest.mark.parametrize(
    "file", ["inbox.sql", "migrations.sql", "outbox.sql", "prune.sql"], ids=lambda file: file
)
def test_no_file_names_two_queries_alike(file: str) -> None:
    """The later one would silently take the earlier one's place."""
    names = [
        line
        for line in (Path(__file__).parents[2] / "consumer" / "store" / file)
        .read_text("utf-8")
        .splitlines()
        if line.startswith("-- name: ")
    ]

    assert len(load_queries(file)) == len(names) == len(set(names))


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        ("plain", '"plain"'),
        ('two "words"', '"two ""words"""'),
        ("100%", '"100%%"'),
        ("{schema}", '"{schema}"'),
    ],
)
def test_names_are_quoted_and_per_cent_signs_doubled(name: str, quoted: str) -> None:
    """Psycopg looks for parameters in names as well."""
    query = with_names("SELECT %(id)s FROM {schema}.t", schema=name)

    assert query.as_string(None).split(" FROM ") == ["SELECT %(id)s", f"{quoted}.t"]

"""Named queries, read from the .sql files beside this module.

A file holds any number of these, one after the other:

    -- name: claim
    -- Why it is as it is.
    SELECT …;

A name's query is all that follows it up to the next name. `{schema}` and the like stand for
identifiers, to be filled in with psycopg.sql; values are parameters such as `%(consumer)s`.
"""

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import LiteralString

from psycopg import sql

_NAME_LINE = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def load_queries(file_name: str, package: str = __package__) -> Mapping[str, LiteralString]:
    """The queries of `file_name` in `package` by name; the files are part of the code, hence LiteralString."""
    text = files(package).joinpath(file_name).read_text("utf-8")
    _head, *parts = _NAME_LINE.split(text)
    named = dict(zip(parts[::2], parts[1::2], strict=True))
    return {name: query.strip().rstrip(";") for name, query in named.items()}


def with_names(query: LiteralString, **names: str) -> sql.Composed:
    """`query` with its `{name}`s filled in as quoted identifiers; run it with parameters, maybe {}.

    A per cent sign in an identifier is doubled, since psycopg looks for parameters everywhere.
    """
    doubled = {name: sql.Identifier(value.replace("%", "%%")) for name, value in names.items()}
    return sql.SQL(query).format(**doubled)

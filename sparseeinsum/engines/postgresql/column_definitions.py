"""Engines: column definition lists of PostgreSQL, which queries with functions that return records need."""

import json
from collections.abc import Sequence

from sparseeinsum.engines.engine import Column
from sparseeinsum.engines.postgresql.sessions import DatabaseSession
from sparseeinsum.statistics.columns import type_named

_QUERY = """
SELECT pg_catalog.string_agg(pg_catalog.format('%I %s', c.name, CAST(c.type AS REGTYPE)), ', ')
FROM pg_catalog.json_to_recordset(CAST($1 AS JSON)) AS c(name TEXT, type TEXT)"""


def column_definitions(session: DatabaseSession, columns: Sequence[Column], dialect: str) -> str:
    """Return the list for some columns, as PostgreSQL writes names and types: `i bigint, val real`."""
    described = [{"name": column.name, "type": type_named(column.sql_type).sql(dialect)} for column in columns]
    ((text,),) = session.fetch(_QUERY, json.dumps(described))
    return str(text)

"""Engines: looks tables and views of a DuckDB database up."""

from collections.abc import Mapping, Sequence

import duckdb
from sqlglot import exp

from sparseeinsum import assets
from sparseeinsum.engines.engine import Relation


def has_relation(connection: duckdb.DuckDBPyConnection, table: exp.Table) -> bool:
    """Return whether a table or view exists."""
    rows = connection.execute(
        assets.read("sql/duckdb/has_relation.sql"),
        {"name": table.name, "schema": table.db or None, "catalog": table.catalog or None},
    ).fetchall()
    return bool(rows)


def relations_named(connection: duckdb.DuckDBPyConnection, name: str) -> Sequence[Relation]:
    """Return the relations that a name without a schema may refer to; the first is the one that it refers to."""
    rows = connection.execute(assets.read("sql/duckdb/relations.sql"), {"name": name}).fetchall()
    return [Relation(*row) for row in rows]


def catalogue_columns(connection: duckdb.DuckDBPyConnection, schema: str, name: str) -> Mapping[str, str] | None:
    """Return the columns of a table of the current database with their types; None if it does not exist."""
    tables = connection.execute(
        "SELECT 1 FROM duckdb_tables() WHERE database_name = current_database() "
        "AND schema_name = $1 AND table_name = $2",
        [schema, name],
    ).fetchall()  # the connection is busy until the last row is fetched
    if not tables:
        return None
    relation = connection.sql(f"SELECT * FROM {schema}.{name}")  # several times as fast as duckdb_columns()
    return dict(zip(relation.columns, map(str, relation.types), strict=True))

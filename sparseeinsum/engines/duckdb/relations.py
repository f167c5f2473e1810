"""Engines: looks tables and views of a DuckDB database up."""

from collections.abc import Mapping, Sequence

import duckdb
from sqlglot import exp

from sparseeinsum.engines.engine import DatabaseRelation
from sparseeinsum.engines.quoting import quoted
from sparseeinsum.environment import assets


def has_relation(connection: duckdb.DuckDBPyConnection, table: exp.Table) -> bool:
    """Return whether a table or view exists."""
    rows = connection.execute(
        assets.read("sql/duckdb/has_relation.sql"),
        {"name": table.name, "schema": table.db or None, "catalog": table.catalog or None},
    ).fetchall()
    return bool(rows)


def relations_named(connection: duckdb.DuckDBPyConnection, name: str) -> Sequence[DatabaseRelation]:
    """Return the relations that a name without a schema may refer to; the first is the one that it refers to."""
    try:
        connection.table(quoted(name))
    except duckdb.CatalogException:  # a tenth of the time that the query takes
        return []
    except duckdb.Error:  # for example, the name is also that of a file
        pass
    rows = connection.execute(assets.read("sql/duckdb/relations.sql"), {"name": name}).fetchall()
    return [DatabaseRelation(*row) for row in rows]


def own_tables(connection: duckdb.DuckDBPyConnection) -> frozenset[tuple[str, str]]:
    """Return the schemas and names of the permanent tables of the current database that have no computed columns."""
    rows = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = current_database() "
        "AND NOT (temporary OR internal OR contains(upper(sql), 'GENERATED ALWAYS'))"
    ).fetchall()
    return frozenset((schema, name) for schema, name in rows)


def catalogue_columns(
    connection: duckdb.DuckDBPyConnection, schema: str, name: str, database: str | None
) -> Mapping[str, str] | None:
    """Return the columns of a table of the current database with their types; None if it does not exist.

    `database` is the current database; None if it is not known.
    """
    if database is None:
        ((database,),) = connection.execute("SELECT current_database()").fetchall()
    try:
        relation = connection.table(quoted(database, schema, name))
    except duckdb.CatalogException:
        return None
    return dict(zip(relation.columns, map(str, relation.types), strict=True))

"""Loading: what a database reads by itself: relations of DuckDB's Python, tables, views and files by their names."""

from pathlib import Path

import duckdb

from sparseeinsum.loading.sources.input_data import ColumnSelection, Rows


def is_relation(data: object) -> bool:
    """Whether data are a relation of DuckDB's, the name of a table or view, or the path of a file."""
    return isinstance(data, str | Path | duckdb.DuckDBPyRelation)


def read_relation(data: object, columns: ColumnSelection) -> Rows:
    """The relation, for the database to read."""
    return Rows(str(data) if isinstance(data, Path) else data, columns)

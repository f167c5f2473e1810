"""Loading: relations of DuckDB's Python API, and tables, views and files by their names, which a database reads."""

from pathlib import Path

import duckdb

from sparseeinsum.loading.sources.input_data import ColumnSelection, DatabaseRows


def is_relation(data: object) -> bool:
    """Return whether data are a relation of DuckDB's Python API, the name of a table or view, or a path."""
    return isinstance(data, str | Path | duckdb.DuckDBPyRelation)


def read_relation(data: object, columns: ColumnSelection) -> DatabaseRows:
    """Return a relation as rows that the database reads."""
    return DatabaseRows(str(data) if isinstance(data, Path) else data, columns)

"""API: opens the database that a user names, with the engine for it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from sparseeinsum.engines.duckdb_opening import open_duckdb
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.postgresql.quoted_names import is_postgresql
from sparseeinsum.errors import EngineError
from sparseeinsum.extras import late

if TYPE_CHECKING:
    import psycopg


def open_engine(
    target: "str | Path | duckdb.DuckDBPyConnection | psycopg.Connection[Any] | None", read_only: bool
) -> Engine:
    """Open a database.

    Args:
        target: A path, an address or a connection, as for `sparseeinsum.connect`.
        read_only: Whether to open a DuckDB file only for reading.

    Raises:
        EngineError: The database cannot be opened, or lacks the functions of this package.
    """
    if read_only and (is_postgresql(target) or not isinstance(target, str | Path)):
        raise EngineError(
            "read_only is for DuckDB files; a connection of yours is as you opened it, and on PostgreSQL roles have "
            "rights to write, or none"
        )
    if is_postgresql(target):
        engine: Engine = late("sparseeinsum.engines.postgresql.opening").open_postgresql(target)
        return engine
    if isinstance(target, str) and "://" in target:
        raise EngineError(f"{target.split('://')[0]} is not supported; this version runs on DuckDB and PostgreSQL")
    return open_duckdb(target, read_only)

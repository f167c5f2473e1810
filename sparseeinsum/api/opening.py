"""API: opens the database that a user names."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from sparseeinsum.api.database import Database
from sparseeinsum.engines.duckdb.duckdb_opening import open_duckdb
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.locking import lock_of
from sparseeinsum.engines.postgresql.addresses import is_postgresql
from sparseeinsum.environment.extras import late
from sparseeinsum.errors import EngineError
from sparseeinsum.presentation.tracebacks import one_frame

if TYPE_CHECKING:
    import psycopg


@one_frame
def connect(
    target: "str | Path | duckdb.DuckDBPyConnection | psycopg.Connection[Any] | None" = None,
    read_only: bool = False,
) -> Database:
    """Open a database.

    Args:
        target: The path of a DuckDB file, a DuckDB connection that was opened after `import sparseeinsum`, the address
            of a PostgreSQL database as in postgresql://user@host/database, or a psycopg connection. None opens a DuckDB
            database in memory.
        read_only: Whether to open a DuckDB file only for reading; several processes can do so at the same time.

    Raises:
        EngineError: The database cannot be opened, or lacks the functions of this package.
    """
    if isinstance(target, str | Path | None):
        return Database(_open_engine(target, read_only))
    with lock_of(target):
        return Database(_open_engine(target, read_only))


def _open_engine(
    target: "str | Path | duckdb.DuckDBPyConnection | psycopg.Connection[Any] | None", read_only: bool
) -> Engine:
    """Open a connection with the engine for it; see `connect`."""
    if read_only and (is_postgresql(target) or not isinstance(target, str | Path)):
        raise EngineError(
            "read_only is for DuckDB files; a connection of yours is as you opened it, and on PostgreSQL roles have "
            "rights to write, or none"
        )
    if is_postgresql(target):
        engine: Engine = late("sparseeinsum.engines.postgresql.postgresql_opening").open_postgresql(target)
        return engine
    if isinstance(target, str) and "://" in target:
        raise EngineError(f"{target.split('://')[0]} is not supported; this version runs on DuckDB and PostgreSQL")
    return open_duckdb(target, read_only)

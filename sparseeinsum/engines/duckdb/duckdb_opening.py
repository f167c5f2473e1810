"""Engines: opens DuckDB databases from paths and connections, and checks that they have the array functions."""

import re
from pathlib import Path

import duckdb

from sparseeinsum.engines.duckdb.duckdb_engine import DuckDBEngine
from sparseeinsum.errors import EngineError
from sparseeinsum.kernels.duckdb.devices import set_device_of_environment
from sparseeinsum.kernels.duckdb.library import require_library

# Of DuckDB's message about a file that another process has locked: the process, and what it says if that only reads.
_HOLDER = re.compile(r"Conflicting lock is held in (.+? \(PID \d+\))")
_READ_BY_OTHERS = "able to open this database in read-only mode"
# Calls a function of this package, and returns the file of the database: the first one was not attached.
_PROBE = "SELECT path, tensor_norm([1::DOUBLE]) FROM duckdb_databases() WHERE NOT internal ORDER BY database_oid"


def open_duckdb(target: object, read_only: bool = False) -> DuckDBEngine:
    """Connect to a DuckDB database.

    Args:
        target: The path of a file; None for a database in memory; a connection of the user's; or an object with a
            method `cursor` that returns one, such as the session of a Python model of dbt-duckdb. A cursor is another
            connection to the same database: it sees committed data, and the object may have an open transaction.
        read_only: Whether a file is opened for reading only.

    Raises:
        EngineError: `target` is none of these, the file cannot be opened, or the connection lacks the functions.
    """
    if isinstance(target, duckdb.DuckDBPyConnection):
        engine = DuckDBEngine(target, is_owned=False)
        with engine.another_connection() as asking:  # an error on the user's own would undo an open transaction
            engine.place = _checked_place(asking)
        return engine
    if callable(cursor := getattr(target, "cursor", None)) and isinstance(other := cursor(), duckdb.DuckDBPyConnection):
        return _opened(other)
    if not (target is None or isinstance(target, str | Path)):
        raise EngineError(f"{type(target).__name__} is no database; give a path, a postgresql:// URL or a connection")
    require_library()  # before connecting: a database has the functions that existed when it was opened
    set_device_of_environment()
    try:
        connection = duckdb.connect(":memory:" if target is None else str(target), read_only)
    except duckdb.Error as error:
        raise EngineError(f"cannot open {target}: {_reason(str(error), read_only)}") from error
    return _opened(connection)


def _reason(message: str, read_only: bool) -> str:
    """Why a database cannot be opened: the message of DuckDB, or which process has the file and what to do about it."""
    holder = _HOLDER.search(message)
    if holder is None:
        return message
    if read_only:
        return f"{holder[1]} may write to it; end that process, or let it open the file with read_only=True"
    if _READ_BY_OTHERS in message:
        return f"{holder[1]} reads it; open it with read_only=True to read it as well, or end that process to write"
    return f"{holder[1]} may write to it; end that process, as one process alone can have a file that it may write to"


def _opened(connection: duckdb.DuckDBPyConnection) -> DuckDBEngine:
    """The engine of a connection that was opened here."""
    engine = DuckDBEngine(connection, is_owned=True)
    engine.place = _checked_place(engine)
    return engine


def _checked_place(engine: DuckDBEngine) -> str:
    """The place of a database that has the functions of this package.

    Raises:
        EngineError: It does not have them.
    """
    try:
        return str(engine.rows(_PROBE)[0][0] or "in memory")
    except EngineError as error:
        if not isinstance(error.__cause__, duckdb.CatalogException):
            raise
        raise EngineError(
            "this DuckDB connection lacks the functions of sparseeinsum, because its database was opened before "
            "`import sparseeinsum`, or before the kernels were compiled; close it and open it again"
        ) from error

"""Engines: opens PostgreSQL databases, with or without Citus."""

import os
from typing import TYPE_CHECKING, Any

from sparseeinsum.engines.postgresql.citus import CitusEngine, check_machines, has_machines
from sparseeinsum.engines.postgresql.client_session import ClientSession, load_driver
from sparseeinsum.engines.postgresql.installed_functions import find_functions
from sparseeinsum.engines.postgresql.postgresql_engine import PostgreSQLEngine
from sparseeinsum.engines.postgresql.sessions import DatabaseSession
from sparseeinsum.errors import EngineError

if TYPE_CHECKING:
    import psycopg

_LEAST_VERSION = 150_000
_TIMEOUT_SECONDS = 15  # for a connection
_TIMEOUT_VARIABLE = "PGCONNECT_TIMEOUT"  # an environment variable that libpq reads


def open_postgresql(target: "str | psycopg.Connection[Any]") -> PostgreSQLEngine:
    """Connect to a database.

    Args:
        target: The URL of the database, or a connection of the user's.

    Raises:
        EngineError: The server cannot be reached, is too old, or the database lacks the functions.
    """
    psycopg = load_driver()
    if not isinstance(target, str):
        return open_session(ClientSession(target, psycopg, is_owned=False), keeps_arrays=True)
    try:
        connection = psycopg.connect(target, autocommit=True, **_timeout(target, psycopg))
        # Once a server process has compiled a query, all its parallel workers load the compiler, too.
        connection.execute("SET jit = off")
    except psycopg.Error as error:
        raise EngineError(f"cannot connect: {error}") from error
    session = ClientSession(connection, psycopg, is_owned=True)
    try:
        return open_session(session, keeps_arrays=True)
    except EngineError:
        session.close()
        raise


def _timeout(url: str, driver: Any) -> dict[str, int]:  # noqa: ANN401  # a module
    """Return a time limit for the connection, as libpq waits for ever by default; none if the user sets one."""
    is_set = "connect_timeout" in driver.conninfo.conninfo_to_dict(url) or _TIMEOUT_VARIABLE in os.environ
    return {} if is_set else {"connect_timeout": _TIMEOUT_SECONDS}


def open_session(session: DatabaseSession, keeps_arrays: bool = False) -> PostgreSQLEngine:
    """Return the engine for a session.

    Args:
        session: The session.
        keeps_arrays: Whether its process keeps arrays in memory between runs, unless the database is a cluster.

    Raises:
        EngineError: The server is too old, or the database lacks the functions.
    """
    version = session.version
    if version < _LEAST_VERSION:
        raise EngineError(
            f"this server is PostgreSQL {version // 10_000}; version {_LEAST_VERSION // 10_000} or later is needed"
        )
    functions = find_functions(session)
    if has_machines(session):
        check_machines(session, functions.variant)
        return CitusEngine(session, functions)
    return PostgreSQLEngine(session, functions, keeps_arrays)

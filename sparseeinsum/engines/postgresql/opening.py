"""Engines: connections to PostgreSQL, and what is at their other end."""

import os
from typing import TYPE_CHECKING, Any

from sparseeinsum.engines.postgresql.citus import Citus, check_machines, has_machines
from sparseeinsum.engines.postgresql.client_session import ClientSession, load_driver
from sparseeinsum.engines.postgresql.engine import PostgreSQL
from sparseeinsum.engines.postgresql.installed_functions import find_functions
from sparseeinsum.engines.postgresql.sessions import Session
from sparseeinsum.errors import EngineError

if TYPE_CHECKING:
    import psycopg

_LEAST_VERSION = 150_000
_LONGEST_SECONDS = 15  # to wait for a connection
_TIMEOUT_VARIABLE = "PGCONNECT_TIMEOUT"  # of libpq's


def open_postgresql(target: "str | psycopg.Connection[Any]") -> PostgreSQL:
    """Connect to a server, or take a connection that the user has.

    Raises:
        EngineError: The server cannot be reached, is too old, or the database lacks the functions.
    """
    psycopg = load_driver()
    if not isinstance(target, str):
        return open_session(ClientSession(target, psycopg, is_owned=False))
    try:
        connection = psycopg.connect(target, autocommit=True, **_timeout(target, psycopg))
        # A process that once compiled a query has every worker of its own load the compiler again.
        connection.execute("SET jit = off")
    except psycopg.Error as error:
        raise EngineError(f"cannot connect: {error}") from error
    session = ClientSession(connection, psycopg, is_owned=True)
    try:
        return open_session(session)
    except EngineError:
        session.close()
        raise


def _timeout(url: str, driver: Any) -> dict[str, int]:  # noqa: ANN401  # a module
    """How long to wait for a server that does not answer, unless the user says so: by default it is for ever."""
    is_said = "connect_timeout" in driver.conninfo.conninfo_to_dict(url) or _TIMEOUT_VARIABLE in os.environ
    return {} if is_said else {"connect_timeout": _LONGEST_SECONDS}


def open_session(session: Session) -> PostgreSQL:
    """Take a session with a server.

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
        return Citus(session, functions)
    return PostgreSQL(session, functions)

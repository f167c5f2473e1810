"""Engines: finds this package's functions in a PostgreSQL database, and installs the portable ones.

A database has the functions of the extension, or portable functions that need no library on the server.
"""

from dataclasses import dataclass
from enum import StrEnum

from sparseeinsum.engines.postgresql.client_session import load_driver
from sparseeinsum.engines.postgresql.sessions import DatabaseSession
from sparseeinsum.engines.quoting import quoted
from sparseeinsum.errors import EngineError
from sparseeinsum.kernels.postgresql.portable.portable_script import portable_script, removing_script
from sparseeinsum.version import __version__

_PROBE = "tensor_einsum"
_EXTENSION = "sparseeinsum"
_INSTALL = "sparseeinsum install postgres --portable URL"


class Variant(StrEnum):
    """Where functions come from; the value is the name of their folder in stats/, which has the cost constants."""

    EXTENSION = "postgresql"
    PORTABLE = "postgresql_portable"


@dataclass(frozen=True, slots=True)
class InstalledFunctions:
    """The functions of this package in a database.

    Attributes:
        variant: Where they come from.
        schema: Their schema.
    """

    variant: Variant
    schema: str


# The functions of the extension in any schema, else functions on the search_path.
_FIND_FUNCTIONS = """
SELECT l.lanname OPERATOR(pg_catalog.=) 'c', CAST(n.nspname AS pg_catalog.text)
FROM pg_catalog.pg_proc AS p
JOIN pg_catalog.pg_language AS l ON l.oid OPERATOR(pg_catalog.=) p.prolang
JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) p.pronamespace
LEFT JOIN pg_catalog.pg_extension AS e
  ON e.extname OPERATOR(pg_catalog.=) 'sparseeinsum' AND e.extnamespace OPERATOR(pg_catalog.=) n.oid
WHERE p.proname OPERATOR(pg_catalog.=) $1 AND (e.oid IS NOT NULL OR pg_catalog.pg_function_is_visible(p.oid))
ORDER BY e.oid IS NULL
LIMIT 1"""


def find_functions(session: DatabaseSession) -> InstalledFunctions:
    """Find the functions of the extension, or else the portable ones on the search_path.

    Raises:
        EngineError: There are none, or portable ones of another version; the message says what to run.
    """
    rows = session.fetch(_FIND_FUNCTIONS, _PROBE)
    if not rows:
        raise EngineError(_missing_functions_message(session))
    ((is_extension, schema),) = rows
    if is_extension:
        return InstalledFunctions(Variant.EXTENSION, str(schema))
    ((version,),) = session.fetch(f"SELECT {quoted(str(schema), 'sparseeinsum_version')}()")
    if version != __version__:
        raise EngineError(
            f"the portable functions in this database are of version {version}, and this package is {__version__}; "
            f"run `{_INSTALL}` to replace them"
        )
    return InstalledFunctions(Variant.PORTABLE, str(schema))


def _missing_functions_message(session: DatabaseSession) -> str:
    """Return a message that says how to install the functions, depending on whether the server has the extension."""
    if session.fetch("SELECT 1 FROM pg_catalog.pg_available_extensions WHERE name = $1", _EXTENSION):
        remedy = f"run CREATE EXTENSION {_EXTENSION} in it, or put the schema of the portable ones on the search_path"
    else:
        remedy = (
            f"run `sparseeinsum install postgres` on the server, and CREATE EXTENSION {_EXTENSION} in the database; "
            f"where you may install no libraries, `{_INSTALL}`"
        )
    ((database,),) = session.fetch("SELECT pg_catalog.current_database()")
    return f"the database {database} lacks the functions of this package; {remedy}"


def install_portable(url: str, schema: str | None = None) -> str:
    """Create the portable functions in a database, or replace them.

    Args:
        url: The URL of the database; its user needs only the right to create functions in the schema.
        schema: The schema of the functions; by default the first one on the search_path that exists.

    Returns:
        The schema.

    Raises:
        EngineError: The server cannot be reached, refuses the functions or is too old, or the database has the
            extension.
    """
    driver = load_driver()
    try:
        with driver.connect(url, autocommit=True) as connection:
            chosen = schema or connection.execute("SELECT current_schema()").fetchone()[0]
            if chosen is None:
                raise EngineError("no schema on the search_path exists; name one with --schema")
            connection.execute(portable_script(__version__, chosen), prepare=False)
            return str(chosen)
    except driver.Error as error:
        raise EngineError(str(error)) from error


def remove_portable(url: str) -> None:
    """Drop the portable functions of a database.

    Raises:
        EngineError: The server cannot be reached, the database has none, or something uses them.
    """
    driver = load_driver()
    try:
        with driver.connect(url, autocommit=True) as connection:
            connection.execute(removing_script(), prepare=False)
    except driver.Error as error:
        raise EngineError(str(error)) from error

"""Engines: names of the tables of PostgreSQL that a run creates and drops."""

from collections.abc import Callable

from sqlglot import exp

from sparseeinsum.engines.postgresql.sessions import DatabaseSession
from sparseeinsum.engines.temporary_names import temporary_name


def temporary_stages(schema: str | None) -> Callable[[str], exp.Table]:
    """Return a function that names stages in the schema of temporary tables."""
    return lambda name: exp.table_(exp.to_identifier(temporary_name(name)), db=exp.to_identifier(schema))


def shared_stages(session: DatabaseSession, schema: str | None) -> Callable[[str], exp.Table] | None:
    """Return a function that names stages which other processes can read; None if the user may create none.

    The names contain the number of the server process. Nobody else sees these tables: the transaction that creates them
    drops them.

    Args:
        session: The session that creates the tables.
        schema: Their schema; None if there is none.
    """
    if schema is None:
        return None
    query = "SELECT pg_catalog.has_schema_privilege($1, 'CREATE'), pg_catalog.pg_backend_pid()"
    ((may_create, process),) = session.fetch(query, schema)
    if not may_create:
        return None
    return lambda name: exp.table_(exp.to_identifier(temporary_name(f"{process}_{name}")), db=exp.to_identifier(schema))

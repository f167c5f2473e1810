"""Engines: refuses relations of PostgreSQL that would run other roles' functions with the rights of the caller."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template

from sqlglot import exp

from sparseeinsum.engines.engine import RelationAccess
from sparseeinsum.engines.postgresql.search_path import refuse_views_and_foreign_tables
from sparseeinsum.engines.postgresql.sessions import DatabaseSession, column_type
from sparseeinsum.engines.quoting import quoted
from sparseeinsum.environment import assets
from sparseeinsum.errors import RightsError

_RISKS = {
    "no ordinary table": "is no ordinary table, so that to read it may run functions of that role with your rights",
    "row-level security": "has row-level security, whose policies would run with your rights",
    "types": "has columns of types that users made, whose functions would run with your rights",
    "expressions": "has indexes, constraints or statistics with functions of users, which would run with your rights",
}
_SUGGESTION = "let it be copied into a table, or be granted that role"

# Whether a locked relation is still the table that was checked. These functions look at the catalogue as it is now, and
# not as the snapshot shows it.
_IS_UNCHANGED = """
SELECT
  pg_catalog.to_regclass($1) = CAST(CAST($2 AS BIGINT) AS OID)
  AND (pg_catalog.pg_identify_object(CAST('pg_catalog.pg_class' AS REGCLASS), CAST(CAST($2 AS BIGINT) AS OID), 0)).type
    = 'table'
  AND NOT pg_catalog.row_security_active(CAST(CAST($2 AS BIGINT) AS OID))"""


def catalogue_columns(session: DatabaseSession, schema: str, name: str) -> Mapping[str, str] | None:
    """Return the columns of a table of the catalogue with their types; None if it does not exist.

    Raises:
        RightsError: It belongs to a role that the caller does not trust, and that could have created triggers on it.
    """
    columns = session.fetch(assets.read("sql/postgresql/catalogue_columns.sql"), f"{schema}.{name}")
    for owner in {str(owner) for _, _, owner, caller in columns if owner != caller}:
        if session.fetch(assets.read("sql/postgresql/catalogue_trust.sql"), owner) != [(True,)]:
            raise RightsError(
                f"the table {schema}.{name} of this database belongs to the role {owner}, whose triggers and policies "
                f"would run with your rights; work as a role of fewer rights, as after SET ROLE {owner}"
            )
    return {str(column): column_type(str(shown)) for column, shown, *_ in columns} or None


def check_access(session: DatabaseSession, accesses: Sequence[RelationAccess]) -> Mapping[str, str]:
    """Refuse relations that would run functions of others; the rest stay safe until the transaction ends.

    Returns:
        The kinds of those that exist (`relkind` of pg_class), by their quoted names.

    Raises:
        RightsError: Names the first such relation and the reason.
    """
    if not accesses:
        return {}
    names = [quoted(*access.schema_and_name) for access in accesses]
    parameters = ", ".join(f"${number}" for number in range(1, len(names) + 1))
    rows = session.fetch(
        "SELECT name, c.relkind, pg_catalog.pg_get_userbyid(c.relowner), CURRENT_USER "
        f"FROM unnest(ARRAY[{parameters}]) AS name "
        "JOIN pg_catalog.pg_class AS c ON c.oid = pg_catalog.to_regclass(name)",
        *names,
    )
    # This is checked before every run. Mostly it ends here, because the caller owns and recorded all relations.
    recorded_by = {access.owner for access in accesses} - {None}
    if not all(owner == caller and recorded_by <= {caller} for *_, owner, caller in rows):
        _check_relations_of_others(session, accesses)
    return {str(name): str(kind) for name, kind, *_ in rows}


def _check_relations_of_others(session: DatabaseSession, accesses: Sequence[RelationAccess]) -> None:
    """Check relations of roles that the caller does not trust: inspect them, lock them, and inspect them again."""
    relations = _inspect(session, accesses)
    untrusted = [relation.access for relation in relations if not relation.is_trusted]
    if not untrusted:
        return
    if all(relation.is_table for relation in relations):
        refuse_views_and_foreign_tables(session)
    for access in untrusted:
        # The lock prevents that somebody replaces a table that was checked by a view.
        session.lock_for_reading(f"ONLY {quoted(*access.schema_and_name)}")
    for relation in _inspect(session, untrusted):
        ((is_unchanged,),) = session.fetch(_IS_UNCHANGED, quoted(*relation.access.schema_and_name), relation.oid)
        if not is_unchanged:
            raise RightsError(f"{relation.access.title} was changed while it was about to be read; try again")


def grant(session: DatabaseSession, role: str, functions_schema: str) -> None:
    """Let a role use the catalogue and the functions of this package.

    Args:
        session: A session of their owner.
        role: The name of the role, or `public` for all roles.
        functions_schema: The schema of the functions.

    Raises:
        EngineError: There is no such role, or the caller may not grant this.
    """
    names = {
        "role": "PUBLIC" if role.lower() == "public" else quoted(role),
        "functions": quoted(functions_schema),
    }
    session.write(Template(assets.read("sql/postgresql/grant.sql")).substitute(names))


def role_owns(session: DatabaseSession, role: str | None, table: exp.Table) -> bool:
    """Return whether a table belongs to a role, or to any role if `role` is None, as in records of version 0.1."""
    rows = session.fetch(
        "SELECT tableowner FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = $2", table.db, table.name
    )
    return any(owner == role or role is None for (owner,) in rows)


def _inspect(session: DatabaseSession, accesses: Sequence[RelationAccess]) -> list["_InspectedRelation"]:
    """Return those of the relations that exist.

    Raises:
        RightsError: To read one would run functions of another role.
    """
    requests = [
        {"number": number, "schema": access.table.db, "name": access.table.name, "owner": access.owner}
        for number, access in enumerate(accesses)
    ]
    rows = session.fetch(assets.read("sql/postgresql/reading_rights.sql"), json.dumps(requests)) if requests else ()
    relations = []
    for number, oid, kind, owner, is_trusted, risk in rows:
        access = accesses[int(str(number))]
        _check(access, str(owner), bool(is_trusted), None if risk is None else str(risk))
        relations.append(_InspectedRelation(access, str(oid), kind == "r", bool(is_trusted)))
    return relations


@dataclass(frozen=True, slots=True)
class _InspectedRelation:
    """A relation that may be read.

    Attributes:
        access: What is to be read.
        oid: Its object identifier, as text.
        is_table: Whether it is an ordinary table.
        is_trusted: Whether the caller trusts its owner.
    """

    access: RelationAccess
    oid: str
    is_table: bool
    is_trusted: bool


def _check(access: RelationAccess, owner: str, is_trusted: bool, risk: str | None) -> None:
    """Refuse a relation of `owner` that has a risk, or that is written and has an owner who is not trusted."""
    title = f"{access.title} is read from {access.table.sql()}, which belongs to the role {owner}"
    if risk == "of another":
        raise RightsError(
            f"{title}, but the role {access.owner} entered it in the catalogue; let its owner do that, or give the "
            "entry another owner"
        )
    if risk is not None:
        raise RightsError(f"{title} and {_RISKS[risk]}; {_SUGGESTION}")
    if access.is_written and not is_trusted:
        raise RightsError(f"{title}, whose triggers would run with your rights; {_SUGGESTION}")

"""Engines: what in a PostgreSQL database would run functions of other roles with the rights of the caller."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template

from sqlglot import exp

from sparseeinsum import assets
from sparseeinsum.engines.engine import RelationAccess
from sparseeinsum.engines.postgresql.names import quoted
from sparseeinsum.engines.postgresql.search_path import read_ordinary_tables_alone
from sparseeinsum.engines.postgresql.sessions import Session, column_type
from sparseeinsum.errors import RightsError

_RISKS = {
    "no ordinary table": "is no ordinary table, so that to read it may run functions of that role with your rights",
    "row-level security": "has row-level security, whose policies would run with your rights",
    "types": "has columns of types that users made, whose functions would run with your rights",
    "expressions": "has indexes, constraints or statistics with functions of users, which would run with your rights",
}
_WAY = "let it be copied into a table, or be granted that role"

# Of a relation that is locked: none of this looks at it as a snapshot shows it, but as it is now.
_STILL = """
SELECT
  pg_catalog.to_regclass($1) = CAST(CAST($2 AS BIGINT) AS OID)
  AND (pg_catalog.pg_identify_object(CAST('pg_catalog.pg_class' AS REGCLASS), CAST(CAST($2 AS BIGINT) AS OID), 0)).type
    = 'table'
  AND NOT pg_catalog.row_security_active(CAST(CAST($2 AS BIGINT) AS OID))"""


def catalogue_columns(session: Session, schema: str, name: str) -> Mapping[str, str] | None:
    """Columns of a table of the catalogue, with their types; None where there is none.

    Raises:
        RightsError: It belongs to a role that the caller does not trust, and that could have put triggers on it.
    """
    columns = session.fetch(assets.read("sql/postgresql/catalogue_columns.sql"), f"{schema}.{name}")
    for owner in {str(owner) for _, _, owner, caller in columns if owner != caller}:
        if session.fetch(assets.read("sql/postgresql/catalogue_trust.sql"), owner) != [(True,)]:
            raise RightsError(
                f"the table {schema}.{name} of this database belongs to the role {owner}, whose triggers and policies "
                f"would run with your rights; work as a role of fewer rights, as after SET ROLE {owner}"
            )
    return {str(column): column_type(str(shown)) for column, shown, *_ in columns} or None


def check_access(session: Session, readings: Sequence[RelationAccess]) -> Mapping[str, str]:
    """Refuse relations that would run functions of others; the rest cannot become such until the transaction ends.

    Returns:
        The kinds of those that are there, in pg_class's words, by their names as SQL has them.

    Raises:
        RightsError: Naming the first, and why.
    """
    if not readings:
        return {}
    names = [quoted(*each.parts) for each in readings]
    asked = ", ".join(f"${number}" for number in range(1, len(names) + 1))
    rows = session.fetch(
        "SELECT name, c.relkind, pg_catalog.pg_get_userbyid(c.relowner), CURRENT_USER "
        f"FROM unnest(ARRAY[{asked}]) AS name JOIN pg_catalog.pg_class AS c ON c.oid = pg_catalog.to_regclass(name)",
        *names,
    )
    # Most common, and asked before every run: the caller owns all relations, and entered them.
    enterers = {each.owner for each in readings} - {None}
    if not all(owner == caller and enterers <= {caller} for *_, owner, caller in rows):
        _check_those_of_others(session, readings)
    return {str(name): str(kind) for name, kind, *_ in rows}


def _check_those_of_others(session: Session, readings: Sequence[RelationAccess]) -> None:
    found = _look(session, readings)
    others = [each.reading for each in found if not each.is_trusted]
    if not others:
        return
    if all(each.is_table for each in found):
        read_ordinary_tables_alone(session)
    for reading in others:
        # So that nobody can put a view in the place of a table that was checked.
        session.write(f"LOCK TABLE ONLY {quoted(*reading.parts)} IN ACCESS SHARE MODE")
    for each in _look(session, others):
        ((still,),) = session.fetch(_STILL, quoted(*each.reading.parts), each.oid)
        if not still:
            raise RightsError(f"{each.reading.title} was changed while it was about to be read; try again")


def grant(session: Session, role: str, functions: str) -> None:
    """Let a role use the catalogue, and functions in a schema.

    Args:
        session: Of their owner.
        role: Its name, or `public` for all.
        functions: Name of the schema.

    Raises:
        EngineError: There is no such role, or the caller may not grant that.
    """
    names = {
        "role": "PUBLIC" if role.lower() == "public" else quoted(role),
        "functions": quoted(functions),
    }
    session.write(Template(assets.read("sql/postgresql/grant.sql")).substitute(names))


def role_owns(session: Session, role: str | None, table: exp.Table) -> bool:
    """Whether a table belongs to a role; to any where version 0.1 entered it in the catalogue under its own name."""
    rows = session.fetch(
        "SELECT tableowner FROM pg_catalog.pg_tables WHERE schemaname = $1 AND tablename = $2", table.db, table.name
    )
    return any(owner == role or role is None for (owner,) in rows)


def _look(session: Session, readings: Sequence[RelationAccess]) -> list["_Relation"]:
    """The relations that are there, of which those of others run nothing of theirs when they are read.

    Raises:
        RightsError: One does.
    """
    asked = [
        {"number": number, "schema": each.table.db, "name": each.table.name, "owner": each.owner}
        for number, each in enumerate(readings)
    ]
    rows = session.fetch(assets.read("sql/postgresql/reading_rights.sql"), json.dumps(asked)) if asked else ()
    found = []
    for number, oid, kind, owner, is_trusted, risk in rows:
        reading = readings[int(str(number))]
        _check(reading, str(owner), bool(is_trusted), None if risk is None else str(risk))
        found.append(_Relation(reading, str(oid), kind == "r", bool(is_trusted)))
    return found


@dataclass(frozen=True, slots=True)
class _Relation:
    """A relation that may be read.

    Attributes:
        reading: As it is asked for.
        oid: As text.
        is_table: Whether it is an ordinary table.
        is_trusted: Whether the caller trusts its owner.
    """

    reading: RelationAccess
    oid: str
    is_table: bool
    is_trusted: bool


def _check(reading: RelationAccess, owner: str, is_trusted: bool, risk: str | None) -> None:
    where = f"{reading.title} is read from {reading.table.sql()}, which belongs to the role {owner}"
    if risk == "of another":
        raise RightsError(
            f"{where}, but the role {reading.owner} entered it in the catalogue; let its owner do that, or give the "
            "entry another owner"
        )
    if risk is not None:
        raise RightsError(f"{where} and {_RISKS[risk]}; {_WAY}")
    if reading.is_written and not is_trusted:
        raise RightsError(f"{where}, whose triggers would run with your rights; {_WAY}")

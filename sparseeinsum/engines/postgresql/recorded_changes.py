"""Engines: records that a table of PostgreSQL was changed, so that what was measured of it stays valid until then.

A trigger adds a row to a log for every statement that changes rows, whatever program runs it, in the transaction that
changes them. What no trigger sees changes rows of the system catalogue, or the file of the table.
"""

import hashlib
from collections.abc import Sequence
from functools import cache
from string import Template

from sqlglot import exp

from sparseeinsum.engines.postgresql.sessions import DatabaseSession
from sparseeinsum.engines.quoting import quoted
from sparseeinsum.environment import assets
from sparseeinsum.statistics.dictionary_queries import SCHEMA
from sparseeinsum.statistics.scan_cache import ChangeToken, TableState

_LOG = f"{SCHEMA}.changes"
_RECORDER = f"{SCHEMA}.record_change()"
_IN_STATEMENTS, _IN_REPLICATION = "sparseeinsum_change", "sparseeinsum_replicated_change"

# Statements of this package's table: a trigger fires before a statement, even if that changes no rows. Logical
# replication fires triggers of rows alone, and only those that are enabled for it.
_TRIGGERS = f"""
CREATE OR REPLACE TRIGGER {_IN_STATEMENTS} BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON $table
FOR EACH STATEMENT EXECUTE FUNCTION {_RECORDER};
CREATE OR REPLACE TRIGGER {_IN_REPLICATION} AFTER INSERT OR UPDATE OR DELETE ON $table
FOR EACH ROW EXECUTE FUNCTION {_RECORDER};
ALTER TABLE $table ENABLE ALWAYS TRIGGER {_IN_STATEMENTS}, ENABLE REPLICA TRIGGER {_IN_REPLICATION};
DELETE FROM $table WHERE FALSE"""  # the first change, without which nobody knows whether the log is complete

_MAY_RECORD = f"""
SELECT COALESCE(pg_catalog.has_function_privilege(CAST(f AS OID), 'EXECUTE'), FALSE)
FROM pg_catalog.to_regprocedure('{_RECORDER}') AS f
JOIN pg_catalog.pg_namespace AS s ON s.nspname = '{SCHEMA}' AND pg_catalog.has_schema_privilege(s.oid, 'USAGE')"""

_CHANGES = f"""
SELECT
  CAST(c.relation AS BIGINT), CAST(pg_catalog.sum(c.changes) AS BIGINT), CAST(pg_catalog.sum(c.number) AS TEXT),
  COALESCE(pg_catalog.bool_or(c.transaction = pg_catalog.pg_current_xact_id_if_assigned()), FALSE)
FROM {_LOG} AS c
WHERE c.relation IN ($relations)
GROUP BY c.relation"""


def start_recording(session: DatabaseSession, table: exp.Table) -> TableState | None:
    """Record the changes of a table from now on; return what it is now, or None if the user may not record them."""
    if session.fetch(_MAY_RECORD) != [(True,)]:
        return None
    name = quoted(table.db, table.name)
    session.write(Template(_TRIGGERS).substitute(table=name))
    ((state, _),) = _states(session, [name]) or [(None, False)]
    return state


def change_tokens(session: DatabaseSession, tables: Sequence[exp.Table]) -> list[object]:
    """For every table a value that differs after every change of it; None if changes may not all be recorded.

    There is none in a transaction that changes the table: a statement that has not ended is recorded already.
    """
    states = _states(session, [quoted(table.db, table.name) for table in tables])
    return [None if state is None or is_changing else ChangeToken((), state) for state, is_changing in states]


def _states(session: DatabaseSession, tables: Sequence[str]) -> list[tuple[TableState | None, bool]]:
    """For every table, what it is now, if its changes are recorded, and whether the open transaction has changed it."""
    parameters = ", ".join(f"${number}" for number in range(2, len(tables) + 2))
    query = Template(assets.read("sql/postgresql/recorded_tables.sql")).substitute(tables=parameters)
    recorded = session.fetch(query, _source_hash(), *tables) if tables else []
    if not recorded:
        return [(None, False)] * len(tables)
    relations = ", ".join(str(relation) for _, relation, _ in recorded)
    changes = {
        relation: (int(str(count)), int(str(number)), bool(is_changing))
        for relation, count, number, is_changing in session.fetch(Template(_CHANGES).substitute(relations=relations))
    }
    states: list[tuple[TableState | None, bool]] = [(None, False)] * len(tables)
    for position, relation, identity in recorded:
        if relation in changes:
            count, number, is_changing = changes[relation]
            states[int(str(position)) - 1] = TableState(str(identity), _LOG, count, number), is_changing
    return states


@cache
def _source_hash() -> str:
    """The hash of the function that records changes: another one under its name may record less."""
    _, source, _ = assets.read("sql/postgresql/changes.sql").split("$function$")
    return hashlib.md5(source.encode(), usedforsecurity=False).hexdigest()

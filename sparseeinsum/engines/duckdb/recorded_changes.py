"""Engines: records that a DuckDB table was changed, so that what was measured of it stays valid until then.

Triggers add a row to a log for every statement that inserts, updates or deletes rows, whatever program runs it.
DuckDB has no triggers for ALTER TABLE; but it refuses to change the type of a column with a CHECK constraint, to drop a
column with one that has other columns, and to rename a table with triggers. So a table has a constraint on all columns,
which is always true, and other changes show in its definition.

The name of the log differs from one database to another: a table of an attached database can only be changed where that
database is the current one, or its triggers would write into the log of another.
"""

import re
import uuid
from collections.abc import Callable, Sequence

from sqlglot import exp

from sparseeinsum.engines.engine import Column
from sparseeinsum.engines.quoting import literal, quoted
from sparseeinsum.statistics.dictionary_queries import SCHEMA
from sparseeinsum.statistics.scan_cache import ChangeToken, TableState

_LOG_PREFIX = "changes_"
_EVENTS = ("INSERT", "UPDATE", "DELETE")
_IN_TRIGGER = re.compile(rf"{SCHEMA}\.{_LOG_PREFIX}[0-9a-f]+")
_FEW_CHANGES = 256  # are added up here in less time than DuckDB takes to group them
_FIRST_VERSION = 2  # of DuckDB whose files can have triggers
_RANDOM_NUMBER = "CAST(hash(gen_random_uuid()) // 2 AS BIGINT)"

Rows = Callable[[str], Sequence[tuple[object, ...]]]


def can_record_changes(rows: Rows) -> bool:
    """Whether the current database can have triggers: one in memory, or in a file of a version that has them."""
    ((version,),) = rows(
        "SELECT tags['storage_version'] FROM duckdb_databases() WHERE database_name = current_database()"
    )
    return version is None or int(str(version).removeprefix("v").split(".")[0]) >= _FIRST_VERSION


def recorded_table(table: exp.Table, columns: Sequence[Column]) -> str:
    """The statement that creates or replaces a table, with the constraint that keeps its columns as they are."""
    definitions = ", ".join(f"{quoted(column.name)} {column.sql_type}" for column in columns)
    is_null = " OR ".join(f"{quoted(column.name)} IS NULL" for column in columns)
    return f"CREATE OR REPLACE TABLE {table.sql('duckdb')} ({definitions}, CHECK ({is_null} OR TRUE))"


def start_recording(rows: Rows, table: exp.Table) -> TableState:
    """Record the changes of a table from now on, which was made by `recorded_table`; return what it is now."""
    log = _log(rows) or _create_log(rows)
    name, name_in_log = table.sql("duckdb"), literal(f"{table.db}.{table.name}")
    change = f"INSERT INTO {SCHEMA}.{log} VALUES ({name_in_log}, {_RANDOM_NUMBER})"
    for event in _EVENTS:
        rows(f"CREATE TRIGGER {_trigger_name(event)} AFTER {event} ON {name} FOR EACH STATEMENT {change}")
    rows(f"DELETE FROM {SCHEMA}.{log} WHERE table_name = {name_in_log}")
    # A table without a row in the log is one whose changes somebody has deleted.
    ((number,),) = rows(f"{change} RETURNING number")
    ((definition,),) = rows(
        f"SELECT sql FROM duckdb_tables() WHERE database_name = current_database() "
        f"AND schema_name = {literal(table.db)} AND table_name = {literal(table.name)}"
    )
    return TableState(str(definition), f"{SCHEMA}.{log}", 1, int(str(number)))


def change_tokens(rows: Rows, database: str) -> dict[tuple[str, str], ChangeToken]:
    """By schema and name of every table whose changes are recorded, a value that differs after every change.

    It has what identifies the table and its triggers, its definition, and its changes. As numbers in the log are
    random, copies of a database that change apart have different ones. DuckDB takes longer to select those of the
    current database, which is `database`, than to return all tables and triggers.
    """
    triggers = _triggers(rows, database)
    logs = {match[0] for texts in triggers.values() for match in map(_IN_TRIGGER.search, texts) if match}
    if len(logs) != 1:
        return {}
    log = logs.pop()
    selected = "database_name, schema_name, table_name, table_oid, sql, estimated_size"
    tables = [table for of, *table in rows(f"SELECT {selected} FROM duckdb_tables()") if of == database]
    estimated = [int(str(size)) for schema, name, *_, size in tables if f"{schema}.{name}" == log]
    changes = _changes(rows, log, max(estimated, default=0))
    return {
        (str(schema), str(name)): ChangeToken(
            (database, oid, triggers[schema, name]), TableState(str(definition), log, *changes[f"{schema}.{name}"])
        )
        for schema, name, oid, definition, _ in tables
        if len(triggers.get((schema, name), ())) == len(_EVENTS) and f"{schema}.{name}" in changes
    }


def _changes(rows: Rows, log: str, estimated: int) -> dict[str, tuple[int, int]]:
    """By table, how many changes a log of about `estimated` rows has of it, and the sum of their numbers."""
    if estimated > _FEW_CHANGES:
        counted = rows(f"SELECT table_name, count(*), sum(number) FROM {log} GROUP BY table_name")
        return {str(name): (int(str(count)), int(str(number))) for name, count, number in counted}
    changes: dict[str, tuple[int, int]] = {}
    for name, number in rows(f"SELECT table_name, number FROM {log}"):
        count, total = changes.get(str(name), (0, 0))
        changes[str(name)] = count + 1, total + int(str(number))
    return changes


def _triggers(rows: Rows, database: str) -> dict[tuple[object, object], tuple[str, ...]]:
    """By schema and name of a table of a database, its triggers that record changes: their numbers and definitions.

    DuckDB takes longer to sort them, too.
    """
    ours = frozenset(map(_trigger_name, _EVENTS))
    triggers: dict[tuple[object, object], tuple[str, ...]] = {}
    selected = "trigger_oid, schema_name, table_name, sql, trigger_name, database_name"
    by_number = sorted(rows(f"SELECT {selected} FROM duckdb_triggers()"), key=lambda row: int(str(row[0])))
    for number, schema, table, text, name, of in by_number:
        if name in ours and of == database:
            triggers[schema, table] = (*triggers.get((schema, table), ()), f"{number} {text}")
    return triggers


def _log(rows: Rows) -> str | None:
    """The name of the log of the current database; None if it has none."""
    names = rows(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() "
        f"AND schema_name = '{SCHEMA}' AND starts_with(table_name, '{_LOG_PREFIX}')"
    )
    return str(names[0][0]) if names else None


def _create_log(rows: Rows) -> str:
    log = _LOG_PREFIX + uuid.uuid4().hex
    rows(f"CREATE TABLE {SCHEMA}.{log} (table_name VARCHAR, number BIGINT)")
    return log


def _trigger_name(event: str) -> str:
    return f"sparseeinsum_{event.lower()}"

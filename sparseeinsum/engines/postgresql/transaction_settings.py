"""Engines: settings of a PostgreSQL server for the statements of a transaction, read in one query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparseeinsum.engines.postgresql.search_path import REFUSED_KINDS, SEARCH_PATH
from sparseeinsum.engines.postgresql.sessions import DatabaseSession

MEMORY = "effective_cache_size"  # how much memory the administrator says that the server can expect to use
_WORK_MEMORY = "work_mem"  # what a sort or a hash table may use before it spills
_LEAST_SHARED_SCAN = "min_parallel_table_scan_size"  # the size of a table from which on workers share its scan
_WORK_SHARE = 16  # the part of the memory that every sort and hash table of a statement may use: 1/16
# Parallel workers are worth their start for smaller tables than by default, because functions of arrays take longer
# than the planner expects.
_LEAST_SHARED_SCAN_BYTES = 512 << 10
# To compile a query takes longer than to run most of them.
# The best plan for arrays in parameters depends on their lengths.
_SETTINGS = {"jit": "off", "enable_sort": "off", "plan_cache_mode": "force_custom_plan"}
# To compress arrays of numbers by PostgreSQL's own method takes ten times as long as to write them.
_COMPRESSION = "default_toast_compression"
_QUICK_COMPRESSION = "lz4"
# A run ends with the process that asked for it. Servers on other systems cannot check the connection, and refuse this.
_SETTINGS_ON_LINUX = {"client_connection_check_interval": "1s"}


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings by name, in the order in which they are set.

    Attributes:
        before: The values before a transaction.
        during: The values for its statements.
    """

    before: Mapping[str, str]
    during: Mapping[str, str]


def settings_in_effect(session: DatabaseSession) -> Mapping[str, str]:
    """Return the current values of the search_path, of what it goes with, and of the settings of transactions."""
    names = (
        SEARCH_PATH,
        REFUSED_KINDS,
        *_SETTINGS,
        *_SETTINGS_ON_LINUX,
        _WORK_MEMORY,
        _LEAST_SHARED_SCAN,
        _COMPRESSION,
    )
    columns = (f"pg_catalog.current_setting('{name}', TRUE) AS \"{name}\"" for name in names)
    ((*values,),) = session.fetch(f"SELECT {', '.join(columns)}")
    return {name: str(value) for name, value in zip(names, values, strict=True) if value is not None}


def has_quick_compression(session: DatabaseSession) -> bool:
    """Return whether the server has a quick method to compress values, which not all are built with."""
    ((has_method,),) = session.fetch(
        f"SELECT '{_QUICK_COMPRESSION}' OPERATOR(pg_catalog.=) ANY (enumvals) FROM pg_catalog.pg_settings "
        f"WHERE name OPERATOR(pg_catalog.=) '{_COMPRESSION}'"
    )
    return bool(has_method)


def settings_for_transaction(statements_per_machine: str, compresses_quickly: bool) -> Mapping[str, str]:
    """Return SQL for the settings of a transaction, by name; it is NULL where one must not be set.

    Names in it are qualified, because the user's search_path may be in effect.

    Args:
        statements_per_machine: SQL for the number of statements that share the memory of a machine.
        compresses_quickly: Whether the server has a quick method to compress values.
    """
    memory = f"{_size(MEMORY)} OPERATOR(pg_catalog./) ({_WORK_SHARE} OPERATOR(pg_catalog.*) {statements_per_machine})"
    is_linux = "pg_catalog.version() OPERATOR(pg_catalog.~~) '%linux%'"
    return {
        **{name: f"'{value}'" for name, value in _SETTINGS.items()},
        **{name: f"CASE WHEN {is_linux} THEN '{value}' END" for name, value in _SETTINGS_ON_LINUX.items()},
        _WORK_MEMORY: _kilobytes(f"GREATEST({memory}, {_size(_WORK_MEMORY)})"),
        _LEAST_SHARED_SCAN: _kilobytes(f"LEAST({_size(_LEAST_SHARED_SCAN)}, {_LEAST_SHARED_SCAN_BYTES})"),
        **({_COMPRESSION: f"'{_QUICK_COMPRESSION}'"} if compresses_quickly else {}),
    }


def _size(name: str) -> str:
    return f"pg_catalog.pg_size_bytes(pg_catalog.current_setting('{name}'))"


def _kilobytes(size: str) -> str:
    return f"pg_catalog.concat({size} OPERATOR(pg_catalog./) 1024, 'kB')"


def setting_changes(settings: Mapping[str, str]) -> Sequence[str]:
    """Return the columns of a SELECT that changes settings until the transaction ends, from SQL for their values."""
    return [
        f"CASE WHEN {value} IS NOT NULL THEN pg_catalog.set_config('{name}', {value}, TRUE) END AS \"{name}\""
        for name, value in settings.items()
    ]


def transaction_settings(
    session: DatabaseSession,
    engine_settings: Mapping[str, str],
    statements_per_machine: str,
    compresses_quickly: bool,
) -> Settings:
    """Return the settings for the statements of a transaction that begins.

    Args:
        session: The session of the transaction.
        engine_settings: Settings of the engine, which are set before all others and restored after them.
        statements_per_machine: SQL for the number of statements that share the memory of a machine.
        compresses_quickly: Whether the server has a quick method to compress values.
    """
    values = settings_for_transaction(statements_per_machine, compresses_quickly)
    names = (*engine_settings, *values)
    before_columns = [f"pg_catalog.current_setting('{name}') AS \"{name}\"" for name in names]
    value_columns = [f'{value} AS "new {name}"' for name, value in values.items()]
    ((*row,),) = session.fetch(f"SELECT {', '.join((*before_columns, *value_columns))}")
    before = dict(zip(names, map(str, row[: len(names)]), strict=True))
    computed = dict(zip(values, row[len(names) :], strict=True))
    during = {**engine_settings, **{name: str(value) for name, value in computed.items() if value is not None}}
    return Settings({name: before[name] for name in reversed(during)}, during)

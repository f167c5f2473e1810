"""Engines: settings of a PostgreSQL server for the statements of a transaction, read in one query."""

from collections.abc import Mapping
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
_SETTINGS = {"jit": "off", "enable_sort": "off"}
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
    names = (SEARCH_PATH, REFUSED_KINDS, *_SETTINGS, *_SETTINGS_ON_LINUX, _WORK_MEMORY, _LEAST_SHARED_SCAN)
    columns = (f"pg_catalog.current_setting('{name}', TRUE) AS \"{name}\"" for name in names)
    ((*values,),) = session.fetch(f"SELECT {', '.join(columns)}")
    return {name: str(value) for name, value in zip(names, values, strict=True) if value is not None}


def transaction_settings(
    session: DatabaseSession, engine_settings: Mapping[str, str], statements_per_machine: str
) -> Settings:
    """Return the settings for the statements of a transaction that begins.

    Args:
        session: The session of the transaction.
        engine_settings: Settings of the engine, which are set before all others and restored after them.
        statements_per_machine: SQL for the number of statements that share the memory of a machine.
    """
    names = (*engine_settings, *_SETTINGS, *_SETTINGS_ON_LINUX, _WORK_MEMORY, _LEAST_SHARED_SCAN)
    texts = (f"current_setting('{name}') AS \"{name}\"" for name in names)
    sizes = (
        f"pg_size_bytes(current_setting('{name}')) AS {name}_bytes"
        for name in (MEMORY, _WORK_MEMORY, _LEAST_SHARED_SCAN)
    )
    columns = ("version() LIKE '%linux%' AS is_linux", f"{statements_per_machine} AS sharing", *sizes, *texts)
    ((is_linux, *values),) = session.fetch(f"SELECT {', '.join(columns)}")
    statements, memory, work_memory, least_scan = (int(str(number)) for number in values[:4])
    before = {name: str(value) for name, value in zip(names, values[4:], strict=True)}
    during = {
        **engine_settings,
        **_SETTINGS,
        **(_SETTINGS_ON_LINUX if is_linux else {}),
        _WORK_MEMORY: f"{max(memory // (_WORK_SHARE * statements), work_memory) // 1024}kB",
        _LEAST_SHARED_SCAN: f"{min(least_scan, _LEAST_SHARED_SCAN_BYTES) // 1024}kB",
    }
    return Settings({name: before[name] for name in reversed(during)}, during)

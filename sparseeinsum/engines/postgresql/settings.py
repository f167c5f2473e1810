"""Engines: settings of a PostgreSQL server for the statements of a transaction, asked for in one query."""

from collections.abc import Mapping
from dataclasses import dataclass

from sparseeinsum.engines.postgresql.sessions import Session

MEMORY = "effective_cache_size"  # that the server is told that it may count on
_WORK, _LEAST_SCAN = "work_mem", "min_parallel_table_scan_size"  # that a sort may take; from which on scans are shared
_WORK_SHARE = 16  # of the memory, every sort and hash table of a statement may take
# Workers are worth their start at smaller tables than by default: functions of arrays take longer than the planner
# expects.
_LEAST_SHARED_SCAN_BYTES = 512 << 10
# To compile queries takes longer than most of them.
_SETTINGS = {"jit": "off", "enable_sort": "off"}
# So that a run ends with the process that asked for it; a server that cannot see that refuses the setting.
_SETTINGS_ON_LINUX = {"client_connection_check_interval": "1s"}


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings by name, in the order in which to set them.

    Attributes:
        before: As they were.
        within: As statements are to have them.
    """

    before: Mapping[str, str]
    within: Mapping[str, str]


def settings_within(session: Session, own: Mapping[str, str], sharing: str) -> Settings:
    """Settings for the statements of a transaction that begins.

    Args:
        session: In which it begins.
        own: Settings of the engine's own, which come before all others, and go after them.
        sharing: SQL for how many statements share the memory of a machine.
    """
    known = (*own, *_SETTINGS, *_SETTINGS_ON_LINUX, _WORK, _LEAST_SCAN)
    texts = (f"current_setting('{name}') AS \"{name}\"" for name in known)
    sizes = (f"pg_size_bytes(current_setting('{name}')) AS {name}_bytes" for name in (MEMORY, _WORK, _LEAST_SCAN))
    columns = ("version() LIKE '%linux%' AS is_linux", f"{sharing} AS sharing", *sizes, *texts)
    ((is_linux, *found),) = session.fetch(f"SELECT {', '.join(columns)}")
    shared_by, memory, work, scan = (int(str(number)) for number in found[:4])
    before = {name: str(value) for name, value in zip(known, found[4:], strict=True)}
    within = {
        **own,
        **_SETTINGS,
        **(_SETTINGS_ON_LINUX if is_linux else {}),
        _WORK: f"{max(memory // (_WORK_SHARE * shared_by), work) // 1024}kB",
        _LEAST_SCAN: f"{min(scan, _LEAST_SHARED_SCAN_BYTES) // 1024}kB",
    }
    return Settings({name: before[name] for name in reversed(within)}, within)

"""Engines: how much memory this machine has for arrays."""

from functools import lru_cache

import duckdb

from sparseeinsum.engines.byte_sizes import parse_bytes

_SMALL = 1 << 28  # bytes that every machine has


def has_memory(size_bytes: float, share: float = 1) -> bool:
    """Whether an array takes at most a share of the memory that a database uses by default."""
    return size_bytes <= share * _SMALL or size_bytes <= share * machine_memory()


@lru_cache(maxsize=1)
def machine_memory() -> int:
    """The bytes that a database in this process would use by default: 80 % of the machine's or container's memory."""
    with duckdb.connect() as connection:
        ((limit,),) = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    return parse_bytes(str(limit))

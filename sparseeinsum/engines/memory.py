"""Engines: the memory limit of a database, lowered while a run keeps to one of its own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sparseeinsum.engines.duckdb import DuckDB

# What a database gets for its buffers however low a limit is: below it, hash tables cannot spill (bench/memory.py).
LEAST_BUFFER_BYTES = 64_000_000

# A limit that would hardly change is left alone: other runs need not wait.
_WORTH_SETTING = 0.95

# The limit is global to a database, and runs in one process share its memory: those with limits take turns.
_TURN = threading.RLock()


@contextmanager
def bounded(engine: DuckDB, limit_bytes: float) -> Iterator[None]:
    """Let a database take so many bytes more than it takes now, and no more than it may anyway.

    The limit is that of the whole database, other connections to it included, until the end. What hash tables and
    temporary tables take beyond it, DuckDB spills to its `temp_directory`.

    Args:
        engine: A connection to the database.
        limit_bytes: What its buffers may grow by; at least LEAST_BUFFER_BYTES are granted.
    """
    wanted = engine.buffer_bytes() + max(limit_bytes, LEAST_BUFFER_BYTES)
    if wanted > _WORTH_SETTING * engine.memory_limit():
        yield
        return
    with _TURN, engine.memory_limited_to(wanted):
        yield

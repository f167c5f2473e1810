"""Engines: DuckDB's optimiser, which takes longer than small queries."""

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from sparseeinsum.engines.duckdb.translated_errors import translated_errors


def optimize(connection: duckdb.DuckDBPyConnection, enabled: bool) -> bool:
    """Optimise statements of a connection, or run them as they are written; return whether it did before."""
    with translated_errors(f"SET enable_optimizer = {str(enabled).lower()}") as text:
        ((before,),) = connection.execute("SELECT current_setting('enable_optimizer')").fetchall()
        connection.execute(text)
    return bool(before)


@contextmanager
def optimized_unless(connection: duckdb.DuckDBPyConnection, is_small: bool) -> Iterator[None]:
    """Prepare what is small as it is written, since DuckDB binds and optimises again whatever it has optimised."""
    before = optimize(connection, False) if is_small else None
    try:
        yield
    finally:
        if before is not None:
            optimize(connection, before)

"""Engines: views of a DuckDB connection over rows that the client has."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import duckdb

from sparseeinsum.engines.duckdb.translated_errors import translated_errors


@contextmanager
def registered_view(connection: duckdb.DuckDBPyConnection, rows: object, name: str) -> Iterator[None]:
    """Make rows readable under a name in the context: an Arrow table, batches or a relation of the same database."""
    with translated_errors(f"-- register {name}"):
        connection.register(name, rows)
    try:
        yield
    finally:
        with suppress(duckdb.Error):  # if the transaction failed; its end unregisters the view
            connection.unregister(name)

"""Engines: how much of a running statement DuckDB has done."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import duckdb

_SETTINGS = {"enable_progress_bar": "true", "enable_progress_bar_print": "false"}  # of one connection


@contextmanager
def measured_progress(connection: duckdb.DuckDBPyConnection) -> Iterator[Callable[[], float | None]]:
    """As `Engine.measured_progress`. Settings of the connection that this needs are restored at the end."""
    with ExitStack() as stack:
        with suppress(duckdb.Error):  # an open transaction has failed
            is_locked = _setting(connection, "lock_configuration")
            for name, value in () if is_locked else _SETTINGS.items():
                stack.callback(_restore, connection, name, _setting(connection, name))
                connection.execute(f"SET {name} = {value}")

        def share() -> float | None:
            with suppress(duckdb.Error):  # the connection is closed
                percentage = connection.query_progress()
                return min(percentage / 100, 1) if percentage >= 0 else None
            return None

        yield share


def _setting(connection: duckdb.DuckDBPyConnection, name: str) -> object:
    return connection.execute(f"SELECT current_setting('{name}')").fetchall()[0][0]


def _restore(connection: duckdb.DuckDBPyConnection, name: str, value: object) -> None:
    with suppress(duckdb.Error):
        connection.execute(f"SET {name} = {value}")

"""Engines: settings of a DuckDB database, which hold for a while and are then restored."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Protocol

from sparseeinsum.engines.byte_sizes import restorable_size
from sparseeinsum.engines.duckdb.recorded_changes import Rows
from sparseeinsum.errors import EngineError
from sparseeinsum.kernels.duckdb.library import single_threaded_products

# DuckDB's allocator returns free memory to the system in pieces of this size, by default 512 MiB. Under a low memory
# limit that is too much: a large allocation would fail although enough memory is free.
_FLUSHED_BYTES = 4_000_000
_FLUSHING = "allocator_bulk_deallocation_flush_threshold"


class Connection(Protocol):
    """A connection that runs statements."""

    def execute(self, statement: str) -> None:
        """Run a statement and ignore its rows."""


@dataclass(frozen=True, slots=True)
class DuckDBSettings:
    """The settings of a database.

    Attributes:
        rows: Runs a query and returns its rows.
        another_connection: Opens another connection to the database, which works even if the first one has failed.
    """

    rows: Rows
    another_connection: Callable[[], AbstractContextManager[Connection]]

    def read(self, name: str) -> str:
        """Return the value of a setting."""
        return self.read_all((name,))[0]

    def read_all(self, names: Sequence[str]) -> list[str]:
        """Return the values of settings."""
        selected = ", ".join([f"current_setting('{name}')" for name in names])
        (values,) = self.rows(f"SELECT {selected}")
        return list(map(str, values))

    @contextmanager
    def limited(self, limit_bytes: float, threads: int) -> Iterator[Callable[[float], None]]:
        """Limit memory and threads in the context; see `DuckDBEngine.memory_limited_to`."""
        threads = max(threads, int(self.read("external_threads")))  # DuckDB refuses a smaller number
        settings = {"memory_limit": f"{int(limit_bytes)}B", "threads": str(threads), _FLUSHING: f"{_FLUSHED_BYTES}B"}
        with self._changed(settings) as connection:

            def set_limit(size: float) -> None:
                connection.execute(f"SET memory_limit = '{int(size)}B'")

            yield set_limit

    @contextmanager
    def single_threaded(self) -> Iterator[None]:
        """Run the statements of the context in one thread; see `DuckDBEngine.single_threaded`."""
        external_threads = int(self.read("external_threads"))
        if external_threads > 1:
            raise EngineError(
                f"external_threads is {external_threads}, and no run in several threads is deterministic; set it to 1"
            )
        with self._changed({"threads": "1"}), single_threaded_products():
            yield

    @contextmanager
    def _changed(self, settings: Mapping[str, str]) -> Iterator[Connection]:
        """Change settings of the database in the context, and restore them at its end.

        Yields:
            The connection that changes them. It is another one, as this connection may have failed by the end.
        """
        before = {name: restorable_size(self.read(name)) for name in settings}
        with self.another_connection() as connection, ExitStack() as stack:
            for name, value in before.items():
                stack.callback(connection.execute, f"SET {name} = '{value}'")
            for name, value in settings.items():
                connection.execute(f"SET {name} = '{value}'")
            yield connection

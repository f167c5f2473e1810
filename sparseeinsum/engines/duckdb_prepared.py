"""Engines: rows that the client supplies to DuckDB, and prepared queries."""

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

import duckdb
import pyarrow as pa
from sqlglot import exp

ErrorTranslation = Callable[[str], AbstractContextManager[str]]  # of errors that a statement raises in the context

# One more copy of a result takes less time than what DuckDB proposes instead, which is to plan the query again.
warnings.filterwarnings("ignore", "Arrow output on a DB-API result", UserWarning, __name__.replace(".", r"\."))


class DuckDBSuppliedTable:
    """A view over an Arrow table that can be replaced: DuckDB asks for its rows whenever a query runs."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
        self._connection = connection
        self._rows = rows
        self.table = exp.table_(name)
        connection.register(name, self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as a stream, which the Arrow PyCapsule interface asks for."""
        return self._rows.__arrow_c_stream__(requested_schema)

    def supply(self, rows: pa.Table) -> None:
        """Let queries read these rows from now on, which have the same columns as those before."""
        self._rows = rows

    def fill(self) -> None:
        """Do nothing: all statements read the rows from the client."""

    def drop(self) -> None:
        """Remove the view from the connection."""
        with suppress(duckdb.Error):  # the connection may be closed
            self._connection.unregister(self.table.name)


class _PreparedStatement:
    """A prepared statement of a DuckDB connection; DuckDB plans it again after changes of the schema."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, translating_errors: ErrorTranslation, name: str, statement: str
    ) -> None:
        self._connection = connection
        self._translating_errors = translating_errors
        self._name = name
        self._statement = statement
        with translating_errors(statement):
            connection.execute(f"PREPARE {name} AS {statement}")

    def drop(self) -> None:
        """Remove the prepared statement from the connection."""
        with suppress(duckdb.Error):
            self._connection.execute(f"DEALLOCATE {self._name}")


class DuckDBPreparedQuery(_PreparedStatement):
    """A query that is prepared once, and returns an Arrow table whenever it runs."""

    reads_filled_tables = False

    def arrow(self) -> pa.Table:
        """Run the query and return its result as an Arrow table."""
        with self._translating_errors(self._statement):
            result = self._connection.execute(f"EXECUTE {self._name}")
            if any(str(sql_type).endswith("]") for _, sql_type, *_ in result.description):
                return result.to_arrow_table()
            return pa.table(result.fetchnumpy())  # for columns of numbers in two thirds of the time


class DuckDBPreparedWrite(_PreparedStatement):
    """A prepared INSERT, UPDATE or DELETE."""

    def run(self) -> int:
        """Run the statement; return how many rows it wrote."""
        with self._translating_errors(self._statement):
            row = self._connection.execute(f"EXECUTE {self._name}").fetchone()
        assert row is not None
        return int(row[0])

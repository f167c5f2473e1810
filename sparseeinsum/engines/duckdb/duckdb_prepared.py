"""Engines: rows that the client supplies to DuckDB, and prepared queries."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.engines.duckdb.collected_tuples import table_in_memory
from sparseeinsum.engines.duckdb.fetched_tables import fetched_table
from sparseeinsum.engines.duckdb.translated_errors import translated_errors
from sparseeinsum.engines.prepared import PreparedQuery
from sparseeinsum.engines.temporary_names import temporary_name
from sparseeinsum.kernels.duckdb.library import require_library

_ELEMENTS = {  # of arrays in results
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "BIGINT": pa.int64(),
    "INTEGER": pa.int32(),
    "BOOLEAN": pa.bool_(),
}

_NUMBERS = count()  # of the prepared statements of all engines: several may have one connection


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

    def __init__(self, connection: duckdb.DuckDBPyConnection, name: str, statement: str) -> None:
        self._connection = connection
        self._name = name
        self._statement = statement
        with translated_errors(statement):
            connection.execute(f"PREPARE {name} AS {statement}")

    def drop(self) -> None:
        """Remove the prepared statement from the connection."""
        with suppress(duckdb.Error):
            self._connection.execute(f"DEALLOCATE {self._name}")


class DuckDBPreparedQuery(_PreparedStatement):
    """A query that is prepared once, and returns an Arrow table whenever it runs."""

    reads_filled_tables = False
    takes_one_number = True  # unless a column has arrays of other elements, which no result has

    def arrow(self) -> pa.Table:
        """Run the query and return its result as an Arrow table.

        Arrays are converted here, since DuckDB begins more transactions to convert their types to those of Arrow.
        """
        with translated_errors(self._statement):
            result = self._connection.execute(f"EXECUTE {self._name}")
            types = {name: str(sql_type) for name, sql_type, *_ in result.description}
            elements = {name: _ELEMENTS.get(kind[:-2]) for name, kind in types.items() if kind.endswith("]")}
            if None in elements.values():
                return fetched_table(result)
            columns = result.fetchnumpy()
            arrays = {
                name: _lists(np.asarray(column), elements[name]) if name in elements else pa.array(column)
                for name, column in columns.items()
            }
            return pa.table(arrays)


def _lists(arrays: NDArray[np.generic], element: pa.DataType) -> pa.ListArray:
    """A column of arrays, which DuckDB has as an array of objects."""
    starts = np.concatenate([[0], np.cumsum([len(array) for array in arrays])]).astype(np.int32)
    elements = arrays[0] if len(arrays) == 1 else np.concatenate([*arrays, np.empty(0, element.to_pandas_dtype())])
    return pa.ListArray.from_arrays(starts, pa.array(elements, element))


class DuckDBAdaptingQuery:
    """A query that is prepared for a small result, and planned whenever it runs once a result was large."""

    reads_filled_tables = False

    def __init__(self, prepared: DuckDBPreparedQuery, most_rows: int, planned: Callable[[int], PreparedQuery]) -> None:
        """Start with the prepared query.

        Args:
            prepared: The query.
            most_rows: How many rows a small result has at most.
            planned: Returns the query for so many rows.
        """
        self._query: PreparedQuery = prepared
        self._most_rows = most_rows
        self._planned = planned

    @property
    def takes_one_number(self) -> bool:
        """As for `PreparedQuery`."""
        return self._query.takes_one_number

    def arrow(self) -> pa.Table:
        """Run the query and return its result as an Arrow table."""
        rows = self._query.arrow()
        if rows.num_rows > self._most_rows and isinstance(self._query, DuckDBPreparedQuery):
            self._query.drop()
            self._query = self._planned(rows.num_rows)
        return rows

    def drop(self) -> None:
        """Remove the prepared statement from the connection."""
        self._query.drop()


class DuckDBCollectedQuery(_PreparedStatement):
    """A query that is prepared once, and leaves its tuples in memory whenever it runs."""

    reads_filled_tables = False
    takes_one_number = True

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        name: str,
        statement: str,
        schema: Schema,
    ) -> None:
        super().__init__(connection, name, statement)
        self._schema = schema

    def arrow(self) -> pa.Table:
        """Run the query and return its result as an Arrow table."""
        with translated_errors(self._statement):
            ((handle,),) = self._connection.execute(f"EXECUTE {self._name}").fetchall()
        return table_in_memory(require_library(), handle, self._schema)


class _PreparedRows(_PreparedStatement):
    """A prepared query of a few rows."""

    def rows(self) -> Sequence[tuple[object, ...]]:
        """Run the query and return all its rows."""
        with translated_errors(self._statement):
            return self._connection.execute(f"EXECUTE {self._name}").fetchall()


class RepeatedQueries:
    """Queries that nearly every run repeats: each is prepared when it runs again.

    DuckDB takes longer to bind its table functions, such as duckdb_tables(), than to call them.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Start without a prepared query.

        Args:
            connection: The connection on which queries run; others may prepare queries on it, too.
        """
        self._connection = connection
        self._prepared: dict[str, _PreparedRows | None] = {}  # by query; None of one that ran once

    def rows(self, query: str) -> Sequence[tuple[object, ...]]:
        """Run a query and return all its rows."""
        if query not in self._prepared:
            self._prepared[query] = None
            with translated_errors(query):
                return self._connection.execute(query).fetchall()
        prepared = self._prepared[query]
        if prepared is None:
            name = temporary_name(f"repeated_{next(_NUMBERS)}")
            prepared = _PreparedRows(self._connection, name, query)
        # Only one that has run is kept: somebody may have removed it, so that it fails.
        self._prepared[query] = None
        rows = prepared.rows()
        self._prepared[query] = prepared
        return rows


class DuckDBPreparedWrite(_PreparedStatement):
    """A prepared INSERT, UPDATE or DELETE."""

    def run(self) -> int:
        """Run the statement; return how many rows it wrote."""
        with translated_errors(self._statement):
            row = self._connection.execute(f"EXECUTE {self._name}").fetchone()
        assert row is not None
        return int(row[0])

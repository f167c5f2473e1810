"""Engines: Arrow tables of small results of DuckDB, for which it binds a query once.

Before its threads convert rows to Arrow together, DuckDB binds a query twice. Rows of other queries are copied once
more, which takes less time for some hundred thousand of them.
"""

import warnings

import duckdb
import pyarrow as pa

MOST_FETCHED = 200_000  # rows of the largest result for which this takes less time

warnings.filterwarnings("ignore", "Arrow output on a DB-API result", UserWarning, __name__.replace(".", r"\."))


def fetched_table(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """The rows of the query that a connection has just run."""
    return connection.to_arrow_table()

"""Workloads as plain SQL in DuckDB, whose results are Arrow tables."""

from contextlib import ExitStack
from typing import Any

import duckdb

from bench.peers.libraries import Library, Run
from bench.peers.results import of_table
from bench.peers.tables import MEMORY, limited, query_of, rows
from bench.peers.workloads import Workload


def library(threads: int) -> Library:
    """The database with so many threads."""

    def prepare(workload: Workload, stack: ExitStack) -> Run:
        query = query_of(workload)
        connection = stack.enter_context(duckdb.connect())
        connection.execute(f"SET threads = {threads}; SET memory_limit = '{MEMORY}'")
        for name, data in workload.inputs.items():
            connection.register("loaded", rows(data))
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM loaded")
            connection.unregister("loaded")
        return limited(lambda: connection.sql(query).to_arrow_table(), connection.interrupt)

    def plain(result: Any, workload: Workload) -> object:  # noqa: ANN401  # an Arrow table
        return of_table(result, workload.shape)

    return Library("DuckDB", prepare, plain)

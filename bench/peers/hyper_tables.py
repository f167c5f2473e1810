"""Workloads as plain SQL in Hyper; results stay in its tables: its interface has rows of Python objects alone."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq
from tableauhyperapi import Connection, CreateMode, HyperProcess, Telemetry, escape_string_literal

from bench.peers.libraries import Library, Run
from bench.peers.results import of_table
from bench.peers.tables import MEMORY, limited, query_of, rows
from bench.peers.workloads import Workload

PARAMETERS = {"log_config": "", "memory_limit": MEMORY.lower().rstrip("b")}


@dataclass(frozen=True)
class Result:
    """A temporary table of a connection, and a folder for what is read of it."""

    connection: Connection
    folder: Path


def library(threads: int) -> Library:
    """The database with so many threads."""

    def prepare(workload: Workload, stack: ExitStack) -> Run:
        text = query_of(workload)
        folder = Path(stack.enter_context(TemporaryDirectory()))
        parameters = PARAMETERS | {"hard_concurrent_query_thread_limit": str(threads)}
        process = HyperProcess(Telemetry.DO_NOT_SEND_USAGE_DATA_TO_TABLEAU, parameters=parameters)
        address = stack.enter_context(process).endpoint
        connection = stack.enter_context(Connection(address, folder / "peers.hyper", CreateMode.CREATE_AND_REPLACE))
        for name, data in workload.inputs.items():
            path = folder / f"{name}.parquet"
            pq.write_table(rows(data), path)
            source = escape_string_literal(str(path))
            connection.execute_command(f"CREATE TABLE {name} AS SELECT * FROM external({source})")
            path.unlink()

        def query() -> Result:
            connection.execute_command("DROP TABLE IF EXISTS result")
            connection.execute_command(f"CREATE TEMPORARY TABLE result AS {text}")
            return Result(connection, folder)

        return limited(query, connection.cancel)

    return Library("Hyper", prepare, _plain)


def _plain(result: object, workload: Workload) -> object:
    assert isinstance(result, Result)
    path = result.folder / "result.parquet"
    target = escape_string_literal(str(path))
    result.connection.execute_command(f"COPY (SELECT * FROM result) TO {target} WITH (FORMAT => 'parquet')")
    return of_table(pq.read_table(path), workload.shape)

"""Tensors as tables of databases: a row for every entry, and for every element of a dense tensor."""

from collections.abc import Callable
from functools import partial
from threading import Event, Timer
from typing import Any

import numpy as np
import pyarrow as pa

from bench.peers.libraries import Run, UnavailableError
from bench.peers.workloads import Data, Workload

LIMIT_SECONDS = 60.0  # for a query; GCN on a large graph would take minutes
MEMORY = "6GB"


def query_of(workload: Workload) -> str:
    """The workload as a query; raises UnavailableError if it has none."""
    if workload.sql is None:
        raise UnavailableError("-")
    return workload.sql


def rows(data: Data) -> pa.Table:
    """A tensor as a table with the columns i0, i1, ... and val."""
    tensor: Any = data
    if isinstance(data, np.ndarray):
        coordinates = [axis.astype(np.int32).ravel() for axis in np.indices(data.shape, np.int32)]
        return _table(coordinates, data.ravel())
    return _table([axis.astype(np.int32) for axis in tensor.coords], tensor.data)


def _table(coordinates: list[Any], values: Any) -> pa.Table:  # noqa: ANN401
    columns = {f"i{axis}": pa.array(column) for axis, column in enumerate(coordinates)}
    return pa.table(columns | {"val": pa.array(values)})


def limited(query: Callable[[], object], cancel: Callable[[], object]) -> Run:
    """A query that is cancelled, and unavailable, if it takes too long."""
    return partial(_run_limited, query, cancel)


def _run_limited(query: Callable[[], object], cancel: Callable[[], object]) -> object:
    is_late = Event()

    def end() -> None:
        is_late.set()
        cancel()

    timer = Timer(LIMIT_SECONDS, end)
    timer.start()
    try:
        return query()
    except Exception as error:
        if is_late.is_set():
            raise UnavailableError(f"> {LIMIT_SECONDS:.0f}") from error
        if any(words in str(error) for words in ("memory limit", "Out of Memory")):
            raise UnavailableError(f"> {MEMORY}") from error
        raise
    finally:
        timer.cancel()

"""Functions of dense numbers, and the workloads of bench.peers, in float32 beside float64, on DuckDB or PostgreSQL.

    python -m bench.float32 --size full --only functions SpMM 'dense attention'
    python -m bench.float32 --url postgresql://user@host/database

Compute only: tensors are loaded and programs planned before. A run ends with an array of numpy or an Arrow table; the
arrays of both dtypes are compared. The ratio is to float64.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

import sparseeinsum as se
from bench.datasets import add_data_folder
from bench.engine_ratios import plan
from bench.list_layouts import run
from bench.peers.workloads import Data, Workload, makers
from bench.timing import CONSOLE, Figure, race, report

_DTYPES = ("float64", "float32")
_ROWS = {"tiny": 10, "small": 1_000, "full": 10_000}
_COLUMNS = 1_000
_FUNCTIONS = {
    **{name: f"Y[i, j] = {name}(X[i, j])" for name in ("exp", "log", "tanh", "erf", "sin")},
    "nine functions": "Y[i, j] = tanh(exp(-abs(X[i, j])) * X[i, j] + sqrt(abs(X[i, j]) + 1) * sin(X[i, j])"
    " - cos(X[i, j]) * log(abs(X[i, j]) + 2)) / (1 + X[i, j] * X[i, j])",
}


def functions(size: str) -> Iterator[Callable[[], Workload]]:
    """Functions that make workloads of functions of dense matrices."""
    shape = (_ROWS[size], _COLUMNS)
    matrix = np.random.default_rng(0).uniform(0.1, 2, shape)
    for name, program in _FUNCTIONS.items():
        text = f"{name} of {matrix.size:,} numbers"
        yield partial(Workload, "functions", text, program, None, {"X": matrix}, shape, "dense")


def in_dtype(workload: Workload, dtype: str) -> Workload:
    """The workload with its floating-point inputs in a dtype."""
    inputs = {
        name: cast("Data", data.astype(dtype)) if data.dtype == np.float64 else data
        for name, data in workload.inputs.items()
    }
    return replace(workload, inputs=inputs)


def measure(workload: Workload, url: str | None, repeat: int) -> list[Figure]:
    """Medians of both dtypes in turns."""
    with se.connect(url) as database:
        runs = {
            dtype: partial(run, database, workload, plan(database, in_dtype(workload, dtype), dtype))
            for dtype in _DTYPES
        }
        if workload.form == "dense":
            wide, narrow = (cast("NDArray[np.floating]", compute()) for compute in runs.values())
            np.testing.assert_allclose(narrow, wide, rtol=1e-3, atol=1e-4 * np.abs(wide).max())
        return race(workload.name, runs, dict.fromkeys(_DTYPES, repeat), _DTYPES[0], 0)


def main() -> None:
    """Print medians and ratios, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_folder(parser)
    parser.add_argument("--url", help="PostgreSQL database that has the extension; DuckDB in memory without it")
    parser.add_argument("--size", choices=_ROWS, default="small", help="of the workloads")
    parser.add_argument("--only", nargs="*", metavar="KIND", help="kinds of workloads, as in SpMM; by default all")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each; the median counts")
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder of the figures, as JSON")
    chosen = parser.parse_args()
    figures: list[Figure] = []
    for make in (*functions(chosen.size), *makers(chosen.size, chosen.data)):
        workload = make()
        if not chosen.only or workload.kind in chosen.only:
            CONSOLE.print(workload.name)
            figures += measure(workload, chosen.url, chosen.repeat)
    report("float32 beside float64", figures, _DTYPES[0], chosen.output / "float32.json")


if __name__ == "__main__":
    main()

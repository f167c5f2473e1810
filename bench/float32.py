"""Runs in float32 beside the same runs in float64, on DuckDB or PostgreSQL.

    python -m bench.float32 [--url postgresql://...] [--repeat 7]

Plans return numpy arrays. The ratio is to float64.
"""

import argparse
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import sparseeinsum as se
from bench.timing import Figure, race, report

_DTYPES = ("float64", "float32")
_ATTENTION = """
P[h, q, t] = softmax[t](sum(Q[h, q, d] * K[h, t, d]) / 8)
Y[h, q, d] = sum(P[h, q, t] * V[h, t, d])
"""
_FUNCTIONS = (
    "Y[i, j] = tanh(exp(-abs(X[i, j])) * X[i, j] + sqrt(abs(X[i, j]) + 1) * sin(X[i, j])"
    " - cos(X[i, j]) * log(abs(X[i, j]) + 2)) / (1 + X[i, j] * X[i, j])"
)

Data = Mapping[str, Any]


def workloads() -> Iterator[tuple[str, str, Data]]:
    """Names, programs and their data, of normal numbers in float64."""
    rng = np.random.default_rng(0)

    def dense(*shape: int) -> NDArray[np.float64]:
        return rng.standard_normal(shape)

    matrix = dense(10_000, 1_000)
    for function in ("exp", "tanh", "erf", "sin"):
        yield f"{function} of 10,000,000 numbers", f"Y[i, j] = {function}(X[i, j])", {"X": matrix}
    yield "twelve functions of 10,000,000 numbers", _FUNCTIONS, {"X": matrix}
    yield "dense 2,000³", "Y[i, k] = sum(A[i, j] * B[j, k])", {"A": dense(2000, 2000), "B": dense(2000, 2000)}
    batches = {"A": dense(64, 256, 256), "B": dense(64, 256, 256)}
    yield "dense 64 x 256³", "Y[b, i, k] = sum(A[b, i, j] * B[b, j, k])", batches
    yield "dense attention, 4 heads", _ATTENTION, {name: dense(4, 1024, 64) for name in "QKV"}
    sparse = sp.random_array((13_752, 13_752), density=500_000 / 13_752**2, format="csr", rng=rng)
    yield "SpMM, 500,000 entries, 767 wide", "Y[i, k] = sum(S[i, j] * X[j, k])", {"S": sparse, "X": dense(13_752, 767)}


def runner(database: se.Database, text: str, data: Data, dtype: str) -> Callable[[], object]:
    """A run in a dtype, which returns a numpy array; its tensors have the names of `data` and the dtype."""
    for name, values in data.items():
        database.tensor(f"{name}_{dtype}", values.astype(dtype))
        text = re.sub(rf"\b{name}\[", f"{name}_{dtype}[", text)
    plan = database.plan(text, layout="any")
    return lambda: database.run(plan, replan=False, progress=False)["Y"].to_numpy(copy=False)


def measure(url: str | None, repeat: int) -> list[Figure]:
    """Medians of both dtypes in turns."""
    figures = []
    for name, text, data in workloads():
        with se.connect(url) as database:
            runs = {dtype: runner(database, text, data, dtype) for dtype in _DTYPES}
            figures += race(name, runs, dict.fromkeys(_DTYPES, repeat), "float64")
    return figures


def main() -> None:
    """Print medians and ratios, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="a PostgreSQL database; DuckDB in memory without it")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder of the figures, as JSON")
    chosen = parser.parse_args()
    title = "float32 beside float64"
    report(title, measure(chosen.url, chosen.repeat), "float64", chosen.output / "float32.json")


if __name__ == "__main__":
    main()

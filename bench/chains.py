"""Ten elementwise functions of two matrices of 10 million numbers, beside numexpr, numba and numpy.

    python -m bench.chains [--rows 10000] [--columns 1000] [--repeat 5]

The contenders return the matrix, or the sum of its numbers, which leaves out what a database takes to return it. Ten
statements compute one function each; one statement computes all of them. numexpr runs where it is installed. Processor
time is that of all threads.
"""

import argparse
import importlib
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from rich.table import Table

import sparseeinsum as se
from bench.timing import CONSOLE, Figure, write

_TEN = """
T1[i, j] = X[i, j] * 2 + 1
T2[i, j] = sqrt(T1[i, j])
T3[i, j] = T2[i, j] - B[i, j]
T4[i, j] = T3[i, j] ^ 2
T5[i, j] = T4[i, j] + 0.5
T6[i, j] = log(T5[i, j])
T7[i, j] = T6[i, j] * B[i, j]
T8[i, j] = T7[i, j] - X[i, j]
T9[i, j] = T8[i, j] / 3
Y[i, j] = exp(T9[i, j])
"""
_ONE = "Y[i, j] = exp((log((sqrt(X[i, j] * 2 + 1) - B[i, j]) ^ 2 + 0.5) * B[i, j] - X[i, j]) / 3)"
_SUM = "total[] = sum(Y[i, j])"
_NUMEXPR = "exp((log((sqrt(X * 2 + 1) - B) ** 2 + 0.5) * B - X) / 3)"

Matrix = NDArray[np.float64]


def by_numpy(x: Matrix, b: Matrix) -> Matrix:
    """All functions, one pass for each."""
    return np.asarray(np.exp((np.log((np.sqrt(x * 2 + 1) - b) ** 2 + 0.5) * b - x) / 3))


@numba.njit(parallel=True)  # type: ignore[untyped-decorator]
def by_numba(x: Matrix, b: Matrix) -> Matrix:
    """All functions, in one loop on all threads."""
    out = np.empty_like(x)
    for i in numba.prange(x.shape[0]):
        for j in range(x.shape[1]):
            inner = np.sqrt(x[i, j] * 2 + 1) - b[i, j]
            out[i, j] = np.exp((np.log(inner * inner + 0.5) * b[i, j] - x[i, j]) / 3)
    return out


def contenders(rows: int, columns: int) -> dict[str, Callable[[], Any]]:
    """Functions that return the matrix, or the sum of its numbers."""
    rng = np.random.default_rng(0)
    x, b = rng.uniform(0.1, 2, (rows, columns)), rng.uniform(0.1, 2, (rows, columns))
    database = se.connect()
    database.tensor("X", x)
    database.tensor("B", b)

    def run(text: str, output: str) -> Any:  # noqa: ANN401
        return database.run(plans[text, output], progress=False)[output].to_numpy(copy=False)

    plans = {(text, "Y"): database.plan(text, layout="any") for text in (_TEN, _ONE)}
    plans |= {(text, "total"): database.plan(f"{text}\n{_SUM}", outputs=["total"]) for text in (_TEN, _ONE)}
    expected = by_numpy(x, b)
    for text, output in plans:
        result = run(text, output)
        np.testing.assert_allclose(result, expected if output == "Y" else expected.sum(), rtol=1e-9)
    matrices: dict[str, Callable[[], Any]] = {"numpy": partial(by_numpy, x, b), "numba": partial(by_numba, x, b)}
    try:
        numexpr = importlib.import_module("numexpr")
    except ModuleNotFoundError:
        CONSOLE.print("numexpr is not installed")
    else:
        matrices["numexpr"] = partial(numexpr.evaluate, _NUMEXPR, {"X": x, "B": b})
    sums = {f"{name}, sum": lambda compute=compute: compute().sum() for name, compute in matrices.items()}
    own = {
        f"{name}{', sum' if output == 'total' else ''}": partial(run, text, output)
        for output in ("Y", "total")
        for name, text in (("ten statements", _TEN), ("one statement", _ONE))
    }
    return {**matrices, **sums, **own}


def measure(rows: int, columns: int, repeat: int) -> list[Figure]:
    """Medians of processor time, in turns; a table has the time on the clock, too."""
    functions = contenders(rows, columns)
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in functions}
    for turn in range(repeat + 1):
        for name, function in functions.items():
            clock, processor = time.perf_counter(), time.process_time()
            function()
            if turn:  # the first one warms up
                runs[name].append((time.process_time() - processor, time.perf_counter() - clock))
    table = Table("", "processor, s", "clock, s", "times numba", title=f"{rows} x {columns} numbers")
    figures = []
    for name, taken in runs.items():
        seconds, on_clock = (statistics.median(times) for times in zip(*taken, strict=True))
        base = "numba, sum" if name.endswith("sum") else "numba"
        ratio = seconds / statistics.median(processor for processor, _ in runs[base])
        figures.append(Figure(f"{rows} x {columns}", name, seconds, tuple(first for first, _ in taken), ratio))
        table.add_row(name, f"{seconds:.3f}", f"{on_clock:.3f}", f"{ratio:.2f}")
    CONSOLE.print(table)
    return figures


def main() -> None:
    """Print medians and ratios, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=1_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder of the figures, as JSON")
    chosen = parser.parse_args()
    write(measure(chosen.rows, chosen.columns, chosen.repeat), chosen.output / "chains.json")


if __name__ == "__main__":
    main()

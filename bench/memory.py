"""Peak memory of runs under memory limits: the peak of a process less its memory at rest.

    python -m bench.memory --limits none 300MB 150MB 100MB 64MB

Every run has a process of its own, which loads the tensors, plans, and returns free memory to the system before it
runs. The kernel counts the largest resident size from there on (VmHWM), so no peak is missed.
"""

import argparse
import ctypes
import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from rich.table import Table

import sparseeinsum as se
from bench.timing import CONSOLE
from sparseeinsum.api.examples import citation_graph, gcn_inputs
from sparseeinsum.api.graphs import GCN
from sparseeinsum.engines.byte_sizes import parse_bytes

Data = NDArray[np.float64] | sp.csr_array
UNLIMITED = "none"


@dataclass(frozen=True)
class Case:
    """A program, its data, whether results come as they are cheapest or as entries, and tables that they go into."""

    text: str
    inputs: Callable[[], Mapping[str, Data]]
    layout: str = "any"
    into: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """What one run took.

    Attributes:
        case: What ran.
        limit: The memory limit as it was given, or `none`.
        planning_bytes: Resident size at the peak of planning less that at rest.
        peak_bytes: The same of the run; None where there was no plan or the run failed.
        planning_seconds: To plan.
        seconds: Of the run.
        notation: The plan, or why there is none.
    """

    case: str
    limit: str
    planning_bytes: int | None
    peak_bytes: int | None
    planning_seconds: float
    seconds: float
    notation: tuple[str, ...]


def _dense(*shapes: tuple[int, int]) -> Mapping[str, Data]:
    rng = np.random.default_rng(0)
    return {name: rng.random(shape) for name, shape in zip("ABCDE", shapes, strict=False)}


def _sparse(size: int, degree: int) -> Mapping[str, Data]:
    rng = np.random.default_rng(0)
    return {name: sp.csr_array(sp.random_array((size, size), density=degree / size, rng=rng)) for name in "AB"}


def _gcn() -> Mapping[str, Data]:
    return gcn_inputs(citation_graph(50_000, 500_000, 500, 1_000_000))


CASES = {
    "elementwise, 3000": Case(
        "Y[i, j] = exp(D[i, j]) * 2 + abs(D[i, j])", lambda: {"D": _dense((3000, 3000))["A"]}, into={"Y": "mapped"}
    ),
    "sparse times dense": Case(
        "Y[i, f] = sum(A[i, j] * X[j, f])",
        lambda: {"A": _sparse(50_000, 5)["A"], "X": _dense((50_000, 50))["A"]},
        into={"Y": "product"},
    ),
    "dense product, 3000": Case(
        "C[i, k] = sum(A[i, j] * B[j, k])", lambda: _dense((3000, 3000), (3000, 3000)), into={"C": "product"}
    ),
    "dense product, entries": Case(
        "C[i, k] = sum(A[i, j] * B[j, k])",
        lambda: _dense((2000, 2000), (2000, 2000)),
        layout="entries",
        into={"C": "product"},
    ),
    "sparse product": Case("C[i, k] = sum(A[i, j] * B[j, k])", lambda: _sparse(100_000, 10), into={"C": "product"}),
    "gcn, 50,000 nodes": Case(GCN, _gcn),
    "softmax": Case(
        "P[s, t] = softmax[t](sum(A[s, d] * B[t, d]))\nO[s, d] = sum(P[s, t] * C[t, d])",
        lambda: _dense(*[(4000, 64)] * 3),
    ),
    "chain": Case(
        "T[i, k] = exp(sum(A[i, j] * B[j, k]) / 100)\ny[i] = sum(T[i, k] * C[k, l])",
        lambda: _dense((5000, 50), (50, 5000), (5000, 1)),
    ),
}


def resident_bytes(field: str) -> int:
    """A size of this process from the kernel: VmRSS, now, or VmHWM, the most since it was reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        name, *rest = line.split()
        if name == f"{field}:":
            return int(rest[0]) * 1024
    raise OSError(f"/proc/self/status has no {field}; this benchmark needs Linux")


def come_to_rest() -> None:
    """Return free memory to the system, and count the largest resident size from here on."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def _rest_of(database: se.Database) -> int:
    """Let DuckDB, too, return what it keeps free; the resident size then."""
    ((limit,),) = database.connection.execute("SELECT current_setting('memory_limit')").fetchall()
    database.connection.execute(f"SET memory_limit = '{limit}'")
    come_to_rest()
    return resident_bytes("VmRSS")


def measure(name: str, limit: str) -> Figure:
    """Plan and run one case in this process."""
    case = CASES[name]
    with se.connect() as database:
        for tensor, data in case.inputs().items():
            database.tensor(tensor, data)
        database.plan(case.text, layout=case.layout)  # the first plan of a process loads rules of rewriting, which stay
        memory_limit = None if limit == UNLIMITED else limit
        before, start = _rest_of(database), time.perf_counter()
        try:
            plan = database.plan(case.text, layout=case.layout, memory_limit=memory_limit)
        except se.SparseEinsumError as error:
            return Figure(name, limit, None, None, 0.0, 0.0, (str(error),))
        planning_bytes, planning_seconds = resident_bytes("VmHWM") - before, time.perf_counter() - start
        before, start = _rest_of(database), time.perf_counter()
        try:
            database.run(plan, into=case.into, progress=False)
        except se.SparseEinsumError as error:
            return Figure(name, limit, planning_bytes, None, planning_seconds, 0.0, (*plan.notation(), str(error)))
        peak_bytes, seconds = resident_bytes("VmHWM") - before, time.perf_counter() - start
        return Figure(name, limit, planning_bytes, peak_bytes, planning_seconds, seconds, tuple(plan.notation()))


def measure_apart(name: str, limit: str) -> Figure:
    """Run one case in a process of its own."""
    command = [sys.executable, "-m", "bench.memory", "--only", name, limit]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figure = json.loads(done.stdout.splitlines()[-1])  # DuckDB may draw a bar before
    return Figure(**{**figure, "notation": tuple(figure["notation"])})


def report(figures: list[Figure], path: Path) -> None:
    """Print a table and keep the figures."""
    table = Table(title="Peak memory less that at rest", title_justify="left")
    table.add_column("case")
    for heading in ("limit", "peak MB", "of limit", "planning MB", "seconds", "times as long", "to plan"):
        table.add_column(heading, justify="right")
    table.add_column("plan", overflow="fold")
    unlimited = {figure.case: figure for figure in figures if figure.limit == UNLIMITED}
    for figure in figures:
        peak, without = figure.peak_bytes, unlimited.get(figure.case)
        limit = None if figure.limit == UNLIMITED else parse_bytes(figure.limit)
        table.add_row(
            figure.case,
            figure.limit,
            "-" if peak is None else f"{peak / 1e6:.0f}",
            "-" if peak is None or limit is None else f"{peak / limit:.2f}",
            "-" if figure.planning_bytes is None else f"{figure.planning_bytes / 1e6:.0f}",
            "-" if peak is None else f"{figure.seconds:.2f}",
            "-" if peak is None or without is None else f"{figure.seconds / without.seconds:.1f}",
            f"{figure.planning_seconds:.2f}",
            "\n".join(figure.notation),
        )
    CONSOLE.print(table, markup=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(figure) for figure in figures], indent=2) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES), help="which to run")
    parser.add_argument(
        "--limits", nargs="+", default=[UNLIMITED, "300MB", "150MB", "100MB", "64MB"], help="memory limits"
    )
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder for the figures as JSON")
    parser.add_argument("--only", nargs=2, metavar=("CASE", "LIMIT"), help="run one case here, and print its figures")
    asked = parser.parse_args()
    if asked.only:
        sys.stdout.write(json.dumps(asdict(measure(*asked.only))) + "\n")
    else:
        figures = [measure_apart(name, limit) for name in asked.cases for limit in asked.limits]
        report(figures, asked.output / "memory.json")

"""Errors of estimated sizes, the time that estimates take, and the plans that they lead to, by estimator.

    python -m bench.estimates

The error of an estimate is max(estimate / actual, actual / estimate), for the entries of every result of a program
and for its tuples with any of its axes promoted. Milliseconds are those of the estimator (with what it measures of
the inputs), of all other planning, and of the plan that is chosen.
"""

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from rich.table import Table

import sparseeinsum as se
from bench.timing import CONSOLE
from sparseeinsum.api.examples import (
    ExampleMatrix,
    attention_inputs,
    attention_program,
    citation_graph,
    gcn_inputs,
    load,
)
from sparseeinsum.api.graphs import GCN
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.estimators import ESTIMATORS, make_estimator
from sparseeinsum.statistics.measured_tensors import statistics_of, stored_of

POWERS = """
    B[i, k] = sum(A[i, j] * A[j, k])
    C[i, l] = sum(B[i, k] * A[k, l])
"""
TRIANGLES = """
    B[i, k] = sum(A[i, j] * A[j, k])
    M[i, k] = B[i, k] * A[i, k]
    U[i, k] = B[i, k] + A[i, k]
    D[i]    = sum(M[i, k])
"""
CHAIN = """
    X[i, k] = sum(A[i, j] * B[j, k])
    Y[i, l] = sum(X[i, k] * C[k, l])
    Z[i, m] = sum(Y[i, l] * D[l, m])
"""
CUBE = """
    X[i, k, l] = A[i, k] * R[k, l]
    Y[i, l]    = sum(X[i, k, l] * T[i, k, l])
"""


@dataclass(frozen=True)
class Accuracy:
    """What an estimator made of a program.

    Attributes:
        case: The program and its data.
        estimator: By name.
        errors: Of the entries of every result.
        errors_by_axes: Of the tuples of every result for every set of promoted axes.
        seconds: Median of several runs, counting what the estimator measures of the inputs.
        planning: Seconds of the rest of planning.
        run: Seconds of the plan that the estimates lead to.
    """

    case: str
    estimator: str
    errors: tuple[float, ...]
    errors_by_axes: tuple[float, ...]
    seconds: float
    planning: float
    run: float


def cases() -> dict[str, tuple[str, Mapping[str, ExampleMatrix]]]:
    """Programs and inputs by name."""
    graph = citation_graph(1000, 5000, 500, 20000, seed=1)
    skewed = citation_graph(2000, 12000, seed=2, entries=100, features=10).adjacency
    rng = np.random.default_rng(3)
    blocks = np.kron(rng.random((40, 40)) < 0.05, np.ones((16, 16)))
    diagonal = np.kron(np.eye(40), np.ones((16, 16))) * (rng.random((640, 640)) < 0.5)
    return {
        "GCN": (GCN, gcn_inputs(graph, hidden=16, classes=4)),
        "sparse attention": (attention_program(16), attention_inputs(graph, 16)),
        "power law: square, cube": (POWERS, {"A": skewed}),
        "power law: triangles": (TRIANGLES, {"A": skewed}),
        "blocks: square, cube": (POWERS, {"A": sp.csr_array(blocks)}),
        "diagonal blocks": (POWERS, {"A": sp.csr_array(diagonal)}),
        "chain, hypersparse": (CHAIN, _chain(1000, (0.0006, 0.001, 0.002, 0.003))),
        "chain, growing dense": (CHAIN, _chain(500, (0.01, 0.02, 0.005, 0.01))),
        "three axes": (CUBE, _three_axes()),
    }


def _chain(size: int, densities: tuple[float, ...]) -> dict[str, ExampleMatrix]:
    rng = np.random.default_rng(4)
    shares = zip("ABCD", densities, strict=True)
    return {name: sp.csr_array(sp.random_array((size, size), density=share, rng=rng)) for name, share in shares}


def _three_axes() -> dict[str, ExampleMatrix]:
    """Two matrices whose entries crowd at few rows, and a tensor whose crowd at few of its first two indices."""
    rng = np.random.default_rng(5)
    rows: NDArray[np.float64] = np.power(np.arange(1.0, 121.0), -0.9, dtype=np.float64)[:, None]

    def drawn(chances: NDArray[np.floating]) -> NDArray[np.float64]:
        return (rng.random((120,) * chances.ndim) < chances).astype(np.float64)

    pairs = 0.3 * rows[:, :, None] * rows[None]
    return {"A": sp.csr_array(drawn(0.9 * rows)), "R": sp.csr_array(drawn(0.5 * rows)), "T": drawn(pairs)}


def run(case: str, text: str, inputs: Mapping[str, ExampleMatrix], repeat: int) -> list[Accuracy]:
    """Estimate a program's results in every way, and count them."""
    database = load(se.connect(), inputs, promoted=["dim_0"])
    program = se.program(text)
    names = [einsum.output.tensor for einsum in program.einsums]
    plan = database.plan(program, outputs=names)
    results = database.run(plan, progress=False)
    actual = {name: _sizes(results[name], plan.data.decomposed.graph.tensors[name].fill) for name in names}
    known = statistics_of(plan.data.inputs)
    planning = _seconds(lambda: database.plan(program, outputs=names, estimator="uniform"), repeat)
    accuracies = []
    for name in ESTIMATORS:

        def estimate(name: str = name) -> dict[str, Statistics]:
            estimator = make_estimator(name, stored_of(plan.data.inputs), known, database._engine)
            return estimator(plan.data.decomposed.graph, known, plan.data.evaluations)

        estimated = estimate()
        errors = {
            (tensor, tiles): error(estimated[tensor].tuples(tiles), count)
            for tensor, sizes in actual.items()
            for tiles, count in sizes.items()
        }
        entries = tuple(ratio for (_, tiles), ratio in errors.items() if all(tiles))
        chosen = database.plan(program, estimator=name)
        database.run(chosen, progress=False, replan=False)
        running = _seconds(partial(database.run, chosen, progress=False, replan=False), repeat)
        seconds = _seconds(estimate, repeat)
        accuracies.append(Accuracy(case, name, entries, tuple(errors.values()), seconds, planning, running))
    return accuracies


def error(estimate: float, actual: float) -> float:
    """How many times too many, or too few; of nothing, how many there should be none of."""
    estimate, actual = max(estimate, 1.0), max(actual, 1.0)
    return max(estimate / actual, actual / estimate)


def _sizes(result: se.TensorResult, fill: object) -> dict[tuple[int, ...], int]:
    """Tuples of a result for every set of promoted axes, counted."""
    *keys, value = result.arrow().columns
    is_entry = value.to_numpy() != fill
    indices = np.array([key.to_numpy()[is_entry] for key in keys]).reshape(len(keys), -1)
    return {
        tiles: len(np.unique(indices[np.array(tiles, dtype=bool)], axis=1).T)
        for tiles in itertools.product((0, 1), repeat=len(keys))
        if any(tiles) or not keys
    }


def _seconds(call: Callable[[], object], repeat: int) -> float:
    taken = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def report(figures: list[Accuracy], path: Path) -> None:
    """Print a table and keep the figures."""
    table = Table(title="Estimates of results", title_justify="left")
    table.add_column("program")
    table.add_column("estimator")
    for heading in ("median error", "worst", "worst of any axes", "ms", "other planning", "run"):
        table.add_column(heading, justify="right")
    for figure in [*figures, *_overall(figures)]:
        table.add_row(
            figure.case,
            figure.estimator,
            f"{statistics.median(figure.errors):.2f}",
            f"{max(figure.errors):.2f}",
            f"{max(figure.errors_by_axes):.2f}",
            f"{figure.seconds * 1e3:.1f}",
            f"{figure.planning * 1e3:.0f}",
            f"{figure.run * 1e3:.0f}",
            end_section=figure.estimator == ESTIMATORS[-1],
        )
    CONSOLE.print(table)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(figure) for figure in figures], indent=2) + "\n")


def _overall(figures: list[Accuracy]) -> list[Accuracy]:
    """All programs together: errors of all results, and mean seconds."""
    overall = []
    for name in ESTIMATORS:
        own = [figure for figure in figures if figure.estimator == name]
        errors = tuple(ratio for figure in own for ratio in figure.errors)
        by_axes = tuple(ratio for figure in own for ratio in figure.errors_by_axes)
        seconds = statistics.mean(figure.seconds for figure in own)
        planning = statistics.mean(figure.planning for figure in own)
        running = statistics.mean(figure.run for figure in own)
        overall.append(Accuracy("all", name, errors, by_axes, seconds, planning, running))
    return overall


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, help="runs of each estimate; the median counts")
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder for the figures as JSON")
    asked = parser.parse_args()
    figures = [figure for case, (text, inputs) in cases().items() for figure in run(case, text, inputs, asked.repeat)]
    report(figures, asked.output / "estimates.json")

"""The gain of replanning where estimated sizes are wrong, and its cost where they are right.

    python -m bench.replanning

Estimates know how many entries every row and every column has, but not which entries meet. Programs whose operands
are correlated in ways that estimates cannot see run with and without replanning, in turn. So do programs whose
estimates are right, which should take the same time either way.
"""

import argparse
import json
import statistics
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from rich.table import Table

import sparseeinsum as se
from bench.estimates import error
from bench.timing import CONSOLE, race
from sparseeinsum.api.examples import attention_inputs, attention_program, citation_graph, gcn_inputs
from sparseeinsum.api.graphs import GCN
from sparseeinsum.pipeline.run_options import RunOptions
from sparseeinsum.pipeline.running import run_plan

Data = Mapping[str, object]

MASKED_PRODUCT = """
    M[i, j] = A[i, j] * B[i, j]
    Y[i, k] = sum(M[i, j] * C[j, k])
    Z[i, f] = sum(Y[i, k] * D[k, f])
"""
MASKED_SQUARE = """
    M[i, j] = A[i, j] * B[i, j]
    Y[i, k] = sum(M[i, j] * M[j, k])
    Z[i, f] = sum(Y[i, k] * D[k, f])
"""
TWO_KEYS = """
    P[i, l] = sum(A[i, j, k] * B[j, k, l])
    Q[i, m] = sum(P[i, l] * P[m, l])
    R[i]    = max(Q[i, m])
"""
PATHS_OF_FRIENDS = """
    M[i, k] = sum(A[i, j] * A[j, k]) * A[i, k]
    C[i, k] = sum(M[i, j] * M[j, k])
    T[i, l] = sum(C[i, k] * M[k, l])
    x[i]    = sum(T[i, l])
"""


@dataclass(frozen=True)
class Comparison:
    """One program, with and without.

    Attributes:
        case: The program and its data.
        error: Of the estimates of results in tables: the worst of those that were looked at, 1 if none was.
        switches: How often another plan was taken for the rest.
        kept: Median seconds of the plan as it was.
        replanned: The same where the rest may be planned anew, planning included.
        ratio: How many times faster that is.
    """

    case: str
    error: float
    switches: int
    kept: float
    replanned: float
    ratio: float


def _sparse(seed: int, size: int, density: float) -> sp.coo_array:
    return sp.random_array((size, size), density=density, rng=np.random.default_rng(seed)).tocoo()


def masked(size: int, share: float, density: float, is_disjoint: bool = False) -> Data:
    """Two matrices with all entries, or none, at the same indices; a third one, sparser; and a dense one."""
    first = _sparse(0, size, share)
    second = _sparse(1, size, share).toarray() * (first.toarray() == 0) if is_disjoint else first
    dense = np.random.default_rng(1).normal(size=(size, 64))
    return {"A": first, "B": sp.coo_array(second), "C": _sparse(2, size, density), "D": dense}


def _two_keys(rows: int, columns: int, entries: int) -> Data:
    """Two tensors of which one index tells another, so that they meet far more often than two indices would."""
    rng = np.random.default_rng(0)
    tensors = []
    for _ in "AB":
        places = rng.choice(rows * columns, entries, replace=False)
        row, key = places // columns, places % columns
        tensors.append((rng.random(entries), row, key, (7 * key + 3) % columns))
    (first, i, j, k), (second, row, key, other) = tensors
    return {
        "A": sp.coo_array((first, (i, j, k)), shape=(rows, columns, columns)),
        "B": sp.coo_array((second, (key, other, row)), shape=(columns, columns, rows)),
    }


def _communities(members: int, number: int, share: float) -> Data:
    """A graph of communities that nobody told of: nodes are numbered at random."""
    rng = np.random.default_rng(0)
    blocks = [sp.random_array((members, members), density=share, rng=rng) for _ in range(number)]
    graph = sp.block_diag(blocks).tocoo()
    numbers = rng.permutation(members * number)
    return {"A": sp.coo_array((graph.data, tuple(numbers[axis] for axis in graph.coords)), shape=graph.shape)}


def cases() -> dict[str, tuple[str, Data]]:
    """Programs and inputs by name; the last ones are as expected."""
    graph = citation_graph(2708, 10556, 1433, 49216)
    return {
        "masked product": (MASKED_PRODUCT, masked(1500, 0.05, 0.05)),
        "masked square": (MASKED_SQUARE, masked(1500, 0.05, 0.05)),
        "two keys": (TWO_KEYS, _two_keys(600, 200, 6000)),
        "paths of friends": (PATHS_OF_FRIENDS, _communities(30, 50, 0.8)),
        "disjoint masks": (MASKED_PRODUCT, masked(1500, 0.2, 0.2, is_disjoint=True)),
        "GCN": (GCN, gcn_inputs(graph)),
        "attention": (attention_program(256), attention_inputs(graph, 256)),
        "product, as expected": (
            MASKED_PRODUCT,
            {**masked(2000, 0.05, 0.05), "B": _sparse(9, 2000, 0.05)},
        ),
        "chain, as expected": (
            "X[i, k] = sum(A[i, j] * B[j, k])\nY[i, l] = sum(X[i, k] * C[k, l])\nZ[i, f] = sum(Y[i, l] * D[l, f])",
            {**masked(2000, 0.002, 0.002), "B": _sparse(8, 2000, 0.002)},
        ),
    }


def run(case: str, text: str, inputs: Data, repeat: int) -> Comparison:
    """Run a program both ways, after checking that both say the same."""
    database = se.connect()
    for name, data in inputs.items():
        database.tensor(name, data)
    plan = database.plan(text)
    kept, replanned = (database.run(plan, progress=False, replan=replan) for replan in (False, True))
    for name, result in kept.items():
        np.testing.assert_allclose(replanned[name].to_numpy(), result.to_numpy(), rtol=1e-9, atol=1e-9)
    looked = run_plan(plan.data, database._engine, {}, RunOptions()).replannings
    contenders: dict[str, Callable[[], object]] = {
        name: partial(database.run, plan, progress=False, replan=name == "replanned") for name in ("kept", "replanned")
    }
    figures = race(case, contenders, dict.fromkeys(contenders, repeat), "kept")
    seconds = {figure.contender: figure.seconds for figure in figures}
    ratios = (one / other for one, other in zip(*(figure.runs for figure in figures), strict=True))
    return Comparison(
        case,
        max((error(told.expected, told.tuples) for told in looked), default=1.0),
        sum(told.is_better for told in looked),
        seconds["kept"],
        seconds["replanned"],
        statistics.median(ratios),
    )


def report(figures: list[Comparison], path: Path) -> None:
    """Print a table and keep the figures."""
    table = Table(title="Planning the rest anew", title_justify="left")
    table.add_column("program")
    for heading in ("error of estimates", "other plans taken", "s as planned", "s planned anew", "times faster"):
        table.add_column(heading, justify="right")
    for figure in figures:
        table.add_row(
            figure.case,
            f"{figure.error:.1f}",
            str(figure.switches),
            f"{figure.kept:.4f}",
            f"{figure.replanned:.4f}",
            f"{figure.ratio:.2f}",
        )
    CONSOLE.print(table)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(figure) for figure in figures], indent=2) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"of {', '.join(cases())}; all by default")
    parser.add_argument("--repeat", type=int, default=7, help="runs of each; the median counts")
    parser.add_argument("--output", type=Path, default=Path("bench/results"), help="folder for the figures as JSON")
    asked = parser.parse_args()
    chosen = {name: case for name, case in cases().items() if not asked.programs or name in asked.programs}
    report([run(name, *case, asked.repeat) for name, case in chosen.items()], asked.output / "replanning.json")

"""A sparse matrix times a dense one: joined, with the dense one as a resident array, and row by row; beside scipy.

    python -m bench.indexed --edges 500_000 --nodes 13_752 --width 767

Sources and targets of edges follow a power law. Edges are stored in the order of the rows of the result, as loading
does, or in random order. Compute only: tensors are loaded before, and each statement runs alone, into a table. A
second table has the scores of sparse attention: a product of two dense matrices, only at the edges.
"""

import argparse
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

import sparseeinsum as se
from bench.timing import Figure, race, report
from sparseeinsum.api.examples import ExampleMatrix, load
from sparseeinsum.pipeline.planning import make_plans
from sparseeinsum.plans.options import PlanOptions

PRODUCT = "Y[i, m] = sum(A[i, j] * X[j, m])"
SCORES = "S[i, j] = sum(A[i, j] * X[i, m] * X[j, m])"
KINDS = ("joined", "indexed", "row by row")
Contenders = dict[str, Callable[[], object]]
Entries = NDArray[np.float64] | scipy.sparse.coo_array
_EXPONENT = 0.8  # of the power law


def power_law(nodes: int, edges: int, rng: np.random.Generator) -> scipy.sparse.csr_array:
    """Edges between random nodes, of which some have far more than others."""
    weights = (1.0 + np.arange(nodes)) ** -_EXPONENT
    ends = [rng.permutation(nodes)[rng.choice(nodes, edges, p=weights / weights.sum())] for _ in range(2)]
    return scipy.sparse.csr_array((rng.random(edges), ends), (nodes, nodes))


def shuffle(database: se.Database, name: str) -> None:
    """Put the rows of a tensor's table into random order."""
    database.connection.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM {name} ORDER BY hash(rowid)")


def plan_of(database: se.Database, text: str, kind: str) -> se.Plan:
    """The plan of one of KINDS: the later ones may do what the earlier ones do, where that is cheaper."""
    options = PlanOptions(layout="any", indexes=kind != "joined")
    without_rows = patch("sparseeinsum.decompose.model.order_of_other", return_value=None)
    with without_rows if kind == "indexed" else nullcontext():
        return se.Plan(make_plans(se.program(text), database._engine, options)[0], database._engine)


def kind_of(plan: se.Plan) -> str:
    """Which of KINDS a plan is."""
    steps = plan.data.decomposed.steps
    if any(step.orders for step in steps):
        return "row by row"
    return "indexed" if any(step.indexed is not None for step in steps) else "joined"


def contenders_of(database: se.Database, text: str, order: str, expected: scipy.sparse.csr_array) -> Contenders:
    """A plan of each of KINDS that there is, checked once."""
    made: Contenders = {}
    for plan in (plan_of(database, text, kind) for kind in KINDS):
        (result,) = database.run(plan, progress=False).values()
        differences = (result.to_scipy() - expected).data
        np.testing.assert_allclose(differences, 0, atol=1e-9 * abs(expected.data).max())
        query = plan.sql().rstrip().removesuffix(";")
        made[f"{kind_of(plan)}, {order}"] = partial(
            database.connection.execute, f"CREATE OR REPLACE TABLE result AS {query}"
        )
    return made


def run_program(
    name: str, text: str, inputs: dict[str, ExampleMatrix], reference: Callable[[], Entries], repeat: int
) -> list[Figure]:
    """Race the contenders of one program, after checking that they agree."""
    expected = scipy.sparse.csr_array(reference())
    edges, (_, width) = scipy.sparse.csr_array(inputs["A"]).nnz, inputs["X"].shape
    contenders: Contenders = {"scipy": reference}
    for order in ("in order", "in random order"):
        database = load(se.connect(), inputs)
        if order == "in random order":
            shuffle(database, "A")
        contenders |= contenders_of(database, text, order, expected)
    return race(f"{name}, {edges:,} x {width}", contenders, dict.fromkeys(contenders, repeat), "joined, in order")


def run(nodes: int, edges: int, width: int, repeat: int) -> list[Figure]:
    """The product and the scores on one random graph."""
    rng = np.random.default_rng(0)
    left, right = power_law(nodes, edges, rng), rng.random((nodes, width))
    inputs: dict[str, ExampleMatrix] = {"A": left, "X": right}
    at = left.tocoo()

    def scores() -> Entries:
        values = np.einsum("em,em->e", right[at.coords[0]], right[at.coords[1]]) * at.data
        return scipy.sparse.coo_array((values, at.coords), at.shape)

    return run_program("Y", PRODUCT, inputs, lambda: left @ right, repeat) + run_program(
        "S", SCORES, inputs, scores, repeat
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--edges", type=int, default=200_000)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--output", type=Path, default=Path("bench/results"))
    return parser.parse_args()


if __name__ == "__main__":
    asked = _arguments()
    figures = run(asked.nodes, asked.edges, asked.width, asked.repeat)
    report("Sparse times dense, and scores of attention", figures, "joined, in order", asked.output / "indexed.json")

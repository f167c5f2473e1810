"""Two-layer GCN forward, as in table 6 of the SparseEinSum paper: ours, purely relational, and scipy.

    python -m bench.gcn planetoid_cora --data DIR

Compute only: tensors are loaded before. The relational plan reads tensors that are stored relationally.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

import sparseeinsum as se
from bench.datasets import arguments, graph_of
from bench.timing import Figure, race, report
from sparseeinsum.examples import GCN, Graph, Matrix, gcn_inputs, gcn_reference


def loaded(inputs: Mapping[str, Matrix], promoted: list[str] | None) -> se.Database:
    """A database with the tensors of a program; promoted: axes of dense tensors to store as keys."""
    database = se.connect()
    for name, matrix in inputs.items():
        is_dense = isinstance(matrix, np.ndarray)
        database.tensor(name, matrix, promoted=promoted if is_dense else None)
    return database


def run(graph: Graph, repeat: int, has_relational: bool) -> list[Figure]:
    """Race the contenders on one graph, after checking that they agree."""
    inputs = gcn_inputs(graph)
    expected = gcn_reference(inputs)

    def check(result: se.TensorResult) -> None:
        np.testing.assert_allclose(result.to_numpy(), expected, rtol=1e-9)

    plans = planned(inputs, GCN, has_relational, check)
    return race_plans(graph.name, lambda: gcn_reference(inputs), plans, GCN, repeat)


def planned(
    inputs: Mapping[str, Matrix], program: str, has_relational: bool, check: Callable[[se.TensorResult], None]
) -> dict[str, tuple[se.Database, se.Plan]]:
    """The chosen plan and, if wanted, the relational one, each with its database; both have been run and checked."""
    ours = loaded(inputs, None)
    plans = {"sparseeinsum": (ours, ours.plan(program))}
    if has_relational:
        relational = loaded(inputs, ["dim_0", "dim_1"])
        plans["relational"] = relational, relational.plan(program, optimizer="relational")
    for database, plan in plans.values():
        (result,) = database.run(plan).values()
        check(result)
    return plans


def race_plans(
    name: str,
    reference: Callable[[], object],
    plans: Mapping[str, tuple[se.Database, se.Plan]],
    program: str,
    repeat: int,
) -> list[Figure]:
    """Race scipy, the plans and planning; the relational plan half as often."""
    ours, _ = plans["sparseeinsum"]
    contenders: dict[str, Callable[[], object]] = {"scipy": reference, "planning": partial(ours.plan, program)}
    contenders |= {each: partial(database.run, plan) for each, (database, plan) in plans.items()}
    repeats = dict.fromkeys(contenders, repeat) | {"relational": max(1, repeat // 2)}
    return race(name, contenders, repeats, "scipy")


if __name__ == "__main__":
    asked = arguments(__doc__ or "", ["planetoid_cora"])
    figures = [
        figure
        for name in asked.graphs
        for figure in run(graph_of(name, asked.data), asked.repeat, not asked.without_relational)
    ]
    report("GCN forward, hidden 256, 16 classes", figures, "scipy", asked.output / "gcn.json")

"""Two-layer GCN forward, as in table 6 of the SparseEinSum paper: ours, purely relational, and scipy.

    python -m bench.gcn planetoid_cora --data DIR

Compute only: tensors are loaded before. The relational plan reads tensors that are stored relationally.
"""

from collections.abc import Mapping

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


def run(graph: Graph, repeat: int) -> list[Figure]:
    """Race the contenders on one graph, after checking that they agree."""
    inputs = gcn_inputs(graph)
    expected = gcn_reference(inputs)
    ours, relational = loaded(inputs, None), loaded(inputs, ["dim_0", "dim_1"])
    plan, relational_plan = ours.plan(GCN), relational.plan(GCN, optimizer="relational")
    for database, chosen in ((ours, plan), (relational, relational_plan)):
        np.testing.assert_allclose(database.run(chosen)["Y"].to_numpy(), expected, rtol=1e-9)
    contenders = {
        "scipy": lambda: gcn_reference(inputs),
        "sparseeinsum": lambda: ours.run(plan),
        "planning": lambda: ours.plan(GCN),
        "relational": lambda: relational.run(relational_plan),
    }
    repeats = {name: repeat if name != "relational" else max(1, repeat // 2) for name in contenders}
    return race(graph.name, contenders, repeats, "scipy")


if __name__ == "__main__":
    asked = arguments(__doc__ or "", ["planetoid_cora"])
    figures = [figure for name in asked.graphs for figure in run(graph_of(name, asked.data), asked.repeat)]
    report("GCN forward, hidden 256, 16 classes", figures, "scipy", asked.output / "gcn.json")

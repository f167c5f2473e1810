"""Sparse attention with 1024-wide projections, as in table 5 of the SparseEinSum paper: ours, relational, and scipy.

    python -m bench.attention planetoid_cora --data DIR

Compute only: tensors are loaded before. The relational plan reads tensors that are stored relationally.
"""

import numpy as np

from bench.datasets import arguments, graph_of
from bench.gcn import loaded
from bench.timing import Figure, race, report
from sparseeinsum.examples import Graph, attention_inputs, attention_program, attention_reference

WIDTH = 1024


def run(graph: Graph, repeat: int) -> list[Figure]:
    """Race the contenders on one graph, after checking that they agree."""
    inputs = attention_inputs(graph, WIDTH)
    program = attention_program(WIDTH)
    expected = attention_reference(inputs)
    ours, relational = loaded(inputs, None), loaded(inputs, ["dim_0", "dim_1"])
    plan, relational_plan = ours.plan(program), relational.plan(program, optimizer="relational")
    for database, chosen in ((ours, plan), (relational, relational_plan)):
        difference = abs(database.run(chosen)["S"].to_scipy() - expected).max()
        np.testing.assert_array_less(difference, 1e-9 * abs(expected).max())
    contenders = {
        "scipy": lambda: attention_reference(inputs),
        "sparseeinsum": lambda: ours.run(plan),
        "planning": lambda: ours.plan(program),
        "relational": lambda: relational.run(relational_plan),
    }
    repeats = {name: repeat if name != "relational" else max(1, repeat // 2) for name in contenders}
    return race(graph.name, contenders, repeats, "scipy")


if __name__ == "__main__":
    asked = arguments(__doc__ or "", ["planetoid_cora"])
    figures = [figure for name in asked.graphs for figure in run(graph_of(name, asked.data), asked.repeat)]
    report(f"Sparse attention, {WIDTH} wide", figures, "scipy", asked.output / "attention.json")

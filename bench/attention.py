"""Sparse attention with 1024-wide projections, as in table 5 of the SparseEinSum paper: ours, relational, and scipy.

    python -m bench.attention planetoid_cora --data DIR

Compute only: tensors are loaded before. The relational plan reads tensors that are stored relationally.
"""

import numpy as np

import sparseeinsum as se
from bench.contenders import planned, race_graphs, race_plans
from bench.datasets import arguments
from bench.timing import Figure, report
from sparseeinsum.api.examples import ExampleGraph, attention_inputs, attention_program, attention_reference

WIDTH = 1024


def run(graph: ExampleGraph, repeat: int, has_relational: bool) -> list[Figure]:
    """Race the contenders on one graph, after checking that they agree."""
    inputs = attention_inputs(graph, WIDTH)
    program = attention_program(WIDTH)
    expected = attention_reference(inputs)

    def check(result: se.TensorResult) -> None:
        np.testing.assert_array_less(abs(result.to_scipy() - expected).max(), 1e-9 * abs(expected).max())

    plans = planned(inputs, program, has_relational, check)
    return race_plans(graph.name, {"scipy": lambda: attention_reference(inputs)}, plans, program, repeat)


if __name__ == "__main__":
    asked = arguments(__doc__ or "", ["planetoid_cora"])
    figures = race_graphs(asked, run)
    report(f"Sparse attention, {WIDTH} wide", figures, "scipy", asked.output / "attention.json")

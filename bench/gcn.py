"""Two-layer GCN forward, as in table 6 of the SparseEinSum paper: ours, purely relational, and scipy.

    python -m bench.gcn planetoid_cora --data DIR

Compute only: tensors are loaded before. The relational plan reads tensors that are stored relationally.
"""

import numpy as np

import sparseeinsum as se
from bench.contenders import planned, race_graphs, race_plans
from bench.datasets import arguments
from bench.timing import Figure, report
from sparseeinsum.api.examples import ExampleGraph, gcn_inputs, gcn_reference
from sparseeinsum.api.graphs import GCN


def run(graph: ExampleGraph, repeat: int, has_relational: bool) -> list[Figure]:
    """Race the contenders on one graph, after checking that they agree."""
    inputs = gcn_inputs(graph)
    expected = gcn_reference(inputs)

    def check(result: se.TensorResult) -> None:
        np.testing.assert_allclose(result.to_numpy(), expected, rtol=1e-9)

    plans = planned(inputs, GCN, has_relational, check)
    references = {
        "scipy": lambda: gcn_reference(inputs),
        "scipy, weights first": lambda: gcn_reference(inputs, weights_first=True),
    }
    return race_plans(graph.name, references, plans, GCN, repeat)


if __name__ == "__main__":
    asked = arguments(__doc__ or "", ["planetoid_cora"])
    figures = race_graphs(asked, run)
    report("GCN forward, hidden 256, 16 classes", figures, "scipy", asked.output / "gcn.json")

"""The floats of single EinSums that rewriting compares for several workers are those of their best vectors."""

import sparseeinsum as se
from sparseeinsum.decompose.eindecomp.floats_bound import least_floats


def test_the_bound_is_that_of_the_paper() -> None:
    """Of one EinSum it is the bound that `se.partition` minimises with that objective."""
    shapes = {"A": (64, 32), "B": (32, 128)}
    for workers in (2, 6, 16):
        partition = se.partition("C[i, k] = sum(A[i, j] * B[j, k])", workers, shapes, objective="bound")
        model = partition.task.model
        einsums = model.graph.einsums
        assert least_floats(model.graph, model.statistics, model.evaluations, einsums, workers=workers) == [
            partition.floats
        ]

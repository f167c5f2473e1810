"""For several workers, rewriting compares the floats that EinSums send, and takes the order that sends few."""

import pytest

import sparseeinsum as se
from sparseeinsum.decompose.eindecomp.rewritings import least_floats


@pytest.mark.parametrize("workers", [2, 6, 16])
def test_the_bound_is_that_of_the_paper(workers: int) -> None:
    """Of one EinSum it is the bound that `se.partition` minimises with that objective."""
    shapes = {"A": (64, 32), "B": (32, 128)}
    partition = se.partition("C[i, k] = sum(A[i, j] * B[j, k])", workers, shapes, objective="bound")
    model, expected = partition.task.model, partition.floats
    floats = least_floats(model.graph, model.statistics, model.evaluations, model.graph.einsums, workers=workers)
    assert floats == [expected]


@pytest.mark.parametrize("workers", [4, 6, 16])
def test_products_are_in_the_order_that_sends_few_floats(workers: int) -> None:
    """With sparse factors, the order of the fewest multiplications sends more than another one."""
    shapes = {"A": (16, 64), "B": (64, 256), "C": (256, 4096)}
    entries = {"B": 256, "C": 104_857}
    product = se.partition("Y[i, l] = sum(A[i, j] * B[j, k] * C[k, l])", workers, shapes, entries)
    orders = ["T[i, k] = sum(A[i, j] * B[j, k])\nY[i, l] = sum(T[i, k] * C[k, l])"]
    orders += ["T[j, l] = sum(B[j, k] * C[k, l])\nY[i, l] = sum(A[i, j] * T[j, l])"]
    moved = [se.partition(order, workers, shapes, entries, rewrite=False).moved for order in orders]
    assert product.moved <= min(moved) * (1 + 1e-9)

"""Operands in memory take a quarter of the limit for one EinSum, and do not exceed it for a whole program."""

import pytest
from cost_models import PRODUCT, model_of

from sparseeinsum.decompose.resident_limits import resident_limit
from sparseeinsum.statistics.estimate import dense_statistics

# An array of 100 x 1,000 numbers takes 0.8 MB, and C, which nobody reads, nothing.
ARRAY_BYTES = 800_000


def products(count: int) -> str:
    return "\n".join(f"C{n}[i, k] = sum(A{n}[i, j] * B[j, k])" for n in range(count))


@pytest.mark.parametrize("limit_bytes", [4e6, 1e9])
def test_one_product_may_take_a_quarter(limit_bytes: float) -> None:
    model = model_of(PRODUCT, {"A": dense_statistics((100, 1000)), "B": dense_statistics((1000, 50))})
    assert resident_limit(model.graph, model.statistics, limit_bytes) == limit_bytes / 4


@pytest.mark.parametrize(("count", "fits"), [(3, True), (4, False)])
def test_all_products_may_take_three_fifths(count: int, fits: bool) -> None:
    """Three arrays and B take 2.8 MB, and four of them 3.6 MB of 3 MB."""
    operands = {f"A{n}": dense_statistics((100, 1000)) for n in range(count)}
    model = model_of(products(count), {**operands, "B": dense_statistics((1000, 50))})
    limit = resident_limit(model.graph, model.statistics, 5e6)
    assert limit == (5e6 / 4 if fits else ARRAY_BYTES - 1)


def test_operands_that_never_fit_do_not_count() -> None:
    operands = {f"A{n}": dense_statistics((100, 1000)) for n in range(9)}
    model = model_of(products(9), {**operands, "B": dense_statistics((1000, 50))})
    assert resident_limit(model.graph, model.statistics, 3e6) == 3e6 / 4

"""No other order of a product is searched where less can be gained than the search takes."""

from typing import Any

import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.rewrite import reassociation
from sparseeinsum.rewrite.binarise import binarise

CHAIN = "T[i, k] = sum(A[i, j] * B[j, k])\nY[i, l] = sum(T[i, k] * C[k, l])"


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The results of products that are split in another order."""
    results: list[str] = []

    def observed(graph: Any, *arguments: Any) -> Any:  # noqa: ANN401  # of the observed function
        results.extend(graph.outputs)
        return binarise(graph, *arguments)

    monkeypatch.setattr(reassociation, "binarise", observed)
    return results


@pytest.mark.parametrize(("size", "is_searched"), [(3, False), (400, True)])
def test_orders_of_small_products_are_not_searched(
    db: se.Database, searched: list[str], size: int, is_searched: bool
) -> None:
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(size=(size, size if name != "C" else 2)) for name in "ABC"}
    for name, array in arrays.items():
        db.tensor(name, array)
    plan = db.plan(CHAIN)
    assert bool(searched) == is_searched
    np.testing.assert_allclose(
        db.run(plan)["Y"].to_numpy(), arrays["A"] @ arrays["B"] @ arrays["C"], rtol=1e-9, atol=1e-9
    )

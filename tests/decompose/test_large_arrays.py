"""Single arrays that are too large for a row have a price where one operator hands them to the next."""

import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.decompose import storing_costs
from sparseeinsum.pipeline.search_cache import SEARCHES

PROGRAM = "B[i, j] = exp(A[i, j])\nC[i, j] = sin(B[i, j])\nD[i] = sum(C[i, j])"


def cost() -> float:
    with se.connect() as database:
        database.tensor("A", np.ones((300, 300)))
        return database.plan(PROGRAM, pin={name: {} for name in "BCD"}, rewrite=False).cost


def test_large_arrays_cost_more(monkeypatch: pytest.MonkeyPatch) -> None:
    in_one_row = cost()
    SEARCHES.clear()
    monkeypatch.setattr(storing_costs, "LARGEST_ROW_ARRAY", 300 * 300 - 1)
    assert cost() > in_one_row

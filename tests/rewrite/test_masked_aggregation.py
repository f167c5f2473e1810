"""Sums that are read only where a sparse tensor has entries are computed only there, with numpy's results."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparseeinsum as se

ROWS, COLUMNS, RANK = 2000, 1500, 6

pytestmark = pytest.mark.engines("duckdb", reason="rewriting knows no engine but by its prices")


@pytest.fixture(scope="module")
def arrays() -> dict[str, Any]:
    random = np.random.default_rng(3)
    return {
        "X": sp.random_array((ROWS, COLUMNS), density=0.001, rng=random).tocsr(),
        "W": random.random((ROWS, RANK)),
        "H": random.random((COLUMNS, RANK)),
    }


@pytest.fixture
def factors(db: se.Database, arrays: dict[str, Any]) -> se.Database:
    for name, array in arrays.items():
        db.tensor(name, array)
    return db


def dense_entries(plan: se.Plan) -> float:
    return max(plan.statistics[step.einsum.output.tensor].entries for step in plan.data.decomposed.steps)


Wanted = Callable[[Any, Any], Any]  # of X and of the product of W and H

MASKED: dict[str, tuple[str, Wanted]] = {
    "log": ("S = sum(X * log(W @ H.T + 1e-9))", lambda x, p: (x * np.log(p + 1e-9)).sum()),
    "quotient": ("S = (X / (W @ H.T + 1e-9)).T @ W", lambda x, p: x / (p + 1e-9)),
    "transposed": ("S = exp(H @ W.T) * X.T", lambda x, p: np.exp(p.T) * x.T),
    "several": (
        "P = W @ H.T; Q = X * exp(P); S = Q + sum(X * sqrt(P))",
        lambda x, p: x * np.exp(p) + (x * np.sqrt(p)).sum(),
    ),
}


@pytest.mark.parametrize("name", MASKED)
def test_masked_products_are_computed_at_entries(name: str, factors: se.Database, arrays: dict[str, Any]) -> None:
    text, wanted = MASKED[name]
    plan = factors.plan(text)
    if name != "several":
        assert dense_entries(plan) < ROWS * COLUMNS / 10 < dense_entries(factors.plan(text, rewrite=False))
    expected = wanted(arrays["X"].toarray(), arrays["W"] @ arrays["H"].T)
    expected = expected.T @ arrays["W"] if name == "quotient" else expected
    np.testing.assert_allclose(factors.run(plan)["S"].to_numpy(), expected, rtol=1e-9, atol=1e-9)


NOT_MASKED = {
    "a product with another reader": "P = W @ H.T; T = X * exp(P); S = max(P) + sum(T)",
    "terms outside the mask": "S = sum(X + exp(W @ H.T))",
    "possibly infinite terms": "S = sum(X * log(W @ H.T - 1))",
    "terms without a value at 0": "S = sum(X * log(W @ H.T))",
}


@pytest.mark.parametrize("reason", NOT_MASKED)
def test_other_sums_are_not_masked(reason: str, factors: se.Database, arrays: dict[str, Any]) -> None:
    plan = factors.plan(NOT_MASKED[reason])
    assert not any("!= 0" in line for line in plan.notation())


def test_explicit_zeros_and_fills(db: se.Database, arrays: dict[str, Any]) -> None:
    X = np.where(arrays["X"].toarray() == 0, 2.0, arrays["X"].toarray())  # noqa: N806
    X[:3] = 2.0
    db.tensor("X", X, fill=2.0)
    for name in ("W", "H"):
        db.tensor(name, arrays[name])
    plan = db.plan("S[] = sum((X[i, j] - 2) * exp(sum[k](W[i, k] * H[j, k])))")
    expected = ((X - 2) * np.exp(arrays["W"] @ arrays["H"].T)).sum()
    np.testing.assert_allclose(db.run(plan)["S"].to_numpy(), expected, rtol=1e-9)


def test_a_sum_that_is_pinned_or_requested_stays(factors: se.Database) -> None:
    text = "P[i, j] = sum(W[i, k] * H[j, k])\nS[] = sum(X[i, j] * exp(P[i, j]))"
    for plan in (factors.plan(text, outputs=["P"]), factors.plan(text, pin={"P": ["i"]})):
        assert dense_entries(plan) == ROWS * COLUMNS

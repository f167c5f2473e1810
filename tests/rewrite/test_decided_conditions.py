"""Conditions that finite values decide are not computed, and results are those of numpy, also of infinite values."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", reason="rewriting knows no engine but by its prices")

Array = NDArray[np.float64]

LOG_SOFTMAX = "L[i, k] = log_softmax[k](Z[i, k])"


def log_softmax(values: Array) -> Array:
    with np.errstate(invalid="ignore"):
        differences = values - np.log(np.exp(values).sum(axis=1, keepdims=True))
    return np.where(values == -np.inf, -np.inf, differences)


def values_with(number: float) -> Array:
    values = np.random.default_rng(1).normal(size=(9, 4))
    values[2, 1] = number
    return values


def asks(plan: se.Plan) -> bool:
    return any("where" in line for line in plan.notation())


@pytest.mark.parametrize("number", [0.5, -np.inf])
def test_infinite_values_are_asked_for_only_where_they_may_be(db: se.Database, number: float) -> None:
    values = values_with(number)
    db.tensor("Z", values)
    plan = db.plan(LOG_SOFTMAX)
    assert asks(plan) == (number == -np.inf)
    np.testing.assert_allclose(db.run(plan)["L"].to_numpy(), log_softmax(values))


def test_plans_for_finite_values_are_refused_for_others(db: se.Database) -> None:
    db.tensor("Z", values_with(0.5))
    plan = db.plan(LOG_SOFTMAX)
    db.tensor("Z", values_with(-np.inf))
    with pytest.raises(se.OutdatedPlanError, match="plan again"):
        db.run(plan)
    np.testing.assert_allclose(db.run(LOG_SOFTMAX)["L"].to_numpy(), log_softmax(values_with(-np.inf)))


@pytest.mark.parametrize("number", [0.5, np.inf])
def test_prepared_programs_follow_their_values(db: se.Database, number: float) -> None:
    db.tensor("Z", values_with(0.5))
    prepared = db.prepare("Y[i, k] = where(Z[i, k] == inf, 1, Z[i, k] * 2)", inputs=["Z"])
    values = values_with(number)
    expected = np.where(values == np.inf, 1, values * 2)
    np.testing.assert_allclose(prepared.run(Z=values)["Y"].to_numpy(), expected)


@pytest.mark.parametrize(
    ("program", "wanted"),
    [
        ("Y[i, k] = where(Z[i, k] > 0, Z[i, k], 0)", lambda z: np.maximum(z, 0)),  # not decided
        ("Y[i, k] = where(Z[i, k] == -inf, 0, v[i])", lambda z: np.repeat(np.arange(1.0, 10)[:, None], 4, axis=1)),
        ("Y[i, k] = where(Z[i, k] < inf, Z[i, k] + v[i], v[i])", lambda z: z + np.arange(1.0, 10)[:, None]),
        ("Y[i] = sum[k](where(Z[i, k] == inf, 7, Z[i, k]))", lambda z: z.sum(axis=1)),
        ("Y[i, k] = where(not (Z[i, k] == inf), 1, Z[i, k])", np.ones_like),
    ],
)
def test_values_of_decided_conditions(db: se.Database, program: str, wanted: Callable[[Array], Array]) -> None:
    values = values_with(0.5)
    db.tensor("Z", values)
    db.tensor("v", np.arange(1.0, 10))
    np.testing.assert_allclose(db.run(program)["Y"].to_numpy(), wanted(values))


def test_pinned_results_stay_as_they_are_written(db: se.Database) -> None:
    db.tensor("Z", values_with(0.5))
    assert asks(db.plan("Y[i, k] = where(Z[i, k] == inf, 1, Z[i, k])", pin={"Y": {"i": 1}}))
    assert not asks(db.plan("Y[i, k] = where(Z[i, k] == inf, 1, Z[i, k])"))


def test_masks_that_are_computed_anyway_are_read_again(db: se.Database) -> None:
    """A gradient reads the mask of a dropout, which another statement needs everywhere, also where it is sparse."""
    rng = np.random.default_rng(2)
    sparse = np.where(rng.random((300, 1)) < 0.1, rng.normal(size=(300, 16)), 0)
    db.tensor("H", rng.normal(size=(300, 16)))
    db.tensor("G", sparse)
    program = """
        include "nn"
        A[i, f] = dropout(H, 0.5, 3, 4)[i, f]
        loss[] = sum(G[i, f] * A[i, f])
        B[i, f] = gradient(loss, H)[i, f]
    """
    plan = db.plan(program, outputs=["A", "B"])
    results = db.run(plan)
    kept = results["A"].to_numpy() != 0
    np.testing.assert_allclose(results["B"].to_numpy(), np.where(kept, sparse * 2, 0))
    masks = [line for line in plan.notation() if "2.220446049250313e-16" in line]
    assert len(masks) == 1

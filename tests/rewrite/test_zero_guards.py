"""Products that are 0 wherever a factor is 0 are plain products of finite numbers, and results are those of numpy."""

import numpy as np
import pytest
from numpy.typing import NDArray

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", reason="rewriting knows no engine but by its prices")

Array = NDArray[np.float64]

ATTENTION = """
    P[q, t] = softmax[t](sum(Q[q, d] * K[t, d]) + M[q, t])
    Y[q, d] = sum(P[q, t] * V[t, d])
"""


def attention_inputs(absent: bool) -> dict[str, Array]:
    """Queries, keys, values, and a mask that adds -inf to some scores, all of them in one row, or to none."""
    rng = np.random.default_rng(0)
    inputs = {name: rng.normal(size=(800, 16)) for name in "QKV"}
    mask = np.where(rng.random((800, 800)) < 0.9 * absent, -np.inf, 0.0)
    mask[3] = -np.inf if absent else 1.0
    return inputs | {"M": mask}


def attention(inputs: dict[str, Array]) -> Array:
    scores = inputs["Q"] @ inputs["K"].T + inputs["M"]
    greatest = scores.max(axis=1, keepdims=True)
    powers = np.exp(scores - np.where(np.isfinite(greatest), greatest, 0))
    totals = powers.sum(axis=1, keepdims=True)
    shares: Array = np.divide(powers, totals, out=np.zeros_like(powers), where=totals > 0)
    return shares @ inputs["V"]


def guards(plan: se.Plan, name: str) -> bool:
    """Whether some EinSum asks whether `name` is 0."""
    return any(f"where({name}" in line for line in plan.notation())


@pytest.mark.parametrize("absent", [False, True], ids=["finite scores", "scores of -inf"])
def test_attention_divides_what_it_returns(db: se.Database, absent: bool) -> None:
    """Of finite scores, not the shares are divided but their products with the values, which are fewer."""
    inputs = attention_inputs(absent)
    for name, array in inputs.items():
        db.tensor(name, array)
    plan = db.plan(ATTENTION)
    assert guards(plan, "P_exp") == absent
    assert any("P_exp[q, t] * V[t, d]" in line for line in plan.notation()) != absent
    np.testing.assert_allclose(db.run(plan, progress=False)["Y"].to_numpy(), attention(inputs), rtol=1e-12, atol=1e-15)


def test_shares_that_are_returned_add_up_to_one(db: se.Database) -> None:
    db.tensor("S", np.random.default_rng(1).normal(size=(30, 40), scale=300))
    shares = db.run("P[i, j] = softmax[j](S[i, j])", progress=False)["P"].to_numpy()
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-14)


@pytest.mark.parametrize(
    ("expression", "stays"),
    [
        ("where(u[i] == 0, 0, u[i] * v[i])", False),
        ("where(v[i] == 0, 0, u[i] * v[i])", False),
        ("where(u[i] == 0, 1, u[i] * v[i])", True),
        ("where(u[i] == 1, 0, u[i] * v[i])", True),
        ("where(w[i] == 0, 0, u[i] * v[i])", True),
        ("where(n[i] == 0, 0.0, n[i] * m[i])", True),  # a number of float64, of whole numbers
    ],
)
def test_only_factors_that_are_zero_are_not_asked_for(db: se.Database, expression: str, stays: bool) -> None:
    rng = np.random.default_rng(2)
    arrays = {name: rng.integers(0, 3, 50) * (1.0 if name in "uvw" else 1) for name in "uvwnm"}
    for name, array in arrays.items():
        db.tensor(name, array)
    plan = db.plan(f"Y[i] = {expression}")
    assert any("where" in line for line in plan.notation()) == stays
    text = expression.replace("[i]", "").replace("where", "np.where")
    expected = eval(text, {"np": np, **arrays})  # one of the lines above
    result = db.run(plan, progress=False)["Y"].to_numpy()
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


def test_infinite_factors_and_pinned_results_stay_as_they_are(db: se.Database) -> None:
    program = "Y[i] = where(u[i] == 0, 0, u[i] * v[i])"
    db.tensor("u", [0.0, 1.0, 2.0])
    db.tensor("v", [1.0, 1.0, 3.0])
    assert guards(db.plan(program, pin={"Y": {"i": 1}}), "u")
    db.tensor("v", [np.inf, 1.0, 3.0])
    plan = db.plan(program)
    assert guards(plan, "u")
    np.testing.assert_array_equal(db.run(plan, progress=False)["Y"].to_numpy(), [0, 1, 6])

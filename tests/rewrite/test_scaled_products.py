"""Sums of products that are multiplied by a constant: an operand is multiplied, where that is cheaper."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.semantics.dense import evaluate_program

RNG = np.random.default_rng(0)
Q, K = RNG.normal(size=(800, 16)), RNG.normal(size=(700, 16))
ATTENTION = "Y[q, t] = sum(Q[q, d] * K[t, d])"


def scalings(plan: se.Plan) -> list[tuple[str, str]]:
    """The tensors that EinSums of one operand read, and those that they compute from them."""
    einsums = [step.einsum for step in plan.data.decomposed.steps]
    return [
        (einsum.operands[0].tensor, einsum.output.tensor)
        for einsum in einsums
        if len(einsum.operands) == 1 and einsum.aggregate is None
    ]


def check(db: se.Database, plan: se.Plan, text: str, arrays: dict[str, NDArray[Any]], rtol: float = 1e-10) -> None:
    program = se.program(text)
    expected = evaluate_program(program, {name: arrays[name] for name in program.inputs})
    for name, result in db.run(plan, progress=False).items():
        np.testing.assert_allclose(result.to_numpy(), expected[name], rtol=rtol, atol=rtol)


@pytest.mark.engines("duckdb", "postgresql")
@pytest.mark.parametrize(
    ("text", "scaled"),
    [
        (f"{ATTENTION} / sqrt(bound(d))", "K"),
        ("Y[q, t] = -0.5 * sum(Q[q, d] * K[t, d]) / 3", "K"),
        ("Y[q, t] = sum(Q[q, d] * K[t, d] / 8)", "K"),
        ("S[q, t] = sum(Q[q, d] * K[t, d]) / 8\nY[q] = max(S[q, t])\nZ[t] = sum(exp(S[q, t]))", "K"),
        ("Y[t, u] = sum(K[t, d] * K[u, d]) / 2", "K"),
    ],
)
def test_the_smaller_operand_is_scaled(db: se.Database, text: str, scaled: str) -> None:
    arrays = {"Q": Q, "K": K}
    for name in se.program(text).inputs:
        db.tensor(name, arrays[name])
    plan = db.plan(text, layout="any")
    assert [read for read, _ in scalings(plan)] == [scaled]
    assert plan.cost < db.plan(text, layout="any", rewrite=False).cost
    check(db, plan, text, arrays)


@pytest.mark.parametrize(
    "text",
    [
        "Y[q, t] = 2 * sum(Q[q, d] * K[t, d])",  # an operand may overflow where the result does not
        "Y[q, t] = 1e-30 * sum(Q[q, d] * K[t, d])",  # an operand may lose its digits
        "Y[q, t] = 0 * sum(Q[q, d] * K[t, d])",
        "Y[q, t] = sum(Q[q, d] * K[t, d]) / 8 + 1",
        "Y[q, t] = sum(Q[q, d] * K[t, d]) ^ 2 / 8",
        "Y[t, q] = sum(Q[q, d] * K[t, d]) / 8",  # which orders the labels in another way
        "S[q, t] = sum(Q[q, d] * K[t, d])\nY[q, t] = S[q, t] / 8\nZ[q] = max(S[q, t])",
        "Y[q, t] = max(Q[q, d] * K[t, d]) / 8",
        "Y[d, e] = sum(Q[q, d] * Q[q, e]) / 800",  # the result is smaller than the operand
        "S[q, t] = sum(Q[q, d] * K[t, d])\nZ[q] = max(S[q, t])\nY[q, t] = sum(Q[q, d] * K[t, d]) / 8",  # one product
    ],
)
def test_other_sums_stay(shared_db: se.Database, text: str) -> None:
    arrays = {"Q": Q, "K": K}
    for name in se.program(text).inputs:
        shared_db.tensor(name, arrays[name])
    plan = shared_db.plan(text, layout="any")
    assert not {"Q", "K"} & {read for read, _ in scalings(plan)}
    check(shared_db, plan, text, arrays)


@pytest.mark.parametrize(
    ("dtypes", "scaled"),
    [
        (("float32", "float32"), ["K"]),
        (("float64", "float32"), []),  # a scaled K would be rounded to float32
        (("complex128", "complex128"), []),
        (("int64", "int64"), []),
    ],
)
def test_dtypes(db: se.Database, dtypes: tuple[str, str], scaled: list[str]) -> None:
    arrays = {"Q": (Q * 10).astype(dtypes[0]), "K": (K * 10).astype(dtypes[1])}
    for name, array in arrays.items():
        db.tensor(name, array)
    text = f"{ATTENTION} / 8"
    plan = db.plan(text, layout="any")
    assert [read for read, _ in scalings(plan) if read in arrays] == scaled
    check(db, plan, text, arrays, 1e-4 if scaled else 1e-10)


@pytest.mark.parametrize(
    "constants", ["* 1e300 * 1e-300 / 8", "* 1e-300 * 1e300 / 8", "/ 8 * 1e160 * 1e159 * 1e-160 * 1e-159"]
)
def test_no_part_of_the_constant_overflows(db: se.Database, constants: str) -> None:
    arrays = {"Q": Q * 1e-20, "K": K * 1e20}
    for name, array in arrays.items():
        db.tensor(name, array)
    plan = db.plan(f"{ATTENTION} {constants}", layout="any")
    assert [read for read, _ in scalings(plan)] == ["K"]
    np.testing.assert_allclose(db.run(plan, progress=False)["Y"].to_numpy(), Q @ K.T / 8, rtol=1e-9, atol=1e-12)


def test_names_of_results_that_are_not_computed_stay_theirs(db: se.Database) -> None:
    """The sum under the mask reads what is scaled."""
    w, h = RNG.normal(size=(1500, 16)), RNG.normal(size=(1500, 16))
    mask = sp.random_array((1500, 1500), density=0.005, rng=RNG)
    for name, data in {"W": w, "H": h, "X": mask}.items():
        db.tensor(name, data)
    text = "Y_1[i, j] = sum(W[i, k] * H[j, k])\nY[i, j] = Y_1[i, j] / 8\nZ[i, j] = X[i, j] * exp(Y[i, j])"
    plan = db.plan(text, outputs=["Z"])
    assert not any(einsum.output.tensor == "Y_1" for einsum in (step.einsum for step in plan.data.decomposed.steps))
    assert plan.data.rewriting.inlined["Y_1"] == "Y"
    expected = mask.toarray() * np.exp(w @ h.T / 8)
    np.testing.assert_allclose(db.run(plan, progress=False)["Z"].to_numpy(), expected, rtol=1e-9)


def test_results_that_somebody_keeps_stay(db: se.Database) -> None:
    db.tensor("Q", Q)
    db.tensor("K", K)
    text = "S[q, t] = sum(Q[q, d] * K[t, d])\nY[q, t] = S[q, t] / 8"
    for options in ({"outputs": ["S", "Y"]}, {"pin": {"S": "q"}}, {"pin": {"Y": "q"}}):
        plan = db.plan(text, layout="any", **options)
        assert not {"Q", "K"} & {read for read, _ in scalings(plan)}


@pytest.mark.parametrize("fill", [0.0, 2.0])
def test_sparse_operands_and_fills(db: se.Database, fill: float) -> None:
    sparse = sp.random_array((900, 900), density=0.02, rng=RNG)
    matrix, factor = np.where(sparse.toarray() == 0, fill, sparse.toarray()), RNG.normal(size=(900, 40))
    db.tensor("A", sparse, fill=fill)
    db.tensor("X", factor)
    plan = db.plan("Y[i, k] = sum(A[i, j] * X[j, k]) / 4\nZ[i, k] = sum(A[i, j] * A[j, k]) / 4")
    assert "A" in {read for read, _ in scalings(plan)}
    results = db.run(plan, progress=False)
    np.testing.assert_allclose(results["Y"].to_numpy(), matrix @ factor / 4, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(results["Z"].to_numpy(), matrix @ matrix / 4, rtol=1e-9, atol=1e-9)


def test_an_infinite_sum_ends_the_run(db: se.Database) -> None:
    db.tensor("Q", np.full_like(Q, 1e200))
    db.tensor("K", np.full_like(K, 1e200))
    with pytest.raises(se.EngineError, match="turned NaN or infinite"):
        db.run(f"{ATTENTION} / 8", progress=False)

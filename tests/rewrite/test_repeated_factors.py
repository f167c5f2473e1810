"""Functions of one factor of a product are computed before the product, where it would compute them repeatedly."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.semantics.dense import evaluate_program

RNG = np.random.default_rng(0)
H, W, SMALL = RNG.normal(size=(60, 50)), RNG.normal(size=(50, 70)), RNG.normal(size=(50, 2))
SPARSE = np.where(RNG.random((60, 50)) < 0.1, H, 0)


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("T[i, m] = sum(exp(H[i, n]) * W[n, m])", 1),
        ("T[i, m] = sum(exp(H[i, n]) * sin(W[n, m]))", 2),
        ("T[i, m] = sum((1 - H[i, n] ^ 2) * H[i, n] * W[n, m])", 1),
        ("T[i, k] = sum(relu(H[i, n]) * W[n, m] * tanh(V[k, m]))", 2),
        ("T[i, m] = sum(relu(S[i, n]) * W[n, m])", 0),  # little is computed again
        ("T[i, m] = sum(exp(S[i, n]) * W[n, m])", 0),  # it would not be sparse
        ("T[i, m] = sum(exp(H[i, n]) * Q[n, m])", 0),  # each is computed twice
        ("T[i, m] = max(exp(H[i, n]) * W[n, m])", 0),
        ("T[i, m] = sum(H[i, n] * W[n, m])", 0),
    ],
)
@pytest.mark.parametrize("rewrite", [True, False])
def test_split_where_it_pays(shared_db: se.Database, text: str, split: int, rewrite: bool) -> None:
    arrays: dict[str, NDArray[Any]] = {"H": H, "W": W, "V": RNG.normal(size=(60, 70)), "Q": SMALL, "S": SPARSE}
    program = se.program(text)
    for name in program.inputs:
        shared_db.tensor(name, scipy.sparse.coo_array(arrays[name]) if name == "S" else arrays[name])
    plan = shared_db.plan(program, rewrite=rewrite)
    einsums = [step.einsum for step in plan.data.decomposed.steps]
    assert sum(len(einsum.operands) == 1 and einsum.aggregate is None for einsum in einsums) == split
    result = shared_db.run(plan, progress=False)["T"].to_numpy()
    expected = evaluate_program(program, {name: arrays[name] for name in program.inputs})["T"]
    np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-10)


def test_a_label_without_indices(db: se.Database) -> None:
    db.tensor("H", np.ones((3, 0)))
    db.tensor("W", np.ones((0, 4)))
    result = db.run("T[i, m] = sum(exp(H[i, n]) * W[n, m])", progress=False)["T"].to_numpy()
    np.testing.assert_array_equal(result, np.zeros((3, 4)))


def test_an_infinite_value_ends_the_run(db: se.Database) -> None:
    """As it does where the product computes the function."""
    h = H.copy()
    h[3, 4] = 1e4
    db.tensor("H", h)
    db.tensor("W", W)
    with pytest.raises(se.EngineError, match="turned NaN or infinite"):
        db.run("T[i, m] = sum(exp(H[i, n]) * W[n, m])", progress=False)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = np.exp(h) @ W
    result = db.run("T[i, m] = sum(exp(H[i, n]) * W[n, m])", nonfinite="allow", progress=False)["T"].to_numpy()
    np.testing.assert_allclose(result, expected, rtol=1e-10)

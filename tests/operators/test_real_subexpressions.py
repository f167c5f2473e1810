"""Real parts of complex expressions are computed in real arithmetic, as numpy does."""

import numpy as np
import pytest

import sparseeinsum as se

A = np.array([1 + 1j, 0, 2, -0.25j])
B = np.array([1.0, 0, 2, -3])
N = np.array([3, 0, -1, 2])

with np.errstate(all="ignore"):
    EXPECTED = {
        "sqrt(abs(A[i]) - 2)": np.sqrt(abs(A) - 2),
        "(abs(A[i]) - 2) ^ 0.5": (abs(A) - 2) ** 0.5,
        "log(-B[i]) + A[i]": np.log(-B) + A,
        "sqrt(B[i] - 2) * A[i]": np.sqrt(B - 2) * A,
        "relu(B[i]) * A[i]": np.maximum(B, 0) * A,
        "where(B[i] > 1, A[i], 0)": np.where(B > 1, A, 0),
        "abs(A[i]) < 2": abs(A) < 2,
        "A[i] * B[i] * (1 / B[i])": A * B * (1 / B),
        "A[i] == A[i] * 1j": A == A * 1j,
        "where(abs(A[i]) > 1, A[i] / N[i], exp(B[i]) * N[i])": np.where(abs(A) > 1, A / N, np.exp(B) * N),
        "max(abs(A[i]), B[i]) * conj(A[i])": np.maximum(abs(A), B) * A.conj(),
        "N[i] ^ 2 * A[i] + N[i] * 1j": N**2 * A + N * 1j,
        "sqrt(B[i]) + sqrt(A[i])": np.sqrt(B) + np.sqrt(A),
    }


@pytest.fixture
def db(shared_db: se.Database) -> se.Database:
    if not shared_db.tensors():
        for name, array in (("A", A), ("B", B), ("N", N)):
            shared_db.tensor(name, array)
    return shared_db


@pytest.mark.parametrize("text", EXPECTED)
def test_numpys_values_and_dtype(db: se.Database, text: str) -> None:
    result = db.run(f"Y[i] = {text}", nonfinite="allow")["Y"].to_numpy()
    assert result.dtype == EXPECTED[text].dtype
    np.testing.assert_allclose(result, EXPECTED[text], rtol=1e-12)


def test_below_an_aggregate(db: se.Database) -> None:
    results = db.run("Y[] = sum(abs(A[i]) < 2)\nZ[] = sum(where(B[i] > 1, A[j], 1))")
    assert results["Y"].to_numpy() == (abs(A) < 2).sum()
    np.testing.assert_allclose(results["Z"].to_numpy(), np.where(B[:, None] > 1, A, 1).sum())


def test_expressions_that_are_complex_anyway_stay_one_einsum(db: se.Database) -> None:
    assert len(db.plan("Y[i] = abs(A[i]) * (B[i] + 1) * 2j").notation()) == 1


@pytest.mark.parametrize("text", ["A[i] < 2", "relu(A[i])", "max(A[i], B[i])", "where(A[i] >= B[i], 1, 0)"])
def test_an_order_of_complex_numbers_is_refused_before_it_runs(db: se.Database, text: str) -> None:
    with pytest.raises(se.SemanticsError, match=r"^Y: complex numbers have no (order.*compare|relu; take it of) abs"):
        db.plan(f"Y[i] = {text}")


def test_a_label_without_indices_leaves_nothing_to_compute() -> None:
    """The square root would be NaN, but the sum has no terms."""
    with se.connect() as db:
        db.tensor("B", np.array([0.25, 4.0]))
        db.tensor("Empty", np.zeros((0, 3), complex))
        result = db.run("Y[i] = sum(sqrt(B[i] - 1) * Empty[l, m])")["Y"].to_numpy()
        np.testing.assert_array_equal(result, [0, 0])

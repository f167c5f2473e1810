"""Sums to which absent entries contribute are split into sparse sums where that is cheaper, and stay exact."""

import numpy as np
import pytest
import scipy.sparse as sp

import sparseeinsum as se

pytestmark = pytest.mark.usefixtures("operators_are_free")
DISTANCES = "D[i, k] = sum((A[i, j] - B[j, k]) ^ 2)"


def sparse(rows: int, columns: int, seed: int) -> sp.csr_array:
    return sp.csr_array(sp.random_array((rows, columns), density=0.02, rng=np.random.default_rng(seed)))


@pytest.fixture
def loaded(db: se.Database) -> se.Database:
    db.tensor("A", sparse(60, 500, 0))
    db.tensor("B", sparse(500, 40, 1))
    return db


def distances(db: se.Database) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    a, b = (db.run(f"C[i, j] = {name}[i, j]")["C"].to_numpy() for name in ("A", "B"))
    return np.asarray(((a[:, :, None] - b[None]) ** 2).sum(axis=1))


def test_squared_distances_of_sparse_vectors(loaded: se.Database) -> None:
    plan = loaded.plan(DISTANCES)
    assert len(plan.notation()) > 1
    assert "D: taken apart into D_1" in plan.explain()
    np.testing.assert_allclose(loaded.run(plan)["D"].to_numpy(), distances(loaded), rtol=1e-12)


@pytest.mark.parametrize("optimizer", ["dp", "greedy", "relational", "dense"])
@pytest.mark.parametrize(
    "join", ["(A[i, j] + 1) * (B[j, k] - 2)", "A[i, j] * A[i, j] - B[j, k]", "(A[i, j] - B[j, k]) ^ 2"]
)
def test_any_polynomial_in_any_plan(loaded: se.Database, join: str, optimizer: str) -> None:
    text = f"D[i, k] = sum({join})"
    expected = loaded.run(text, nonfinite="allow", optimizer="dense")["D"].to_numpy()  # no sum is split
    np.testing.assert_allclose(loaded.run(text, optimizer=optimizer)["D"].to_numpy(), expected, rtol=1e-10, atol=1e-9)


def test_sums_of_dense_operands_are_not_split(db: se.Database) -> None:
    rng = np.random.default_rng(2)
    db.tensor("A", rng.normal(size=(8, 9)))
    db.tensor("B", rng.normal(size=(9, 7)))
    assert len(db.plan(DISTANCES).notation()) == 1
    np.testing.assert_allclose(db.run(DISTANCES)["D"].to_numpy(), distances(db), rtol=1e-12)


def test_sums_of_nonfinite_values_are_not_split(loaded: se.Database) -> None:
    assert len(loaded.plan(DISTANCES, nonfinite="allow").notation()) == 1
    spoilt = sparse(60, 500, 0)
    spoilt.data[0] = np.inf
    loaded.tensor("A", spoilt)
    assert len(loaded.plan(DISTANCES).notation()) == 1
    np.testing.assert_allclose(loaded.run(DISTANCES)["D"].to_numpy(), distances(loaded), rtol=1e-12)


def test_pins_hold_for_the_parts(loaded: se.Database) -> None:
    plan = loaded.plan(DISTANCES, pin={"D": ["i"]})
    assert all(step.promoted <= {"i"} for step in plan.data.decomposed.steps)
    np.testing.assert_allclose(loaded.run(plan)["D"].to_numpy(), distances(loaded), rtol=1e-12)

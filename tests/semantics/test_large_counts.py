"""Counts and folds of fills that float64 or int64 cannot hold are exact or refused."""

import numpy as np
import pytest

import sparseeinsum as se

SIDE = 2**27
ALL = "S[] = sum(G[i, j] == 0)"


@pytest.fixture
def sparse_matrix(db: se.Database) -> se.Database:
    """A matrix of 2^54 entries, one of which is not the fill."""
    db.tensor("G", (np.array([[0], [0]]), np.array([1.0])), shape=(SIDE, SIDE))
    return db


def test_counts_beyond_float64_are_refused(sparse_matrix: se.Database) -> None:
    with pytest.raises(se.SemanticsError, match=r"G == 0 may be true 18,014,398,509,481,984 times, .* counts to 2\^53"):
        sparse_matrix.run(ALL)


def test_counts_of_counts_are_exact(sparse_matrix: se.Database) -> None:
    text = "P[i] = sum[j](G[i, j] == 0)\nS[] = sum(P[i])"
    assert sparse_matrix.run(text)["S"].to_numpy() == SIDE**2 - 1


def test_few_that_are_true_are_counted(sparse_matrix: se.Database) -> None:
    assert sparse_matrix.run("S[] = sum(G[i, j] != 0)")["S"].to_numpy() == 1


@pytest.mark.parametrize(("fill", "aggregate"), [(2**62, "sum"), (3, "prod"), (-3, "prod")])
def test_folds_of_fills_beyond_int64(db: se.Database, fill: int, aggregate: str) -> None:
    db.tensor("I", (np.array([[0]]), np.array([2])), shape=(100,), fill=fill)
    with pytest.raises(se.EngineError, match=r"overflow|out of range"):
        db.run(f"S[] = {aggregate}(I[i])")


@pytest.mark.parametrize("fill", [-1, 0, 1])
def test_products_of_fills_that_stay_small(db: se.Database, fill: int) -> None:
    db.tensor("I", (np.array([[0]]), np.array([2])), shape=(1001,), fill=fill)
    assert db.run("S[] = prod(I[i])")["S"].to_numpy() == 2 * fill**1000


def test_integers_that_floats_would_compute_differently(db: se.Database) -> None:
    """The remainder by 0 is 0 for int64, and NaN for floats; an expression is computed in one dtype."""
    db.tensor("A", np.array([5, 7, -3, 0]))
    db.tensor("Z", np.array([0, 2, 0, 3]))
    for text in (
        "R[i] = where(mod(A[i], Z[i]) == 0, 1.5, 0.5)",
        "R[i] = mod(A[i], Z[i]) * 0.5",
        "R[i] = A[i] ^ A[i] / 2",
    ):
        with pytest.raises(
            se.SemanticsError, match="may differ between whole numbers and float64; give the whole-number"
        ):
            db.run(text)
    apart = db.run("M[i] = mod(A[i], Z[i])\nR[i] = where(M[i] == 0, 1.5, 0.5)")["R"].to_numpy()
    assert apart.tolist() == np.where(np.mod([5, 7, -3, 0], [1, 2, 1, 3]) == 0, 1.5, 0.5).tolist()
    assert db.run("R[i] = mod(A[i], 3) * 0.5 + A[i] ^ 2")["R"].to_numpy().tolist() == [26.0, 49.5, 9.0, 0.0]

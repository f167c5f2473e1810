"""Counted estimates equal the entries of numpy's results, for every set of promoted axes."""

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.errors import PlanError
from sparseeinsum.statistics.estimate import Statistics
from sparseeinsum.statistics.estimators import DEFAULT_ESTIMATOR, ESTIMATORS

Array = NDArray[np.float64]


def positive(shape: tuple[int, ...], density: float, seed: int) -> Array:
    """Positive entries, whose sums and products are not 0."""
    rng = np.random.default_rng(seed)
    return rng.uniform(1, 2, shape) * (rng.random(shape) < density)


def tuples(array: Array, fill: float) -> dict[tuple[int, ...], float]:
    """Tuples for every set of promoted axes, by numpy."""
    counts = {}
    for tiles in itertools.product((0, 1), repeat=array.ndim):
        inside = tuple(axis for axis, tile in enumerate(tiles) if not tile)
        counts[tiles] = float(np.count_nonzero((array != fill).any(axis=inside)))
    return counts


def check(db: se.Database, text: str) -> dict[str, Statistics]:
    """Assert that exact statistics of all results equal those of the results; return the statistics."""
    program = se.program(text)
    names = [einsum.output.tensor for einsum in program.einsums]
    plan = db.plan(program, outputs=names, estimator="exact")
    results = db.run(plan, progress=False)
    for name in names:
        estimate, array = plan.statistics[name], results[name].to_numpy()
        expected = tuples(array, plan.data.decomposed.graph.tensors[name].fill)  # type: ignore[arg-type]
        assert {tiles: estimate.tuples(tiles) for tiles in expected} == expected, name
        assert estimate.entries == expected[(1,) * array.ndim]
        assert estimate.distinct == tuple(
            expected[tuple(int(other == axis) for other in range(array.ndim))] for axis in range(array.ndim)
        )
    return dict(plan.statistics)


@pytest.fixture
def loaded(shared_db: se.Database) -> se.Database:
    """Sparse A, B, C, V; dense D; nothing in N."""
    arrays = {
        "A": positive((6, 7), 0.2, 1),
        "B": positive((7, 8), 0.2, 2),
        "C": positive((6, 7), 0.2, 3),
        "Q": positive((7, 7), 0.3, 4),
        "T": positive((6, 7, 5), 0.05, 5),
        "D": positive((6, 7), 1.0, 6),
        "N": np.zeros((6, 7)),
        "V": positive((6,), 0.5, 7),
    }
    for name, array in arrays.items():
        shared_db.tensor(name, array, promoted=["dim_0"] if name in "AT" else None)
    return shared_db


@pytest.mark.parametrize(
    "text",
    [
        "R[i, k] = sum(A[i, j] * B[j, k])",
        "R[i, l] = sum(sum[j](A[i, j] * B[j, k]) * B[l, k])\nS[i] = sum(R[i, l])",
        "R[i, j] = A[i, j] * C[i, j]\nS[j] = sum(R[i, j])",
        "R[i, j] = A[i, j] + C[i, j]",
        "R[j] = sum(A[i, j] + C[i, j])",
        "R[i, j] = A[i, j] * (V[i] + 1)",
        "R[i, j] = (V[i] + 1) * A[i, j]",
        "R[i, j] = A[i, j] * V[i]",
        "R[i, j, k] = A[i, j] * V[k]\nS[j] = sum(R[i, j, k])",
        "R[i, j] = exp(A[i, j])",
        "R[i] = Q[i, i]\nS[] = sum(Q[i, i])",
        "R[i, j] = Q[i, i] * Q[i, j]",
        "R[i] = sum(A[i, j])\nS[j] = max(A[i, j])\nU[] = sum(A[i, j])",
        "R[i, j, k] = 2 * T[i, j, k]\nS[i, k] = sum(R[i, j, k])",
        "R[i, j, k] = T[i, j, k] * D[i, j]",
        "R[i, l] = sum(A[i, j] * D[l, j])\nS[i, j] = D[i, j] + A[i, j]\nU[i, j] = A[i, j] * 0.5 + R[i, i] * D[i, j]",
        "R[i, j] = V[i] * D[i, j]\nS[i, j] = R[i, j] + A[i, j]\nU[j] = sum(S[i, j])",
        "R[i, j] = A[i, j] * D[i, j]\nS[i, k] = sum(R[i, j] * R[k, j])",
        "R[i, k] = sum(N[i, j] * B[j, k])\nS[i, k] = exp(R[i, k])\nU[i] = sum(R[i, k])",
    ],
)
def test_as_numpy_counts(loaded: se.Database, text: str) -> None:
    check(loaded, text)


def test_values_that_cancel_count(db: se.Database) -> None:
    db.tensor("A", np.array([[1.0, 1.0]]))
    db.tensor("B", np.array([[1.0, 0.0], [-1.0, 0.0]]))
    plan = db.plan("R[i, k] = sum(A[i, j] * B[j, k])", estimator="exact")
    assert plan.statistics["R"].entries == 1
    assert db.run(plan, progress=False)["R"].to_numpy().tolist() == [[0, 0]]


def test_many_axes(db: se.Database) -> None:
    """Of this many sets of axes, only some are counted."""
    array = positive((2, 3, 2, 3, 2), 0.2, 8)
    db.tensor("A", array)
    estimate = db.plan("R[i, j, k, l, m] = 2 * A[i, j, k, l, m]", estimator="exact").statistics["R"]
    expected = tuples(array, 0)
    for tiles, count in expected.items():
        if sum(tiles) in (0, 1, 5):
            assert estimate.tuples(tiles) == count
        else:
            assert estimate.tuples(tiles) == pytest.approx(count, rel=0.5)


class TestOption:
    TEXT = "B[i, k] = sum(A[i, j] * A[j, k])\nC[i, l] = sum(B[i, k] * A[k, l])"

    @staticmethod
    def skewed() -> Array:
        weights = (np.arange(100) + 1.0) ** -0.9
        return positive((100, 100), 1, 9) * (
            np.random.default_rng(10).random((100, 100)) < 3 * np.outer(weights, weights)
        )

    def test_better_estimators_are_closer_to_the_truth(self, db: se.Database) -> None:
        array = self.skewed()
        db.tensor("A", array, promoted=["dim_0", "dim_1"])
        true = np.count_nonzero(array @ array @ array)
        errors = []
        for name in ESTIMATORS:
            plan = db.plan(self.TEXT, estimator=name)
            errors.append(abs(np.log(plan.statistics["C"].entries / true)))
            np.testing.assert_allclose(db.run(plan, progress=False)["C"].to_numpy(), array @ array @ array)
        assert errors[0] > 2 * errors[1] > 2 * errors[2] == 0

    def test_default(self, db: se.Database) -> None:
        db.tensor("A", self.skewed())
        assert db.plan(self.TEXT).statistics == db.plan(self.TEXT, estimator=DEFAULT_ESTIMATOR).statistics
        db.run(self.TEXT, estimator="exact", progress=False)

    def test_unknown_estimators_are_refused(self, db: se.Database) -> None:
        db.tensor("A", self.skewed())
        with pytest.raises(PlanError, match="no estimator 'sketched'; did you mean sketch"):
            db.plan(self.TEXT, estimator="sketched")

    def test_graphs_without_sparse_inputs(self, db: se.Database) -> None:
        db.tensor("A", np.ones((3, 4)))
        for name in ESTIMATORS:
            estimate = db.plan("B[i] = sum(A[i, j])", estimator=name).statistics["B"]
            assert (estimate.entries, estimate.distinct) == (3, (3,))

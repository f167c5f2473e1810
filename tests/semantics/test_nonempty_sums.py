"""A sum over all entries of a tensor that has some is no fill, so that what divides by it may stay sparse."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.dbt_project.assumptions import assumptions

pytestmark = pytest.mark.engines("duckdb", "postgresql")

SHARES = "Q[i, k] = Y[i, k] / sum[a, b](Y[a, b])"
SHAPE = (40, 30)


def entries(values: float | NDArray[np.float64] = 1.0) -> sp.coo_array:
    matrix = sp.random_array(SHAPE, density=0.02, rng=np.random.default_rng(5)).tocoo()
    matrix.data[:] = values
    return matrix


def test_positive_entries_have_a_sum_that_divides(db: se.Database) -> None:
    matrix = entries()
    db.tensor("Y", matrix)
    result = db.run(SHARES)["Q"]
    assert result.to_scipy().nnz == matrix.nnz
    np.testing.assert_allclose(result.to_numpy(), matrix.toarray() / matrix.nnz)


@pytest.mark.parametrize("values", [0.0, None], ids=["no entries", "entries of both signs"])
def test_sums_that_may_be_zero_divide_all_indices(db: se.Database, values: float | None) -> None:
    matrix = entries(0.0 if values is not None else np.resize([1.0, -1.0], entries().nnz))
    total = matrix.data.sum()
    db.tensor("Y", matrix)
    with np.errstate(all="ignore"):
        expected = matrix.toarray() / total
    if np.isfinite(expected).all():
        np.testing.assert_allclose(db.run(SHARES)["Q"].to_numpy(), expected)
    else:
        with pytest.raises(se.EngineError, match="turned NaN or infinite"):
            db.run(SHARES)


def test_plans_are_refused_for_a_tensor_that_lost_its_entries(db: se.Database) -> None:
    db.tensor("Y", entries())
    plan = db.plan(SHARES)
    db.tensor("Y", np.zeros(SHAPE))
    with pytest.raises(se.OutdatedPlanError, match="Y has changed"):
        db.run(plan)


def test_entries_beside_the_diagonal_are_not_summed(db: se.Database) -> None:
    beside = np.zeros((6, 6))
    beside[0, 1] = 2.0
    db.tensor("D", beside)
    db.tensor("v", [0.0, 3.0, 0.0])
    with pytest.raises(se.EngineError, match="turned NaN or infinite"):
        db.run("Q[i] = v[i] / sum[a](D[a, a])")


def test_models_need_an_entry_only_where_they_rely_on_it(db: se.Database) -> None:
    db.tensor("Y", entries())
    relying, not_relying = (assumptions(db.plan(text).data)["Y"] for text in (SHARES, "Q[i, k] = 2 * Y[i, k]"))
    assert relying.values.has_entries
    assert not not_relying.values.has_entries

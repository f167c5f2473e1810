"""argmax and argmin return numpy's indices, and stay sparse where that is cheaper."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.plans.result_sizes import result_sizes
from sparseeinsum.rewrite import first_match

Matrix = NDArray[np.float64]

BOTH = "P[i] = argmax[j](X[i, j]); Q[j] = argmin[i](X[i, j])"


@pytest.fixture
def always_sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Absent tuples are never filled in, whatever the cost."""
    monkeypatch.setattr(first_match, "_MOST_SHARE", np.inf)


def load(db: se.Database, x: Matrix, fill: float, promoted: tuple[str, ...] = ("dim_0", "dim_1")) -> None:
    """Store all entries other than the fill, and one that is the fill, if there is one."""
    is_stored = (x != fill) | np.isnan(x)
    is_stored |= np.cumsum(x.reshape(-1) == fill).reshape(x.shape) == 1
    rows, columns = np.nonzero(is_stored)
    db.tensor("X", ([rows, columns], x[rows, columns]), shape=x.shape, fill=fill)
    if promoted != ("dim_0", "dim_1"):
        db.tensor("X", x, fill=fill, promoted=promoted)


def check(db: se.Database, x: Matrix, optimizer: str = "dp", nonfinite: str = "error") -> None:
    results = db.run(BOTH, optimizer=optimizer, nonfinite=nonfinite)
    assert results["P"].schema.tensor.dtype == "int64"
    np.testing.assert_array_equal(results["P"].to_numpy(), x.argmax(axis=1))
    np.testing.assert_array_equal(results["Q"].to_numpy(), x.argmin(axis=0))


@st.composite
def matrices(draw: st.DrawFn) -> tuple[Matrix, float]:
    """Few distinct values, so that most rows have ties, also at their beginning; and a fill."""
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 6)))
    values = [-2.0, -1.0, 0.0, 1.0, 1.0]
    values += draw(st.sampled_from([[], [np.inf], [-np.inf], [np.nan]]))
    flat = draw(st.lists(st.sampled_from(values), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    return np.array(flat).reshape(shape), draw(st.sampled_from([0.0, 1.0, -np.inf]))


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.usefixtures("always_sparse")
@given(matrix=matrices(), optimizer=st.sampled_from(["dp", "relational", "dense"]))
def test_absent_entries_hold_the_fill(shared_db: se.Database, matrix: tuple[Matrix, float], optimizer: str) -> None:
    x, fill = matrix
    load(shared_db, x, fill)
    check(shared_db, x, optimizer)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    matrix=matrices(),
    promoted=st.sampled_from([("dim_0", "dim_1"), ("dim_0",), ("dim_1",), ()]),
    nonfinite=st.sampled_from(["error", "allow"]),
)
def test_every_decomposition(
    shared_db: se.Database, matrix: tuple[Matrix, float], promoted: tuple[str, ...], nonfinite: str
) -> None:
    x, fill = matrix
    load(shared_db, x, fill, promoted)
    check(shared_db, x, nonfinite=nonfinite)


def sparse(shape: tuple[int, int], entries: int) -> Matrix:
    """Rows without entries, with few entries, with negative values alone, and with a run of these at the beginning."""
    rng = np.random.default_rng(5)
    x = np.zeros(shape)
    x.reshape(-1)[rng.choice(x.size, entries, replace=False)] = rng.normal(-1, 1, entries)
    for row in range(3, 9):
        x[row] = np.minimum(x[row], 0)
        x[row, :row] = -1
    return x


@pytest.mark.engines("duckdb", "postgresql")
@pytest.mark.usefixtures("always_sparse")
def test_sparse_searches_on_every_engine(db: se.Database) -> None:
    x = sparse((12, 20), 60)
    load(db, x, 0)
    assert any("after_j" in line for line in db.plan(BOTH).notation())
    check(db, x)


@pytest.mark.engines("duckdb", reason="by the constants of PostgreSQL, another plan of it is cheaper")
@pytest.mark.usefixtures("operators_are_free")
@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_sparse_rows_stay_sparse(db: se.Database, dtype: str) -> None:
    x = np.round(sparse((1500, 1500), 3000) * 3).astype(dtype)
    load(db, x, 0)
    plan = db.plan("P[i] = argmax[j](X[i, j])")
    assert any("after_j" in line for line in plan.notation())
    results = [step.einsum.output.tensor for step in plan.data.decomposed.steps]
    assert max(result_sizes(plan.data, name).tuples for name in results) < x.size / 10
    np.testing.assert_array_equal(db.run(plan)["P"].to_numpy(), x.argmax(axis=1))
    again = db.load_plan(plan.to_json())
    np.testing.assert_array_equal(db.run(again)["P"].to_numpy(), x.argmax(axis=1))
    check(db, x)


def test_dense_rows_are_searched_as_they_are(db: se.Database) -> None:
    db.tensor("X", np.random.default_rng(0).normal(size=(50, 7)))
    assert len(db.plan("P[i] = argmax[j](X[i, j])").notation()) == 4


@pytest.mark.usefixtures("always_sparse")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P[] = argmax(X[i, j] * one[j])", None),
        ("P[] = argmax(V[j])", lambda x: x[3].argmax()),
        ("P[i] = argmax[j](2 - abs(X[i, j]))", lambda x: (2 - np.abs(x)).argmax(1)),
        ("P[i] = argmax[j](X[i, j] > 0)", lambda x: (x > 0).argmax(1)),
        ("P[k] = argmax[j](sum(X[i, j] * X[i, k]))", lambda x: (x.T @ x).argmax(1)),
        ("P[] = sum(X[i, j] * (argmax[k](X[i, k]) == index(j)))", lambda x: x.max(1).sum()),
        ("P[i, k] = argmax[j](X[i, j] * V[k])", lambda x: (x[:, None] * x[3][:, None]).argmax(2)),
        ("P[i, FOLLOWING] = argmax[j](X[i, j] * V[FOLLOWING])", lambda x: (x[:, None] * x[3][:, None]).argmax(2)),
        ("P[i] = min[j](where(X[i, j] == max[k](X[i, k]), index(j), bound(j)))", lambda x: x.argmax(1)),
        ("P[i] = argmax[j](X[i, j]) - argmin[j](X[i, j])", lambda x: x.argmax(1) - x.argmin(1)),
    ],
)
def test_results_in_larger_programs(shared_db: se.Database, text: str, expected: object) -> None:
    x = sparse((12, 20), 40)
    load(shared_db, x, 0)
    shared_db.tensor("V", x[3])
    if expected is None:
        with pytest.raises(se.ParseError, match="argmax takes one label, not i, j"):
            shared_db.run(text)
        return
    assert callable(expected)
    np.testing.assert_allclose(shared_db.run(text)["P"].to_numpy(), expected(x), atol=1e-12)


def test_axes_without_indices(shared_db: se.Database) -> None:
    """The result is the bound, which is no index; numpy refuses."""
    shared_db.tensor("X", np.zeros((3, 0)))
    np.testing.assert_array_equal(shared_db.run("P[i] = argmax[j](X[i, j])")["P"].to_numpy(), [0, 0, 0])


def test_complex_numbers_have_no_order(shared_db: se.Database) -> None:
    shared_db.tensor("X", np.array([[1j, 2]]))
    with pytest.raises(se.SemanticsError, match="complex"):
        shared_db.run("P[i] = argmax[j](X[i, j])")


def test_data_that_change_after_planning(db: se.Database) -> None:
    x = sparse((30, 40), 60)
    load(db, x, 0)
    plan = db.plan("P[i] = argmax[j](X[i, j])")
    db.connection.execute("DELETE FROM X WHERE dim_1 < 5; UPDATE X SET val = -val")
    rows = db.connection.execute("SELECT * FROM X").fetchall()
    x = np.zeros_like(x)
    for i, j, value in rows:
        x[i, j] = value
    np.testing.assert_array_equal(db.run(plan)["P"].to_numpy(), x.argmax(axis=1))

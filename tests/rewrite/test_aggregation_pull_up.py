"""Sums pulled up above a join, where that is cheaper, give the same results."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from random_runs import random_runs

import sparseeinsum as se

TRIANGLES = "T[] = sum(L[i, j] * L[j, k] * L[i, k])"
SAMPLED = "S[i, k] = M[i, k] * sum(L[i, j] * L[j, k])"


def graph(nodes: int = 1500, density: float = 0.004, dtype: str = "float64") -> NDArray[np.float64]:
    weights = sp.random_array((nodes, nodes), density=density, rng=np.random.default_rng(0)).toarray() * 10
    return np.asarray(np.ceil(weights).astype(dtype))


def load(db: se.Database, **arrays: NDArray[np.float64]) -> None:
    for name, array in arrays.items():
        db.tensor(name, sp.coo_array(array))


def sums_late(plan: se.Plan) -> bool:
    """Whether some EinSum of two operands aggregates nothing, and leaves that to the one that reads it."""
    return any(step.einsum.aggregate is None and len(step.einsum.labels) == 3 for step in plan.data.decomposed.steps)


@pytest.mark.engines("duckdb", reason="at the prices of PostgreSQL these are summed first")
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64"])
def test_triangles_are_joined_before_they_are_summed(db: se.Database, dtype: str) -> None:
    array = graph()
    load(db, L=array.astype(dtype))
    plan = db.plan(TRIANGLES)
    assert sums_late(plan) and plan.cost < db.plan(TRIANGLES, rewrite=False).cost
    np.testing.assert_allclose(db.run(plan)["T"].to_numpy(), (array * (array @ array)).sum(), rtol=1e-5)


@pytest.mark.engines("duckdb", "postgresql")
def test_pulled_up_sums_are_the_same(db: se.Database) -> None:
    array = graph()
    load(db, L=array)
    np.testing.assert_allclose(db.run(TRIANGLES)["T"].to_numpy(), (array * (array @ array)).sum(), rtol=1e-9)


def test_a_product_is_joined_with_its_mask_before_it_is_summed(db: se.Database) -> None:
    array, mask = graph(), graph(density=0.001)[::-1] - 3.0
    mask[mask == -3] = 0
    load(db, L=array, M=mask)
    plan = db.plan(SAMPLED)
    assert sums_late(plan)
    np.testing.assert_allclose(db.run(plan)["S"].to_numpy(), mask * (array @ array), rtol=1e-9)


@pytest.mark.engines("duckdb", reason="at the prices of PostgreSQL these are summed first")
def test_literals_around_a_sum_stay(db: se.Database) -> None:
    array = graph()
    load(db, L=array)
    plan = db.plan("T[i] = -sum(L[i, j] * L[j, k] * L[i, k]) / 6")
    assert sums_late(plan)
    np.testing.assert_allclose(db.run(plan)["T"].to_numpy(), -(array * (array @ array)).sum(axis=1) / 6, rtol=1e-9)


def test_cycles_of_four(db: se.Database) -> None:
    array = graph(100, 0.05)
    load(db, L=array)
    result = db.run("C[] = sum(L[i, j] * L[j, k] * L[k, l] * L[l, i])")["C"].to_numpy()
    np.testing.assert_allclose(result, np.trace(np.linalg.matrix_power(array, 4)), rtol=1e-9)


def test_dense_and_shared_results_are_summed_first(db: se.Database) -> None:
    rng = np.random.default_rng(0)
    db.tensor("L", rng.normal(size=(60, 60)))
    assert not sums_late(db.plan(TRIANGLES))
    load(db, L=graph())
    twice = "P[i, k] = sum(L[i, j] * L[j, k])\nS[i, k] = L[i, k] * P[i, k]\nT[i] = max(P[i, k])"
    assert not sums_late(db.plan(twice))
    assert not sums_late(db.plan(TRIANGLES, rewrite=False))
    assert not sums_late(db.plan(TRIANGLES.replace("i", "I")))
    assert not sums_late(db.plan(TRIANGLES, nonfinite="allow"))


@pytest.mark.parametrize("value", [np.inf, np.nan, 1e200])
def test_possibly_nonfinite_values_are_summed_as_written(db: se.Database, value: float) -> None:
    """0 times infinity is NaN in all terms of a sum, or only in those that are joined."""
    array = graph(60, 0.4)
    mask = graph(60, 0.1)
    array[3, 4] = value
    load(db, L=array, M=mask)
    text = SAMPLED
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(db.run(text)["S"].to_numpy(), mask * (array @ array), rtol=1e-9)


def test_terms_of_whole_numbers_may_not_overflow_where_sums_do_not(db: se.Database) -> None:
    first = np.zeros((40, 40), dtype="int64")
    first[:, 0], first[:, 1] = 2**32, -(2**32)
    second = np.zeros((40, 40), dtype="int64")
    second[:2] = 2**20
    load(db, A=first, B=second, M=np.full((40, 40), 2**20))
    plan = db.plan("S[i, k] = M[i, k] * sum(A[i, j] * B[j, k])")
    assert not sums_late(plan)
    assert not db.run(plan)["S"].to_numpy().any()


@pytest.mark.engines("duckdb", reason="at the prices of PostgreSQL these are summed first")
def test_other_data_may_make_a_plan_wrong(db: se.Database) -> None:
    load(db, L=graph())
    plan = db.plan(TRIANGLES)
    assert sums_late(plan)
    db.connection.execute("UPDATE L SET val = 'nan' WHERE dim_0 = (SELECT min(dim_0) FROM L)")
    with pytest.raises(se.EngineError, match="plan again"):
        db.run(plan)


@pytest.mark.engines("duckdb", reason="at the prices of PostgreSQL these are summed first")
def test_a_plan_that_is_saved(db: se.Database) -> None:
    array = graph()
    load(db, L=array)
    again = db.load_plan(db.plan(TRIANGLES).to_json())
    assert sums_late(again)
    np.testing.assert_allclose(db.run(again)["T"].to_numpy(), (array * (array @ array)).sum(), rtol=1e-9)


@random_runs(12)
@given(data=st.data())
def test_random_cycles(data: st.DataObject) -> None:
    nodes = data.draw(st.integers(40, 70))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    arrays = {
        name: np.where(rng.random((nodes, nodes)) < data.draw(st.sampled_from([0.01, 0.1, 0.4])), rng.normal(), 0.0)
        for name in "ABC"
    }
    fill = data.draw(st.sampled_from([0.0, 0.0, 1.0]))
    db = se.connect()
    for name, array in arrays.items():
        coordinates = np.nonzero(array)
        db.tensor(name, (coordinates, array[coordinates]), shape=array.shape, fill=fill if name == "A" else 0.0)
    arrays["A"] = np.where(arrays["A"] == 0, fill, arrays["A"])
    spec = data.draw(st.sampled_from(["ij,jk,ik->", "ij,jk,ik->ik", "ij,jk,ki->j", "ij,kj,ik->ij"]))
    inputs, output = spec.split("->")
    factors = " * ".join(f"{name}[{', '.join(labels)}]" for name, labels in zip("ABC", inputs.split(","), strict=True))
    result = db.run(f"Y[{', '.join(output)}] = sum[{', '.join(set('ijk') - set(output))}]({factors})")["Y"].to_numpy()
    np.testing.assert_allclose(result, np.einsum(spec, *arrays.values()), rtol=1e-9, atol=1e-9)

"""Operands of which every tuple must be present are read from one array in memory, and give numpy's results."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from program_cases import Case, check
from random_programs import FAMILIES, cases
from random_runs import random_runs

import sparseeinsum as se
from sparseeinsum.algebra import translate

pytestmark = pytest.mark.engines("duckdb", reason="no other engine keeps arrays in memory")

COMMENT = "all tuples in one array in memory"
SUMS = "H[i, h] = sigmoid(A[i, h])\nY[i, k] = sum[h](H[i, h] * W[h, k])"  # absent rows of A become 0.5
PIN = {"H": {"i": 1}, "Y": {"i": 1}}


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of any size are put into memory."""
    monkeypatch.setattr(translate, "_LEAST_RESIDENT_BYTES", 1)


def load_rows(db: se.Database, array: NDArray[Any]) -> None:
    """Store a matrix as arrays of its rows, but those of zeros."""
    db.tensor("A", sp.coo_array(array), axes=["i", "h"], layout="A[I, h]")


@pytest.mark.parametrize("family", FAMILIES)
def test_random_programs(shared_db: se.Database, everywhere: None, family: str) -> None:
    @random_runs(30)
    @given(st.sampled_from(["dp", "greedy", "relational"]).flatmap(lambda optimizer: cases(family, optimizer)))
    def run(case: Case) -> None:
        check(shared_db, case)

    run()


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("rows", [599, 1, 0])
def test_absent_rows_hold_the_fill(db: se.Database, dtype: str, rows: int) -> None:
    a = np.zeros((600, 64 if dtype != "float32" else 128), dtype)
    a[:rows] = np.random.default_rng(0).integers(1, 5, (rows, a.shape[1]))
    w = np.random.default_rng(1).integers(-2, 3, (a.shape[1], 20)).astype(dtype)
    load_rows(db, a)
    db.tensor("W", w)
    text = SUMS.replace("sigmoid(A[i, h])", "A[i, h] + 1")
    plan = db.plan(text, pin=PIN, rewrite=False)
    assert COMMENT in plan.sql()
    assert "JOIN" not in plan.sql().replace("CROSS JOIN", "")
    np.testing.assert_array_equal(db.run(plan)["Y"].to_numpy(), (a + 1) @ w)


def test_two_keys(db: se.Database) -> None:
    a = np.random.default_rng(2).random((30, 20, 100)) * (np.arange(20) % 3 > 0)[:, None]
    w = np.random.default_rng(3).random((100, 4))
    db.tensor("A", sp.coo_array(a), axes=["j", "i", "h"], layout="A[J, I, h]")
    db.tensor("W", w)
    text = "H[i, j, h] = exp(A[j, i, h])\nY[i, j, k] = sum[h](H[i, j, h] * W[h, k])"
    plan = db.plan(text, pin={"H": {"i": 1, "j": 1}, "Y": {"i": 1, "j": 1}}, rewrite=False)
    assert COMMENT in plan.sql()
    np.testing.assert_allclose(db.run(plan)["Y"].to_numpy(), np.exp(a).transpose(1, 0, 2) @ w)


def test_few_numbers_and_arrays_beyond_memory_are_joined(db: se.Database) -> None:
    a = np.random.default_rng(4).random((600, 64)) * (np.arange(600) % 2)[:, None]
    db.tensor("W", np.random.default_rng(5).random((64, 20)))
    load_rows(db, a[:100])
    assert COMMENT not in db.plan(SUMS, pin=PIN, rewrite=False).sql()
    load_rows(db, a)
    assert COMMENT in db.plan(SUMS, pin=PIN, rewrite=False).sql()
    db.connection.execute("SET memory_limit = '4MB'")
    assert COMMENT not in db.plan(SUMS, pin=PIN, rewrite=False).sql()

"""Results that are collected in memory are those of Arrow batches, and numpy's, whatever programs compute them."""

import gc
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from indexing import compress_wherever_possible
from numpy.typing import NDArray
from program_cases import Case, check
from random_programs import FAMILIES, cases
from random_runs import random_runs

import sparseeinsum as se
from sparseeinsum.algebra.translate import delivered_relation
from sparseeinsum.engines.duckdb import collected_tuples
from sparseeinsum.kernels.duckdb.library import require_library

pytestmark = pytest.mark.engines("duckdb", reason="the client reads memory of its own process")

NEVER = 1 << 62
ROWS = 500
PROGRAMS = {  # and the labels that keys have
    "rows of two keys": ("Y[i, j, r] = sum(T[i, j, k] * U[k, r])", "ijk"),
    "rows of one key": ("Y[i, k] = sum(A[i, j] * B[j, k])", "ij"),
    "complex numbers": ("Y[i, j] = C[i, j] * C[i, j]", "i"),
    "groups of arrays": ("Y[j, k] = max(S[i, j, k])", "ij"),
    "one array": ("Y[i] = 2 * V[i] + 1", ""),
}


@pytest.fixture
def set_least(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets from how many bytes on results are collected."""
    return lambda least: monkeypatch.setattr(collected_tuples, "_LEAST_BYTES", least)


@pytest.fixture
def set_density(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets from which share of tuples on the arrays of all keys are written in one place."""
    return lambda density: monkeypatch.setattr(collected_tuples, "_PLACED_DENSITY", density)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("density", [0, NEVER], ids=["all keys", "tuples"])
def test_random_programs(
    shared_db: se.Database,
    set_least: Callable[[int], None],
    set_density: Callable[[float], None],
    density: float,
    family: str,
) -> None:
    set_least(0)
    set_density(density)

    @random_runs(20)
    @given(st.sampled_from(["dp", "relational", "dense"]).flatmap(lambda optimizer: cases(family, optimizer)))
    def run(case: Case) -> None:
        check(shared_db, case)

    run()


def sparse_array(seed: int, *shape: int) -> NDArray[Any]:
    rng = np.random.default_rng(seed)
    return rng.integers(1, 9, shape) * (rng.random(shape) < 0.05)


@pytest.fixture
def loaded(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> se.Database:
    """A database with sparse tensors, whose plans put operands into memory wherever they can."""
    compress_wherever_possible(monkeypatch)
    shapes = {"A": (ROWS, 40), "B": (40, 30), "V": (40,), "U": (6, 5), "T": (40, 50, 6), "S": (40, 50, 6)}
    for seed, (name, shape) in enumerate(shapes.items()):
        db.tensor(name, sparse_array(seed, *shape).astype(float))
    db.tensor("C", sparse_array(9, 60, 40) * (1 + 2j))
    return db


def sorted_rows(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=repr)


@pytest.mark.parametrize("name", PROGRAMS)
def test_tuples_are_those_of_arrow_batches(
    loaded: se.Database, set_least: Callable[[int], None], set_density: Callable[[float], None], name: str
) -> None:
    set_density(NEVER)
    text, keys = PROGRAMS[name]
    plan = loaded.plan(text, layout="any", pin={"Y": keys})
    set_least(NEVER)
    expected = loaded.run(plan)["Y"]
    set_least(0)
    results: list[se.TensorResult] = []
    for _ in range(3):  # the third run reads what the second one has kept
        before = require_library().count_kept()
        results.append(result := loaded.run(plan)["Y"])
        assert require_library().count_kept() > before
        assert result.rows.schema.equals(expected.rows.schema)
        assert sorted_rows(result.rows) == sorted_rows(expected.rows)
        np.testing.assert_array_equal(result.to_numpy(), expected.to_numpy())


@pytest.mark.parametrize("name", sorted(PROGRAMS.keys() - {"complex numbers"}))
def test_arrays_of_all_keys_are_one_array_without_a_copy(
    loaded: se.Database, set_least: Callable[[int], None], set_density: Callable[[float], None], name: str
) -> None:
    text, keys = PROGRAMS[name]
    plan = loaded.plan(text, layout="any", pin={"Y": keys})
    set_least(NEVER)
    expected = loaded.run(plan)["Y"].to_numpy()
    set_least(0)
    set_density(0)
    result = loaded.run(plan)["Y"]
    array = np.array(result, copy=False)
    np.testing.assert_array_equal(array, expected)
    assert np.shares_memory(array, np.asarray(result))
    assert np.shares_memory(array, result.to_numpy(copy=False))
    assert not array.flags.writeable
    assert result.arrow().num_rows == np.count_nonzero(expected != result.fill)
    copied = result.to_numpy()
    copied[...] = 7  # the result stays as it is
    np.testing.assert_array_equal(result.to_numpy(), expected)


def test_an_array_outlives_its_result_and_the_database(set_least: Callable[[int], None]) -> None:
    set_least(0)
    gc.collect()  # databases of other tests, with what they keep
    kept = require_library().count_kept()
    numbers = np.arange(600.0).reshape(20, 30)
    with se.connect() as db:
        db.tensor("A", numbers)
        array = np.asarray(db.run("Y[i, j] = A[i, j] * 2", layout="any")["Y"])
    np.testing.assert_array_equal(array, numbers * 2)
    assert require_library().count_kept() == kept + 1
    part = array[3:5].T
    del array
    np.testing.assert_array_equal(part, numbers[3:5].T * 2)
    del part
    gc.collect()
    assert require_library().count_kept() == kept


def test_keys_without_a_tuple_have_the_fill(
    db: se.Database, set_least: Callable[[int], None], set_density: Callable[[float], None]
) -> None:
    set_least(0)
    set_density(0)
    db.tensor("A", sp.coo_array(([1.0, 2.0], ([1, 3], [0, 2])), (5, 4)), fill=math.inf)
    db.tensor("D", np.array([0.5, 0.25, 0.0, 1.0]))
    result = db.run("Y[i, j] = A[i, j] + D[j]", layout="any", pin={"Y": "i"})["Y"]
    expected = np.full((5, 4), math.inf)
    expected[1, 0], expected[3, 2] = 1.5, 2.0
    np.testing.assert_array_equal(np.asarray(result), expected)


@pytest.mark.parametrize("name", ["rows of two keys", "rows of one key"])
def test_numbers_of_tuples_that_rows_have_are_not_computed_again(loaded: se.Database, name: str) -> None:
    text, keys = PROGRAMS[name]
    plan = loaded.plan(text, layout="any", pin={"Y": keys}).data
    (statement,) = plan.statements.for_run
    query = statement.collecting_text(delivered_relation(plan.decomposed, "Y").schema)
    assert "row_number" in query
    assert "//" not in query
    assert "WHERE" not in query

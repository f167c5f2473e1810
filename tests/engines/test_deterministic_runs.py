"""Deterministic runs return the same bits for any number of threads."""

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import sparseeinsum as se
from sparseeinsum.kernels.blas import find_blas

SUMS = """
T[i, k] = sum(A[i, j] * B[j, k])
y[k] = sum(T[i, k])
s[] = sum(A[i, j])
m[] = mean(exp(A[i, j]))
"""


@pytest.fixture
def sums(db: se.Database) -> se.Database:
    """Unordered entries in several row groups, which threads share."""
    rng = np.random.default_rng(0)
    db.tensor("A", sp.random_array((40_000, 500), density=0.02, rng=rng, data_sampler=rng.standard_normal))
    db.tensor("B", rng.standard_normal((500, 8)))
    return db


def bits(results: Mapping[str, se.TensorResult]) -> dict[str, bytes]:
    """The bytes of results, whatever the order of their rows."""
    return {name: result.to_numpy().tobytes() for name, result in results.items()}


def set_threads(db: se.Database, threads: int) -> None:
    engine = db._engine
    if engine.dialect_name == "duckdb":
        db.connection.execute(f"SET threads = {threads}")
    else:
        db.connection.execute(f"SET max_parallel_workers_per_gather = {threads - 1}")
        db.connection.commit()


@pytest.mark.engines("duckdb", "postgresql")
def test_programs_and_plans_give_equal_bits(sums: se.Database) -> None:
    results = []
    for threads in (1, 4, 2, 4):
        set_threads(sums, threads)
        results.append(bits(sums.run(SUMS, outputs=["T"], deterministic=True)))
    assert all(result == results[0] for result in results)
    set_threads(sums, 4)
    plan = sums.plan(SUMS)
    again = []
    for threads in (4, 1, 3):
        set_threads(sums, threads)
        again.append(bits(sums.run(plan, deterministic=True)))
    assert all(result == again[0] for result in again)


@pytest.mark.engines("duckdb", "postgresql")
def test_streams_and_tables(sums: se.Database) -> None:
    expected = sums.run(SUMS, deterministic=True)["y"].to_numpy()
    set_threads(sums, 4)
    with sums.stream(SUMS, deterministic=True) as results:
        streamed = np.zeros(8)
        for batch in results["y"]:
            streamed[batch["k"].to_numpy()] = batch["val"].to_numpy()
    assert streamed.tobytes() == expected.tobytes()


def settings(db: se.Database) -> Any:  # noqa: ANN401  # rows
    names = (
        ("threads",)
        if db._engine.dialect_name == "duckdb"
        else ("max_parallel_workers_per_gather", "synchronize_seqscans")
    )
    return [db._engine.rows(f"SELECT current_setting('{name}')") for name in names]


@pytest.mark.engines("duckdb", "postgresql")
def test_settings_are_restored(sums: se.Database) -> None:
    set_threads(sums, 3)
    before = settings(sums)
    sums.run(SUMS, deterministic=True)
    assert settings(sums) == before
    with pytest.raises(se.EngineError, match="infinite"):
        sums.run("Y[i] = sum(1 / B[i, j] * 0 + exp(1000 * B[i, j]))", deterministic=True)
    assert settings(sums) == before


@pytest.mark.engines("postgresql", reason="DuckDB has no transaction within another")
def test_settings_are_restored_in_a_users_transaction(sums: se.Database) -> None:
    before = settings(sums)
    with sums.connection.transaction():
        sums.connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        sums.run(SUMS, deterministic=True)
        assert settings(sums) == before


@pytest.mark.engines("duckdb", reason="only here products run on several threads of a BLAS")
def test_products_have_equal_bits_for_any_threads_of_the_blas(db: se.Database) -> None:
    rng = np.random.default_rng(0)
    db.tensor("A", rng.standard_normal((400, 700)))
    db.tensor("B", rng.standard_normal((700, 500)))
    blas = find_blas()
    if blas is None or blas.addresses[-1] == 0:
        pytest.skip("the BLAS of numpy has no number of threads")
    set_threads_of_blas = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(blas.addresses[-1])
    before = set_threads_of_blas(1)
    try:
        results = []
        for threads in (1, 4, 2):
            set_threads_of_blas(threads)
            results.append(bits(db.run("C[i, k] = sum(A[i, j] * B[j, k])", deterministic=True)))
    finally:
        set_threads_of_blas(before)
    assert all(result == results[0] for result in results)

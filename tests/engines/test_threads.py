"""One database serves several threads, asyncio tasks and processes."""

import asyncio
import gc
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import duckdb
import numpy as np
import pytest

import sparseeinsum as se

ENGINES = pytest.mark.engines("duckdb", "postgresql")
A = np.arange(6.0).reshape(2, 3)
CALLS = 24


def scaled(db: se.Database, number: int) -> list[float]:
    """Row sums of a tensor times a number, by one of several kinds of call."""
    if number % 4 == 1:
        db.tensor(f"T{number}", A * number)
        result = db.run(f"Y[i] = sum(T{number}[i, j])")["Y"]
        db.drop_tensor(f"T{number}")
    elif number % 4 == 2:
        plan = db.plan(f"Y[i] = {number} * sum(A[i, j])")
        assert "actual" in plan.explain(analyze=True)
        result = db.run(plan)["Y"]
    elif number % 4 == 3:
        with pytest.raises(se.CatalogueError, match="no tensor Missing"):
            db.run("Y[i] = Missing[i]")
        assert "A" in db.tensors()
        result = db.run(f"T[i, j] = {number} * A[i, j]\nY[i] = sum(T[i, j])")["Y"]
    else:
        result = db.run(f"Y[i] = {number} * sum(A[i, j])")["Y"]
    values: list[float] = result.to_numpy().tolist()
    return values


EXPECTED = [(number * A.sum(axis=1)).tolist() for number in range(CALLS)]


@ENGINES
def test_threads_share_a_database(db: se.Database) -> None:
    db.tensor("A", A)
    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(lambda number: scaled(db, number), range(CALLS))) == EXPECTED


@ENGINES
def test_databases_of_one_connection(db: se.Database) -> None:
    db.tensor("A", A)
    with ThreadPoolExecutor(6) as threads:
        results = threads.map(lambda number: scaled(se.connect(db.connection), number), range(CALLS))
        assert list(results) == EXPECTED


@ENGINES
def test_asyncio(db: se.Database) -> None:
    db.tensor("A", A)

    async def all_of_them() -> list[list[float]]:
        return await asyncio.gather(*(asyncio.to_thread(scaled, db, number) for number in range(CALLS)))

    assert asyncio.run(all_of_them()) == EXPECTED


def _of_file(path: str, number: int) -> list[float]:
    with se.connect(path, read_only=True) as db:
        values: list[float] = db.run(f"T[i, j] = {number} * A[i, j]\nY[i] = sum(T[i, j])")["Y"].to_numpy().tolist()
        return values


def test_processes_read_one_file(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    with se.connect(path) as db:
        db.tensor("A", A)
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        assert list(processes.map(_of_file, [str(path)] * 4, range(4))) == EXPECTED[:4]


def test_read_only_databases(tmp_path: Path, postgres_urls: dict[str, str]) -> None:
    path = tmp_path / "a.duckdb"
    with pytest.raises(se.EngineError, match="cannot open"):
        se.connect(path, read_only=True)
    with se.connect(path) as db:
        db.tensor("A", A)
    before = path.read_bytes()
    with se.connect(path, read_only=True) as db:
        plan = db.plan("T[i] = sum(A[i, j])\nY[] = sum(T[i])")
        assert db.run(plan)["Y"].to_numpy() == 15
        assert db.statistics("A").entries == 5
        with pytest.raises(se.EngineError, match="read-only mode"):
            db.tensor("B", A)
    assert path.read_bytes() == before
    for target in (None, duckdb.connect(), postgres_urls["db"]):
        with pytest.raises(se.EngineError, match="read_only is for DuckDB files"):
            se.connect(target, read_only=True)


@ENGINES
def test_no_process_takes_a_database(db: se.Database) -> None:
    with pytest.raises(TypeError, match=r"call se\.connect in each process"):
        pickle.dumps(db)


def test_threads_open_databases() -> None:
    def sum_of(number: int) -> float:
        with se.connect() as db:
            db.tensor("A", A * number)
            return float(db.run("Y[] = sum(A[i, j])")["Y"].to_numpy())

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(sum_of, range(8))) == [15.0 * number for number in range(8)]
    assert gc.isenabled()  # it is not while they plan

"""Operands that are ordered or put together in memory stay there for later runs, until their tables change."""

import gc
from typing import Any

import numpy as np
import pytest
from indexing import compress_wherever_possible
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.engines.duckdb.duckdb_prepared import DuckDBCollectedQuery, DuckDBPreparedQuery
from sparseeinsum.errors import EngineError
from sparseeinsum.kernels.duckdb.library import require_library
from sparseeinsum.pipeline.loops import loop
from sparseeinsum.results import kept_operands
from sparseeinsum.results.kept_operands import _written_text

pytestmark = pytest.mark.engines("duckdb", reason="test_kept_arrays has those of PostgreSQL")

PROGRAM = "Y[i, k] = sum(A[i, j] * X[j, k])"


def entries(seed: int, count: int = 3000) -> NDArray[Any]:
    rng = np.random.default_rng(seed)
    places = np.unique(rng.integers(0, 500 * 400, count))
    return np.stack([places // 400, places % 400, rng.integers(1, 9, len(places))])


def dense(coordinates: NDArray[Any]) -> NDArray[Any]:
    array = np.zeros((500, 400))
    array[coordinates[0], coordinates[1]] = coordinates[2]
    return array


@pytest.fixture(autouse=True)
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans put operands into memory wherever they can."""
    compress_wherever_possible(monkeypatch)


@pytest.fixture
def loaded(db: se.Database) -> se.Database:
    """A database with a sparse and a dense matrix."""
    coordinates = entries(0)
    db.tensor("A", (coordinates[:2], coordinates[2].astype(float)), shape=(500, 400))
    db.tensor("X", np.random.default_rng(1).integers(0, 5, (400, 16)).astype(float))
    return db


def kept_count(database: se.Database) -> int:
    kept = database._engine.kept_memory
    assert kept is not None
    return kept.count


def result(database: se.Database, program: str | se.Plan = PROGRAM) -> NDArray[Any]:
    array: NDArray[Any] = database.run(program, progress=False)["Y"].to_numpy()
    return array


@pytest.mark.parametrize("first", [True, False], ids=["from the first run on", "from the second run on"])
def test_results_follow_the_tables(loaded: se.Database, first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run keeps small operands, and the second run large ones."""
    if not first:
        monkeypatch.setattr("sparseeinsum.results.kept_operands._FIRST_RUN_BYTES", 400 * 16 * 8)  # X alone
    array, other = dense(entries(0)), np.random.default_rng(1).integers(0, 5, (400, 16)).astype(float)
    plan = loaded.plan(PROGRAM)
    assert "tensor_gather_sum(" in plan.sql()
    for kept in (2 * first, 2, 2):
        np.testing.assert_array_equal(result(loaded, plan), array @ other)
        assert kept_count(loaded) == kept
    loaded.connection.execute("UPDATE A SET val = 2 * val WHERE dim_0 < 100")
    array[:100] *= 2
    for _ in range(3):
        np.testing.assert_array_equal(result(loaded, plan), array @ other)
    loaded.connection.execute("DELETE FROM A WHERE dim_0 = 7")
    array[7] = 0
    for _ in range(3):
        np.testing.assert_array_equal(result(loaded), array @ other)
    loaded.connection.execute("DELETE FROM A")
    for _ in range(3):
        np.testing.assert_array_equal(result(loaded, plan), 0 * (array @ other))
    changed = entries(3)
    loaded.tensor("A", (changed[:2], changed[2].astype(float)), shape=(500, 400))
    for _ in range(3):
        np.testing.assert_array_equal(result(loaded), dense(changed) @ other)
    assert require_library().count_residents() == 0


def test_operands_of_a_kind_are_kept_by_the_same_query(db: se.Database) -> None:
    """It is written once, whatever the names of their tables."""
    rng = np.random.default_rng(4)
    names = ["First", "select", "any_tensor", "order", "t", "val"]
    matrices = {name: rng.integers(0, 5, (30, 30)).astype(float) for name in names}
    for name, matrix in matrices.items():
        db.tensor(name, matrix)
    factors = "*".join(f"{name}[l{place},l{place + 1}]" for place, name in enumerate(names))
    plan = db.plan(f"Y[l0,l6] = sum({factors})")
    _written_text.cache_clear()
    for _ in range(3):
        np.testing.assert_array_equal(result(db, plan), np.linalg.multi_dot(list(matrices.values())))
        assert kept_count(db) == 6
    assert _written_text.cache_info().hits >= 4
    db.connection.execute("UPDATE t SET val = list_transform(val, lambda x: 2 * x)")
    for _ in range(3):
        np.testing.assert_array_equal(result(db, plan), 2 * np.linalg.multi_dot(list(matrices.values())))


def test_tables_that_change_in_every_run_are_kept_once(loaded: se.Database) -> None:
    """Later runs make their operands themselves, in statements that stay the same."""
    array, other = dense(entries(0)), np.random.default_rng(1).integers(0, 5, (400, 16)).astype(float)
    plan = loaded.plan(PROGRAM)
    for kept in (2, 1, 1, 1):
        np.testing.assert_array_equal(result(loaded, plan), array @ other)
        assert kept_count(loaded) == kept
        loaded.connection.execute("UPDATE A SET val = 2 * val")
        array *= 2


def test_nothing_stays_where_an_operand_cannot_be_made(loaded: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    library, make = require_library(), kept_operands._making_text
    gc.collect()
    before = library.count_kept()
    texts: list[str] = []

    def fail_last(*arguments: Any) -> str:  # noqa: ANN401
        texts.append(make(*arguments))
        return texts[-1] if len(texts) < 2 else "SELECT error('no memory') AS handle"

    monkeypatch.setattr(kept_operands, "_making_text", fail_last)
    with pytest.raises(EngineError, match="no memory"):
        result(loaded)
    assert len(texts) == 2
    assert library.count_kept() == before
    assert library.count_residents() == 0


def test_prepared_programs_follow_the_tables(loaded: se.Database) -> None:
    array, other = dense(entries(0)), np.random.default_rng(1).integers(0, 5, (400, 16)).astype(float)
    with loaded.prepare(PROGRAM, inputs=[]) as step:

        def check(present: NDArray[Any]) -> None:
            for _ in range(3):
                np.testing.assert_array_equal(step.run()["Y"].to_numpy(), present)

        assert kept_count(loaded) == 2
        check(array @ other)
        loaded.connection.execute("UPDATE A SET val = 2 * val WHERE dim_0 < 100")
        array[:100] *= 2
        check(array @ other)
        assert loaded._engine.kept_memory is not None
        loaded._engine.kept_memory.release_all()
        check(array @ other)
        with loaded.connection.cursor() as cursor:
            cursor.execute("DELETE FROM X WHERE dim_0 < 30")
        other[:30] = 0
        check(array @ other)
        loaded.connection.execute("DELETE FROM A")
        check(0 * (array @ other))
        changed = entries(3)
        loaded.tensor("A", (changed[:2], changed[2].astype(float)), shape=(500, 400))
        check(dense(changed) @ other)


@pytest.mark.parametrize("width", [3, 400], ids=["Arrow", "collected"])
def test_prepared_programs_run_once(db: se.Database, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays are returned in one transaction, or the run would look as if somebody had changed tables."""
    runs: list[type] = []
    for kind in (DuckDBPreparedQuery, DuckDBCollectedQuery):

        def counted(self: Any, run: Any = kind.arrow) -> object:  # noqa: ANN401
            runs.append(type(self))
            return run(self)

        monkeypatch.setattr(kind, "arrow", counted)
    other = np.random.default_rng(1).normal(size=(400, width))
    db.tensor("A", np.eye(500, 400))
    db.tensor("X", other)
    with db.prepare("T[i, k] = sum(A[i, j] * X[j, k])\nY[i, k] = tanh(T[i, k])", ["X"], layout="any") as step:
        step.run()
        runs.clear()
        for scale in (1, 2):
            result = step.run(X=scale * other)["Y"].to_numpy()
            np.testing.assert_allclose(result[:400], np.tanh(scale * other), rtol=1e-12)
    assert runs == [DuckDBCollectedQuery if width == 400 else DuckDBPreparedQuery] * 2


def test_arrays_of_truths_are_computed_once(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[object] = []
    run = DuckDBPreparedQuery.arrow

    def counted(self: DuckDBPreparedQuery) -> object:
        runs.append(self)
        return run(self)

    monkeypatch.setattr(DuckDBPreparedQuery, "arrow", counted)
    array = np.arange(12.0).reshape(3, 4)
    db.tensor("X", array)
    program = "T[i, k] = sum(X[i, j] * X[k, j])\nY[i, k] = T[i, k] > 40"
    with db.prepare(program, inputs=["X"], layout="any", pin={"T": (), "Y": ()}) as step:
        step.run()
        runs.clear()
        result = step.run()["Y"]
        assert result.schema.list_length == 9
        np.testing.assert_array_equal(result.to_numpy(), array @ array.T > 40)
    assert len(runs) == 1


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int64", "bool"])
def test_whole_arrays(db: se.Database, dtype: str) -> None:
    """A chain of arrays reads those of stored tensors in memory."""
    weights = np.random.default_rng(0).integers(0, 2, (40, 30)).astype(dtype)
    factors = np.random.default_rng(1).integers(0, 2, (20, 40)).astype(dtype)
    db.tensor("W", weights, promoted=["dim_0"])
    db.tensor("F", factors)
    plan = db.plan("T[i, k] = sum(F[i, j] * W[j, k])\nU[i, k] = T[i, k] + 1\nY[i, k] = U[i, k] * U[i, k]", layout="any")

    def expected() -> NDArray[Any]:
        squares: NDArray[Any] = np.square(factors.astype(np.complex128) @ weights + 1)
        return squares

    for _ in range(3):
        np.testing.assert_array_equal(result(db, plan), expected())
    assert kept_count(db) == 2
    db.connection.execute("UPDATE W SET val = (SELECT w.val FROM W AS w WHERE w.dim_0 = 0) WHERE dim_0 < 7")
    weights[:7] = weights[0]
    for _ in range(3):
        np.testing.assert_array_equal(result(db, plan), expected())


@pytest.mark.parametrize("changes", [False, True], ids=["tables that stay", "tables that change"])
def test_loops_keep_what_steps_read(loaded: se.Database, changes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step reads the same memory, until the table changes."""
    array, counts = dense(entries(0)), []
    loaded.tensor("S", np.ones((500, 16)))
    program = "state S\nnext_S[i, k] = 0.5 * S[i, k] + sum(A[i, j] * X[j, k])\ntotal[] = sum(next_S[i, k])"
    state, other, totals = np.ones((500, 16)), np.random.default_rng(1).integers(0, 5, (400, 16)).astype(float), []

    def change(_: object) -> None:
        counts.append(kept_count(loaded))
        if changes:
            loaded.connection.execute("UPDATE A SET val = val + 1 WHERE dim_0 < 9")

    monkeypatch.setattr(loop._Loop, "_show", change)
    result = loaded.iterate(program, steps=5, history=["total"])
    for _ in range(5):
        state = 0.5 * state + array @ other
        totals.append(state.sum())
        array[:9] += changes * (array[:9] != 0)
    np.testing.assert_allclose(result.df()["total"], totals, rtol=1e-12)
    assert min(counts) >= 1


def test_other_runs_keep_and_read_nothing(loaded: se.Database) -> None:
    for options in ({"memory_limit": "200MB"}, {"indexes": False}):
        plan = loaded.plan(PROGRAM, **options)
        for _ in range(3):
            result(loaded, plan)
        assert kept_count(loaded) == 0


def test_changes_of_another_connection(loaded: se.Database) -> None:
    plan = loaded.plan(PROGRAM)
    before = [result(loaded, plan) for _ in range(3)][-1]
    with loaded.connection.cursor() as cursor:
        cursor.execute("UPDATE A SET val = 3 * val")
        np.testing.assert_array_equal(result(loaded, plan), 3 * before)
        cursor.execute("BEGIN")
        cursor.execute("UPDATE A SET val = 5 * val")
        np.testing.assert_array_equal(result(loaded, plan), 3 * before)
        cursor.execute("ROLLBACK")
    np.testing.assert_array_equal(result(loaded, plan), 3 * before)


def test_memory_is_released_with_the_database() -> None:
    library, coordinates = require_library(), entries(0)
    gc.collect()
    before = library.count_kept()
    for closes in (True, False):
        database = se.connect()
        database.tensor("A", (coordinates[:2], coordinates[2].astype(float)), shape=(500, 400))
        database.tensor("X", np.ones((400, 16)))
        for _ in range(2):
            result(database)
        assert library.count_kept() == before + 2
        if closes:
            database.close()
        del database
        gc.collect()
        assert library.count_kept() == before
    assert not library.release(12345)

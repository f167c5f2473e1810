"""Runs that fail, are interrupted or meet changed data leave the database as it was."""

import threading
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
import two_matrices
from any_sql import run_sql
from numpy.typing import NDArray
from reading import assert_usable, contents, engine_of
from two_matrices import PRODUCT, SHARED, A, B

import sparseeinsum as se


@pytest.fixture
def loaded(db: se.Database) -> se.Database:
    """A database of the test's own with both matrices."""
    return two_matrices.load(db)


@pytest.mark.engines("duckdb", reason="PostgreSQL has savepoints")
@pytest.mark.parametrize(
    "work",
    [
        pytest.param(lambda db: db.run(PRODUCT), id="program"),
        pytest.param(lambda db: db.tensor("C", A), id="load"),
        pytest.param(lambda db: db.tensor_from_table("C", "mine", ["x"]), id="refer"),
    ],
)
def test_transaction_of_the_user_stays_alive(loaded: se.Database, work: Callable[[se.Database], object]) -> None:
    plan = loaded.plan(PRODUCT)
    run_sql(loaded, "BEGIN; CREATE TABLE mine AS SELECT 42 AS x")
    before = contents(loaded)
    for refused in (work, lambda db: db.run(plan)):
        with pytest.raises(se.EngineError, match=r"this connection has an open transaction.*commit or roll back first"):
            refused(loaded)
    assert loaded.plan(PRODUCT).notation() == plan.notation()
    assert contents(loaded) == before
    run_sql(loaded, "COMMIT")
    assert run_sql(loaded, "FROM mine") == [(42,)]
    work(loaded)


@pytest.mark.engines("duckdb", reason="PostgreSQL has savepoints")
def test_failed_transaction_of_the_user(loaded: se.Database) -> None:
    run_sql(loaded, "BEGIN")
    with pytest.raises(Exception, match="nowhere"):
        run_sql(loaded, "FROM nowhere")
    with pytest.raises(se.EngineError, match="please ROLLBACK"):
        loaded.run(PRODUCT)
    run_sql(loaded, "ROLLBACK")
    np.testing.assert_array_equal(loaded.run(PRODUCT)["Y"].to_numpy(), A @ B)


@pytest.mark.engines("duckdb", reason="the setting is DuckDB's")
def test_statement_that_fails_leaves_nothing_behind(db: se.Database) -> None:
    """Memory is too small for a matrix that two results read, which is therefore materialised."""
    square = np.random.default_rng(0).random((600, 600))
    db.tensor("A", square)
    pins = dict.fromkeys("TYZ", ("i",))
    plan = db.plan("T[i, k] = sum(A[i, j] * A[j, k])\nY[i] = sum(T[i, k])\nZ[i] = max(T[i, k])", pin=pins)
    before = contents(db)
    run_sql(db, "SET memory_limit = '8MB'")
    with pytest.raises(se.EngineError, match=r"(?s)Out of Memory Error.*in the statement:.*") as caught:
        db.run(plan)
    assert caught.value.statement is not None
    run_sql(db, "SET memory_limit = '1GB'")
    assert contents(db) == before
    np.testing.assert_allclose(db.run(plan)["Z"].to_numpy(), (square @ square).max(axis=1))
    assert contents(db) == before


def test_interrupted_run_leaves_nothing_behind(db: se.Database) -> None:
    db.tensor("A", np.ones((700, 700)))
    plan = db.plan("T[i, k] = sum(A[i, j] * A[j, k])\nY[i] = sum(T[i, k])\nZ[i] = max(T[i, k])", optimizer="relational")
    before = contents(db)
    is_over = threading.Event()
    cancel = db.connection.interrupt if engine_of(db).dialect_name == "duckdb" else db.connection.cancel

    def interrupt() -> None:
        while not is_over.wait(0.2):  # the first one might come before the statement starts
            cancel()

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(se.EngineError, match=r"INTERRUPT|canceling statement due to user request"):
            db.run(plan)
    finally:
        is_over.set()
        thread.join()
    assert contents(db) == before
    assert_usable(db)


def test_table_that_is_dropped_between_plan_and_run(loaded: se.Database) -> None:
    plan = loaded.plan(SHARED)
    run_sql(loaded, "DROP TABLE B")
    before = contents(loaded)
    with pytest.raises(se.CatalogueError, match=r"tensor B can no longer be read from main\.[Bb].*define"):
        loaded.run(plan, into={"Y": "scores"})
    assert contents(loaded) == before
    loaded.tensor("B", B)
    np.testing.assert_array_equal(loaded.run(plan)["Y"].to_numpy(), (A @ B).sum(axis=1))


def test_tables_of_users_do_not_clash(loaded: se.Database) -> None:
    names = ("T", "new_A", "incoming", "given", "rows", "keys", "added", "relation")
    for name in names:
        run_sql(loaded, f'CREATE TEMPORARY TABLE "sparseeinsum_{name}" AS SELECT 42 AS answer')
    expected = (A @ B).sum(axis=1)
    np.testing.assert_array_equal(loaded.run(SHARED)["Y"].to_numpy(), expected)
    loaded.tensor("B", B, promoted={"dim_0": 1, "dim_1": 1})
    loaded.tensor("C", pa.table({"i": [0, 1], "v": [1.0, 2.0]}))
    np.testing.assert_array_equal(loaded.run(SHARED)["Y"].to_numpy(), expected)
    for name in names:
        assert loaded._engine.rows(f'SELECT answer FROM "sparseeinsum_{name}"') == [(42,)]


def test_new_values_give_new_results(loaded: se.Database) -> None:
    plan = loaded.plan(PRODUCT)
    run_sql(loaded, "UPDATE A SET val = -val WHERE dim_0 = 1")
    run_sql(loaded, "INSERT INTO A VALUES (0, 2, 7)")
    changed = np.array([[1.0, 2.0, 7.0], [0.0, -3.0, -4.0]])
    np.testing.assert_array_equal(loaded.run(plan)["Y"].to_numpy(), changed @ B)
    loaded.tensor("B", 2 * B)
    np.testing.assert_array_equal(loaded.run(plan)["Y"].to_numpy(), changed @ (2 * B))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_values_that_turn_non_finite_are_refused(loaded: se.Database, value: float) -> None:
    plan = loaded.plan(PRODUCT)
    changed = B.copy()
    changed[0, 1] = value
    loaded.tensor("B", changed)
    with pytest.raises(se.EngineError, match="tensor B has changed since the plan was made; plan again"):
        loaded.run(plan)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(loaded.run(PRODUCT)["Y"].to_numpy(), A @ changed)


@pytest.mark.parametrize(
    ("data", "promoted"),
    [
        pytest.param(np.ones((3, 5)), None, id="another shape"),
        pytest.param(B.astype(np.float32), None, id="another dtype"),
        pytest.param(B, ["dim_0", "dim_1"], id="another decomposition"),
    ],
)
def test_tensor_that_is_redefined_needs_a_new_plan(
    loaded: se.Database, data: NDArray[np.float64], promoted: list[str] | None
) -> None:
    plan = loaded.plan(PRODUCT)
    loaded.tensor("B", data, promoted=promoted)
    with pytest.raises(se.EngineError, match="tensor B was defined anew since the plan was made; plan again"):
        loaded.run(plan)
    np.testing.assert_array_equal(loaded.run(PRODUCT)["Y"].to_numpy(), A @ data)


@pytest.mark.engines("duckdb", reason="cursors are DuckDB's connections")
def test_two_threads_on_two_cursors(loaded: se.Database) -> None:
    plan = loaded.plan(SHARED)
    results: list[list[float]] = []

    def work() -> None:
        with se.connect(loaded.connection.cursor()) as database:
            for turn in range(5):
                result = database.run(plan if turn % 2 else SHARED)
                results.append(result["Z"].to_numpy().tolist())

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [(A @ B).max(axis=0).tolist()] * 10


@pytest.mark.engines("duckdb", reason="cursors are DuckDB's connections")
def test_run_sees_committed_changes(loaded: se.Database) -> None:
    other = loaded.connection.cursor()
    other.execute("BEGIN; DELETE FROM A WHERE dim_0 = 0")
    np.testing.assert_array_equal(loaded.run("Y[i] = sum(A[i, j])")["Y"].to_numpy(), [3, 7])
    other.execute("COMMIT")
    np.testing.assert_array_equal(loaded.run("Y[i] = sum(A[i, j])")["Y"].to_numpy(), [0, 7])


@pytest.mark.engines("duckdb", reason="cursors are DuckDB's connections")
def test_conflict_of_two_writers(loaded: se.Database) -> None:
    other = loaded.connection.cursor()
    other.execute("BEGIN; CREATE TABLE scores AS SELECT 42 AS answer")
    with pytest.raises(se.EngineError, match=r"(?i)conflict"):
        loaded.run(PRODUCT, into={"Y": "scores"})
    other.execute("COMMIT")
    assert run_sql(loaded, "FROM scores") == [(42,)]
    loaded.run("Y[i] = sum(A[i, j])", into={"Y": "scores"})
    assert run_sql(loaded, "FROM scores ORDER BY i") == [(0, 3), (1, 7)]

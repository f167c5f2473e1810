"""A program that is run again keeps its plan while its data are of the same kind; results are of the new data."""

from collections.abc import Iterator

import numpy as np
import pytest
from any_sql import run_sql

import sparseeinsum as se
from sparseeinsum.decompose.memory_footprint import RunMemory
from sparseeinsum.engines.engine import Engine
from sparseeinsum.pipeline import plan_cache, planning
from sparseeinsum.plans.options import PlanOptions

STEP = "Y[i] = sum(A[i, j] * X[j])"
MATRIX = np.array([[0, 2.0, 0], [1, 0, 0], [0, 0, 3]])

pytestmark = pytest.mark.engines("duckdb", "postgresql")


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The optimizers of the programs that are planned."""
    optimizers: list[str] = []

    def observed(program: se.Program, engine: Engine, options: PlanOptions, memory: RunMemory | None = None) -> object:
        optimizers.append(options.optimizer)
        return planning.make_plans(program, engine, options, memory=memory)

    monkeypatch.setattr(plan_cache, "make_plans", observed)
    yield optimizers


def load(db: se.Database, vector: np.ndarray) -> None:
    db.tensor("A", MATRIX, axes=["i", "j"], promoted=["i", "j"])
    db.tensor("X", vector, axes=["j"], promoted=["j"])


def test_a_loop_plans_once(db: se.Database, planned: list[str]) -> None:
    vector = np.array([1.0, 2.0, 3.0])
    load(db, vector)
    for _ in range(4):
        result = db.run(STEP)["Y"].to_numpy()
        np.testing.assert_allclose(result, MATRIX @ vector)
        vector = result / np.linalg.norm(result)
        db.tensor("X", vector, axes=["j"], promoted=["j"])
    with db.stream(STEP) as results:
        assert sorted(results["Y"].read_all().column("val").to_pylist()) == pytest.approx(sorted(MATRIX @ vector))
    assert planned == ["dp"]


def test_a_plan_is_made_again_only_after_a_change(db: se.Database, planned: list[str]) -> None:
    load(db, np.ones(3))
    plans = [db.plan(STEP), db.plan(se.program(STEP))]
    db.run(STEP)
    assert planned == ["dp"]
    assert plans[0].data is plans[1].data
    run_sql(db, "UPDATE A SET val = 2 * val WHERE i = 0")
    changed = db.plan(STEP)
    assert changed.data.inputs["A"].values != plans[0].data.inputs["A"].values
    np.testing.assert_allclose(db.run(changed)["Y"].to_numpy(), [4, 1, 3])
    assert planned == ["dp"]
    run_sql(db, "DROP TABLE A")
    with pytest.raises(se.CatalogueError, match="tensor A can no longer be read"):
        db.plan(STEP)
    load(db, np.ones(3))
    np.testing.assert_allclose(db.run(db.plan(STEP))["Y"].to_numpy(), MATRIX.sum(axis=1))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE A SET val = -val WHERE i = 0",
        "UPDATE A SET val = 'NaN' WHERE i = 0",
        "DELETE FROM A WHERE i = 0",
        "UPDATE A SET j = 0 WHERE i = 2",
        "INSERT INTO A VALUES (2, 1, 1)",
    ],
)
def test_a_change_of_signs_or_sizes_is_planned(db: se.Database, planned: list[str], change: str) -> None:
    load(db, np.ones(3))
    db.plan(STEP)
    run_sql(db, change)
    matrix = np.zeros((3, 3))
    rows, columns, values = zip(*run_sql(db, "SELECT i, j, val FROM A"), strict=True)
    matrix[np.array(rows), np.array(columns)] = values
    np.testing.assert_allclose(db.run(db.plan(STEP))["Y"].to_numpy(), matrix.sum(axis=1))
    assert planned == ["dp"] * 2


def test_other_options_are_planned(db: se.Database, planned: list[str]) -> None:
    load(db, np.ones(3))
    for optimizer in ("dp", "greedy", "dp"):
        db.run(STEP, optimizer=optimizer)
    assert planned == ["dp", "greedy"]
    db.run(STEP, layout="any")
    db.run(STEP + "\nZ[] = sum(Y[i])")
    assert planned == ["dp", "greedy", "dp", "dp"]


@pytest.mark.parametrize(
    "vector",
    [np.array([1, 2, 3]), np.array([0, 0, 7.0]), np.array([np.inf, 1, 1]), np.array([1, 2, 3], np.float32)],
    ids=["dtype", "fewer entries", "infinity", "precision"],
)
def test_data_of_another_kind_are_planned(db: se.Database, planned: list[str], vector: np.ndarray) -> None:
    load(db, np.array([1.0, 2.0, 3.0]))
    db.run(STEP)
    db.tensor("X", vector, axes=["j"], promoted=["j"])
    with np.errstate(all="ignore"):
        expected = np.einsum("ij,j->i", MATRIX, vector)
    np.testing.assert_allclose(db.run(STEP, nonfinite="error")["Y"].to_numpy(), expected)
    assert len(planned) == 2


def test_another_shape_is_planned(db: se.Database, planned: list[str]) -> None:
    load(db, np.ones(3))
    db.run(STEP)
    db.tensor("A", np.ones((5, 3)), axes=["i", "j"], promoted=["i", "j"])
    np.testing.assert_array_equal(db.run(STEP)["Y"].to_numpy(), np.full(5, 3.0))
    db.tensor("X", np.ones(4), axes=["j"], promoted=["j"])
    with pytest.raises(se.ShapeError):
        db.run(STEP)
    db.drop_tensor("X")
    with pytest.raises(se.CatalogueError):
        db.run(STEP)


def test_rows_that_are_no_tensor_any_more_are_refused(db: se.Database) -> None:
    load(db, np.ones(3))
    db.run(STEP)
    db.connection.execute("INSERT INTO x VALUES (1, 5)")
    with pytest.raises(se.DataError, match="earlier row"):
        db.run(STEP)


@pytest.mark.engines("duckdb", reason="PostgreSQL calls no Python functions")
def test_functions_that_are_registered_again_are_planned(db: se.Database, planned: list[str]) -> None:
    load(db, np.ones(3))

    @se.function
    def changed(x: float) -> float:
        return 2 * x

    np.testing.assert_allclose(db.run("Y[j] = changed(X[j])")["Y"].to_numpy(), 2)

    def another(x: float) -> float:
        return 3 * x

    another.__name__ = "changed"
    se.function(another)
    np.testing.assert_allclose(db.run("Y[j] = changed(X[j])")["Y"].to_numpy(), 3)
    assert len(planned) == 2


@pytest.mark.engines("duckdb", reason="the limit is one of this process")
def test_another_memory_limit_is_planned(db: se.Database, planned: list[str]) -> None:
    load(db, np.ones(3))
    db.run(STEP)
    db.connection.execute("SET memory_limit = '1GB'")
    db.run(STEP)
    db.run(STEP, deterministic=True)
    assert len(planned) == 3

"""A prepared program returns for new values, and for stored tensors that change, what a run returns."""

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from program_cases import Array, Case, scale_of
from random_programs import FAMILIES, LARGEST, arrays, cases
from random_runs import random_runs

import sparseeinsum as se
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.engines.duckdb import duckdb_engine
from sparseeinsum.engines.duckdb.duckdb_engine import DuckDBEngine
from sparseeinsum.errors import CatalogueError, DataError, EngineError, PlanError, ShapeError
from sparseeinsum.pipeline import planning, supplied_plans
from sparseeinsum.pipeline.supplied_plans import SuppliedPlan
from sparseeinsum.render.sql_statement import SqlStatement
from sparseeinsum.semantics.dense import evaluate_program

STEP = "Y[i] = sum(A[i, j] * X[j])"
MATRIX = np.array([[0, 2.0, 0], [1, 0, 0], [0, 0, 3]])
VECTOR = np.array([1.0, 2.0, 3.0])

pytestmark = pytest.mark.engines("duckdb", "postgresql")


def load(db: se.Database, vector: np.ndarray = VECTOR, promoted: tuple[str, ...] = ()) -> None:
    db.tensor("A", MATRIX, axes=["i", "j"], promoted=["i", "j"])
    db.tensor("X", vector, axes=["j"], promoted=promoted)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows by one for every plan that is made."""
    made: list[str] = []
    original = planning.make_plans

    def observed(*arguments: Any) -> object:  # noqa: ANN401  # those of make_plans
        made.append("plan")
        return original(*arguments)

    monkeypatch.setattr(supplied_plans, "make_plans", observed)
    return made


@pytest.mark.parametrize("promoted", [(), ("j",)], ids=["array", "entries"])
def test_a_loop_plans_once(db: se.Database, plans: list[str], promoted: tuple[str, ...]) -> None:
    load(db, promoted=promoted)
    vector = VECTOR
    with db.prepare(STEP, inputs=["X"]) as step:
        np.testing.assert_array_equal(step.run()["Y"].to_numpy(), MATRIX @ vector)
        for scale in (1.0, 3.0, 50.0, 1e-3):
            vector = vector * scale
            np.testing.assert_allclose(step.run(X=vector)["Y"].to_numpy(), MATRIX @ vector)
            np.testing.assert_allclose(step.run()["Y"].to_numpy(), MATRIX @ vector)
        assert step.inputs == ("X",)
        assert step.plan.outputs == ("Y",)
        assert repr(step) == "<prepared program of Y with new values of X>"
    assert plans == ["plan"]
    np.testing.assert_array_equal(db.run("Z[j] = X[j]")["Z"].to_numpy(), VECTOR)  # what is stored stays


KINDS: dict[str, Callable[[np.ndarray], Any]] = {
    "numpy": lambda matrix: matrix,
    "lists": lambda matrix: matrix.tolist(),
    "scipy": sp.csr_array,
    "integers": lambda matrix: matrix.astype(int),
    "pandas": lambda matrix: pd.DataFrame(rows(matrix)),
    "polars": lambda matrix: pl.DataFrame(rows(matrix)),
    "arrow": lambda matrix: pa.table(rows(matrix)),
    "coordinates": lambda matrix: (np.nonzero(matrix), matrix[np.nonzero(matrix)]),
    "unsorted": lambda matrix: tuple(np.asarray(part)[..., ::-1] for part in (np.nonzero(matrix), matrix[matrix != 0])),
}


def rows(matrix: np.ndarray) -> dict[str, np.ndarray]:
    i, j = np.nonzero(matrix)
    return {"i": i, "j": j, "val": matrix[i, j]}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("promoted", [["i", "j"], ["i"], [], {"i": 2}], ids=["entries", "rows", "array", "tiles"])
def test_values_of_any_kind(db: se.Database, kind: str, promoted: list[str]) -> None:
    db.tensor("A", MATRIX, axes=["i", "j"], promoted=promoted)
    db.tensor("X", VECTOR, axes=["j"])
    matrix = np.array([[0, 0, 0], [4.0, 0, 1], [2, 7, 0]])
    with db.prepare(STEP, inputs=["A"]) as step:
        np.testing.assert_allclose(step.run(A=KINDS[kind](matrix))["Y"].to_numpy(), matrix @ VECTOR)


@pytest.mark.parametrize("dtype", ["complex128", "bool", "float32"])
def test_the_first_values_are_those_of_a_table_without_values(db: se.Database, dtype: str) -> None:
    db.connection.execute("CREATE TABLE links AS SELECT 1 AS i, 2 AS j")
    db.tensor_from_table("A", "links", ["i", "j"], shape=(3, 3), dtype=dtype)
    present = np.zeros((3, 3), dtype)
    present[1, 2] = 1
    with db.prepare("Y[i] = sum(A[i, j])", inputs=["A"]) as step:
        np.testing.assert_array_equal(step.run()["Y"].to_numpy(), present.sum(axis=1))
        supplied = np.full((3, 3), 2, dtype)
        np.testing.assert_array_equal(step.run(A=supplied)["Y"].to_numpy(), supplied.sum(axis=1))


def test_stored_inputs_may_change(db: se.Database) -> None:
    load(db)
    with db.prepare(STEP, inputs=["X"]) as step:
        for statement in ("UPDATE A SET val = 2 * val", "DELETE FROM A WHERE i = 0", "INSERT INTO A VALUES (0, 0, 5)"):
            step.run(X=VECTOR)
            db.connection.execute(statement)
            expected = db.run(STEP)["Y"].to_numpy()
            np.testing.assert_allclose(step.run(X=VECTOR)["Y"].to_numpy(), expected)
        db.tensor("A", np.ones((2, 3)), axes=["i", "j"])
        np.testing.assert_allclose(step.run(X=VECTOR)["Y"].to_numpy(), [6, 6])
        db.tensor("X", np.zeros(3))  # the values that were supplied stay
        np.testing.assert_allclose(step.run()["Y"].to_numpy(), [6, 6])
        db.connection.execute("DROP TABLE A")
        with pytest.raises(CatalogueError, match="tensor A"):
            step.run()


def test_several_statements_and_outputs(db: se.Database) -> None:
    load(db)
    program = "T[i] = exp(sum(A[i, j] * X[j]))\nS[] = sum(T[i])\nP[i] = T[i] / S[]\nL[] = sum(P[i] * X[i])"
    with db.prepare(program, ["X"], outputs=["P"]) as softmax:
        for vector in (VECTOR, -VECTOR, VECTOR * 0.1):
            results = softmax.run(X=vector)
            exponentials = np.exp(MATRIX @ vector)
            np.testing.assert_allclose(results["P"].to_numpy(), exponentials / exponentials.sum())
            np.testing.assert_allclose(results["L"].to_numpy(), vector @ exponentials / exponentials.sum())


def test_values_that_the_plan_was_not_exact_for(db: se.Database, plans: list[str]) -> None:
    db.tensor("A", np.array([[0, 1.0], [2, 0]]), promoted=["dim_0", "dim_1"])
    db.tensor("X", np.array([1.0, 2.0]), promoted=["dim_0"])
    with db.prepare("Y[i] = max(A[i, j] * X[j])", ["X"], nonfinite="allow") as step:
        for vector in ([-1.0, -2.0], [0, 0], [np.inf, 1], [np.nan, 1], [1e300, 2.0]):
            with np.errstate(all="ignore"):
                expected = np.max(np.array([[0, 1.0], [2, 0]]) * vector, axis=1)
            np.testing.assert_allclose(step.run(X=np.array(vector))["Y"].to_numpy(), expected)
    assert len(plans) > 1


def test_results_that_turn_infinite_are_refused(db: se.Database) -> None:
    load(db)
    with db.prepare(STEP, ["X"]) as step:
        with pytest.raises(EngineError, match="turned NaN or infinite"):
            step.run(X=np.full(3, 1e308))
        np.testing.assert_array_equal(step.run(X=VECTOR)["Y"].to_numpy(), MATRIX @ VECTOR)


def test_a_run_that_fails_changes_nothing(db: se.Database) -> None:
    """The next run has the values of the last one that succeeded, and a plan that is exact for them."""
    db.tensor("A", MATRIX, axes=["i", "j"], promoted=["i", "j"])
    db.tensor("X", np.array([1.0, 2, 3]), axes=["j"], promoted=["j"])
    db.tensor("W", np.array([0.0, 0, 1]), axes=["i"], promoted=["i"])
    with db.prepare("Y[i] = W[i] * sum(A[i, j] * X[j])", ["X", "W"]) as step:
        vector, weights = np.array([0, -2.0, 0]), np.array([1.0, 2, 0])
        np.testing.assert_array_equal(step.run(X=vector, W=weights)["Y"].to_numpy(), weights * (MATRIX @ vector))
        huge = np.full(3, 1e308)
        for invalid in ({"X": huge, "W": huge}, {"X": huge}):
            with pytest.raises(EngineError, match="turned NaN or infinite"):
                step.run(**invalid)
            np.testing.assert_array_equal(step.run()["Y"].to_numpy(), weights * (MATRIX @ vector))
            np.testing.assert_array_equal(step.run(W=VECTOR)["Y"].to_numpy(), VECTOR * (MATRIX @ vector))
            np.testing.assert_array_equal(step.run(W=weights)["Y"].to_numpy(), weights * (MATRIX @ vector))


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"A": MATRIX}, PlanError, "A is no input that this program was prepared for; it has X"),
        ({"X": np.ones(4)}, ShapeError, r"X is given shape \(4,\), but was prepared with \(3,\)"),
        ({"X": sp.coo_array(np.ones((1, 3)))}, ShapeError, r"X is given shape \(1, 3\)"),
        (
            {"X": pd.DataFrame({"j": [0, 3], "val": [1.0, 2]})},
            DataError,
            "row 1 .* the index j is 3, but axis j has the bound 3",
        ),
        ({"X": pd.DataFrame({"j": [0, 0], "val": [1.0, 2]})}, DataError, "X is given a coordinate twice"),
        ({"X": pd.DataFrame({"i": [0], "j": [0], "val": [1.0]})}, ShapeError, "X"),
        ({"X": ["a", "b", "c"]}, DataError, "X holds str.*, which is no number"),
        ({"X": np.ones(3) * 1j}, DataError, "float64"),
        ({"X": "some.parquet"}, DataError, "X is given str"),
    ],
)
def test_invalid_values(db: se.Database, values: dict[str, Any], error: type[Exception], message: str) -> None:
    load(db)
    with db.prepare(STEP, ["X"]) as step:
        with pytest.raises(error, match=message):
            step.run(**values)
        np.testing.assert_array_equal(step.run()["Y"].to_numpy(), MATRIX @ VECTOR)


def test_inputs_that_cannot_be_supplied(db: se.Database) -> None:
    load(db)
    with pytest.raises(PlanError, match="no input Z to be supplied; it has A, X"):
        db.prepare(STEP, ["Z"])
    db.tensor("K", pd.DataFrame({"who": ["a", "b"], "val": [1.0, 2]}))
    with pytest.raises(PlanError, match="its axis who has natural keys"):
        db.prepare("Y[] = sum(K[who])", ["K"])
    db.tensor("B", np.ones((4, 4)), axes=["i", "j"], promoted={"i": 2, "j": 2})
    with pytest.raises(PlanError, match="several axes of its arrays are tiled"):
        db.prepare("Y[] = sum(B[i, j])", ["B"])


def test_a_closed_program(db: se.Database) -> None:
    load(db)
    step = db.prepare(STEP, "X")
    step.close()
    step.close()
    with pytest.raises(PlanError, match="is closed; prepare it again"):
        step.run(X=VECTOR)


def test_a_memory_limit(db: se.Database) -> None:
    load(db)
    with db.prepare(STEP, ["X"], memory_limit="1GB") as step:
        np.testing.assert_array_equal(step.run(X=VECTOR)["Y"].to_numpy(), MATRIX @ VECTOR)


@pytest.mark.engines("duckdb", reason="PostgreSQL runs it in a savepoint")
def test_a_transaction_of_the_user_stays(db: se.Database) -> None:
    load(db)
    with db.prepare(STEP, ["X"]) as step:
        db.connection.execute("CREATE TABLE t (i INTEGER)")
        db.connection.execute("BEGIN")
        db.connection.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(EngineError, match="open transaction"):
            step.run(X=np.full(3, 1e308))
        db.connection.execute("COMMIT")
        assert db.connection.execute("FROM t").fetchall() == [(1,)]


@pytest.mark.engines("duckdb", reason="PostgreSQL's transactions show in its snapshots")
def test_a_transaction_that_others_began_before(db: se.Database) -> None:
    load(db)
    with db.prepare(STEP, ["X"]) as step:
        other: duckdb.DuckDBPyConnection = db.connection.cursor()
        other.execute("BEGIN")
        other.execute("UPDATE A SET val = 5")
        np.testing.assert_array_equal(step.run()["Y"].to_numpy(), MATRIX @ VECTOR)
        other.execute("COMMIT")
        other.close()
        np.testing.assert_array_equal(step.run()["Y"].to_numpy(), (MATRIX > 0) * 5 @ VECTOR)


@pytest.mark.parametrize("family", FAMILIES)
def test_random_programs(db: se.Database, family: str, request: pytest.FixtureRequest) -> None:
    engine = str(request.node.callspec.params.get("engine", "duckdb"))

    @random_runs(20, engine)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        case = data.draw(cases(family, data.draw(st.sampled_from(["dp", "relational", "dense"]))))
        names = data.draw(st.lists(st.sampled_from(sorted(case.inputs)), min_size=1, unique=True))
        case.load(db)
        try:
            prepared = db.prepare(
                case.text,
                names,
                case.optimizer,
                pin=case.pin,
                layout=case.layout,
                outputs=case.outputs,
                nonfinite=case.nonfinite,
                tiles=case.tiles,
            )
        except se.SparseEinsumError:
            return
        with prepared:
            compare(db, case, prepared, case.inputs, ())
            for _ in range(3):
                others = {
                    name: data.draw(arrays(case.inputs[name].shape, str(case.inputs[name].dtype), case.fills[name]))
                    for name in names
                }
                compare(db, case, prepared, {**case.inputs, **others}, names)

    run()


def compare(
    db: se.Database, case: Case, prepared: se.PreparedProgram, inputs: dict[str, Array], names: list[str] | tuple[()]
) -> None:
    """Run with these values of all inputs: the results are numpy's, and what is refused a run refuses as well."""
    with np.errstate(all="ignore"):
        expected = evaluate_program(se.program(case.text), inputs)
    try:
        results = prepared.run(**{name: inputs[name] for name in names})
    except se.SparseEinsumError as error:
        for name in names:
            case.store(db, name, inputs[name])
        try:
            case.plan(db)
            with pytest.raises(type(error)):
                db.run(case.plan(db))
        finally:
            case.load(db)
        return
    scale = scale_of((*inputs.values(), *expected.values()))
    for name, result in results.items():
        if scale <= LARGEST:
            np.testing.assert_allclose(result.to_numpy(), expected[name], rtol=0, atol=scale * 2e-4, err_msg=name)


def test_small_steps_run_no_statement_but_their_own(db: se.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has written since the last run: no table is looked at, and nothing is written."""
    load(db, promoted=("j",))
    with db.prepare(STEP, ["X"]) as step:
        step.run(X=VECTOR)
        monkeypatch.setattr(SuppliedPlan, "adapts_to_stored", lambda _: pytest.fail("looked at tables"))
        for scale in (2, 3):
            np.testing.assert_array_equal(step.run(X=scale * VECTOR)["Y"].to_numpy(), MATRIX @ VECTOR * scale)


@pytest.mark.parametrize("statement", ["UPDATE main.A SET val = 2 * val", "DELETE FROM main.A", "TRUNCATE main.A"])
def test_other_connections_change_tables(db: se.Database, statement: str) -> None:
    load(db)
    with db.prepare(STEP, ["X"]) as step, db._engine.another_connection() as other:
        for _ in range(3):
            step.run(X=VECTOR)
        other.execute(statement)
        expected = db.run(STEP)["Y"].to_numpy()
        for _ in range(2):
            np.testing.assert_array_equal(step.run(X=VECTOR)["Y"].to_numpy(), expected)
        other.execute("INSERT INTO main.A VALUES (2, 0, 1e308), (2, 1, 1e308)")
        with pytest.raises(EngineError, match="turned NaN or infinite"):
            step.run(X=VECTOR)


@pytest.mark.engines("postgresql", reason="DuckDB runs no program within a transaction of the user")
def test_values_outlive_a_transaction_that_is_undone(db: se.Database) -> None:
    load(db)
    with db.prepare(STEP, ["X"]) as step:
        db.connection.execute("BEGIN")
        for scale in (2, 3):
            np.testing.assert_array_equal(step.run(X=scale * VECTOR)["Y"].to_numpy(), MATRIX @ VECTOR * scale)
        db.connection.execute("UPDATE A SET val = 10 * val")
        np.testing.assert_array_equal(step.run()["Y"].to_numpy(), MATRIX @ VECTOR * 30)
        db.connection.execute("ROLLBACK")
        np.testing.assert_array_equal(step.run()["Y"].to_numpy(), MATRIX @ VECTOR * 3)


def test_statements_over_views_are_optimized(monkeypatch: pytest.MonkeyPatch) -> None:
    """A view may be a product of tables that only an optimiser turns into a join."""
    optimized: list[bool] = []
    prepare = DuckDBEngine.prepared_query

    def observed(self: DuckDBEngine, name: str, query: Any, supplied: Any = (), is_small: bool = False) -> Any:  # noqa: ANN401
        optimized.append(not is_small)
        return prepare(self, name, query, supplied, is_small)

    monkeypatch.setattr(DuckDBEngine, "prepared_query", observed)
    with se.connect() as db:
        load(db)
        with db.prepare(STEP, ["X"]) as step:
            np.testing.assert_array_equal(step.run()["Y"].to_numpy(), MATRIX @ VECTOR)
        db.connection.execute("CREATE VIEW v AS SELECT a.i, b.j, a.val FROM A AS a, A AS b WHERE a.i = b.i")
        db.tensor_from_table("V", "v", ["i", "j"], value="val", shape=(3, 3))
        with db.prepare("Y[i] = sum(V[i, j] * X[j])", ["X"]) as step:
            np.testing.assert_array_equal(step.run()["Y"].to_numpy(), MATRIX @ VECTOR)
        assert db.connection.execute("SELECT current_setting('enable_optimizer')").fetchone() == (True,)
    assert optimized == [False, True]


@pytest.mark.engines("duckdb", reason="PostgreSQL returns results of all sizes in one way")
def test_a_result_that_is_larger_than_expected_is_not_prepared_again(
    db: se.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duckdb_engine, "MOST_FETCHED", 20)
    made: list[float] = []
    original = DuckDBEngine.tuples

    def observed(self: DuckDBEngine, statement: SqlStatement, schema: Schema, count: float) -> pa.Table:
        made.append(count)
        return original(self, statement, schema, count)

    # Both tensors have the same entries, which is more than the plan expects.
    coordinates = tuple(np.random.default_rng(0).integers(0, 50, (4, 300)))
    tensor = sp.coo_array((np.ones(300), coordinates), (50, 50, 50, 50))
    for name in "AB":
        db.tensor(name, tensor)
    with db.prepare("Y[i, j, k, l] = A[i, j, k, l] * B[i, j, k, l]", inputs=[], pin={"Y": "ijkl"}) as step:
        monkeypatch.setattr(DuckDBEngine, "tuples", observed)
        for planned in range(3):
            result = step.run()["Y"].to_scipy()
            assert result.sum() == 300
            assert result.nnz == 300
            assert made == [300] * planned

"""Statements that keep to `memory_limit` in several passes give numpy's results, and read what they share once."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from any_sql import run_sql
from planned_memory import limit_for

import sparseeinsum as se
from sparseeinsum.render.sql_statement import SqlStatement

pytestmark = pytest.mark.engines("duckdb", reason="a server has memory of its own")

PRODUCT = "C[i, k] = sum(A[i, j] * B[j, k])"
GROUPED = {"C": {"i": 1, "j": 1}}


@pytest.fixture
def sparse_times_dense(db: se.Database) -> se.Database:
    """A product for which many groups each add up rows of B."""
    rng = np.random.default_rng(0)
    db.tensor("A", scipy.sparse.csr_array(scipy.sparse.random_array((900, 300), density=0.05, rng=rng)))
    db.tensor("B", rng.random((300, 200)))
    return db


class TestPasses:
    def test_written_in_notation_explained_and_staged(self, sparse_times_dense: se.Database) -> None:
        plan = sparse_times_dense.plan(
            PRODUCT, pin=GROUPED, layout="any", memory_limit=limit_for(sparse_times_dense, 5e6)
        )
        assert plan.notation() == ["C[I, k] = sum(A[I, J] * B[J, k])  # in 4 passes over i"]
        assert str(se.program(plan.notation()[0])) == "C[I, k] = sum(A[I, J] * B[J, k])"
        assert "C: temporary table, in 4 passes" in plan.explain()
        staged = plan.sql("staged")
        assert staged.count("INSERT INTO C") == 3
        assert "BETWEEN 0 AND 224" in staged
        assert "BETWEEN 675 AND 899" in staged
        assert "BETWEEN" not in plan.sql("cte")
        assert plan.cost > sparse_times_dense.plan(PRODUCT, pin=GROUPED, layout="any").cost

    @pytest.mark.engines("duckdb", "postgresql")
    def test_computes_the_same(self, sparse_times_dense: se.Database) -> None:
        expected = sparse_times_dense.run(PRODUCT)["C"].to_numpy()
        for planned in (8e6, 5e6):
            limit = limit_for(sparse_times_dense, planned)
            result = sparse_times_dense.run(PRODUCT, pin=GROUPED, layout="any", memory_limit=limit)["C"].to_numpy()
            np.testing.assert_allclose(result, expected, rtol=1e-12)

    def test_fill_a_table_that_they_read(self, sparse_times_dense: se.Database) -> None:
        """Through a view: all passes read its rows as they were."""
        db = sparse_times_dense
        expected = db.run(PRODUCT)["C"].to_numpy()
        run_sql(db, "CREATE TABLE latest AS SELECT dim_0 AS i, dim_1 AS j, val FROM A")
        run_sql(db, "CREATE VIEW seen AS SELECT i, j, val FROM latest")
        db.tensor_from_table("S", "seen", ["i", "j"], "val", shape=(900, 300))
        tables = run_sql(db, "SELECT table_name FROM duckdb_tables() ORDER BY 1")
        pins = {"C": {"i": 1, "j": 1}}
        plan = db.plan(PRODUCT.replace("A", "S"), pin=pins, layout="any", memory_limit=limit_for(db, 5e6))
        assert "passes over i" in plan.notation()[0]
        db.run(plan, into={"C": "latest"})
        rows = run_sql(db, "SELECT i, val FROM latest ORDER BY i")
        assert [index for index, _ in rows] == list(range(900))
        np.testing.assert_allclose(np.array([values for _, values in rows]), expected, rtol=1e-12)
        assert run_sql(db, "SELECT table_name FROM duckdb_tables() ORDER BY 1") == tables

    def test_fill_tables_with_natural_keys(self, db: se.Database) -> None:
        rng = np.random.default_rng(0)
        names = np.array([f"node {number:03}" for number in range(900)])
        places = np.argwhere(rng.random((900, 300)) < 0.05)
        values = rng.integers(1, 9, len(places)).astype(float)
        db.tensor("A", pd.DataFrame({"i": names[places[:, 0]], "j": places[:, 1], "val": values}))
        other = rng.integers(0, 9, (300, 200)).astype(float)
        db.tensor("B", other)
        plan = db.plan(PRODUCT, pin=GROUPED, layout="any", memory_limit=limit_for(db, 5e6))
        assert "passes over i" in plan.notation()[0]
        db.run(plan, into={"C": "main.products"})
        dense = np.zeros((900, 300))
        dense[*places.T] = values
        rows = run_sql(db, "SELECT i, val FROM products ORDER BY i")
        assert [name for name, _ in rows] == list(names)
        np.testing.assert_array_equal(np.array([values for _, values in rows]), dense @ other)

    def test_compete_with_tiles(self, sparse_times_dense: se.Database) -> None:
        """The cheaper of the plans that fit is taken: tiles or passes."""
        best, *others = sparse_times_dense.plan(
            PRODUCT, memory_limit=limit_for(sparse_times_dense, 6e6), layout="any", top=40
        )
        assert best.cost == min(plan.cost for plan in (best, *others))
        assert any("passes" in plan.notation()[0] for plan in (best, *others))
        assert any(":" in plan.notation()[0] for plan in (best, *others))

    @pytest.mark.engines("duckdb", "postgresql")
    def test_survive_saving(self, sparse_times_dense: se.Database) -> None:
        plan = sparse_times_dense.plan(
            PRODUCT, pin=GROUPED, layout="any", memory_limit=limit_for(sparse_times_dense, 5e6)
        )
        loaded = sparse_times_dense.load_plan(plan.to_json())
        assert loaded.notation() == plan.notation()
        assert loaded.sql("staged") == plan.sql("staged")
        expected = sparse_times_dense.run(PRODUCT)["C"].to_numpy()
        np.testing.assert_allclose(sparse_times_dense.run(loaded)["C"].to_numpy(), expected, rtol=1e-12)

    @pytest.mark.engines("duckdb", "postgresql")
    def test_analysed_as_they_run(self, sparse_times_dense: se.Database, staged_statements: list[SqlStatement]) -> None:
        plan = sparse_times_dense.plan(
            PRODUCT, pin=GROUPED, layout="any", memory_limit=limit_for(sparse_times_dense, 5e6)
        )
        assert "900" in plan.explain(analyze=True)
        (step,) = plan.data.decomposed.steps
        assert step.passes is not None
        in_passes = ("C", step.passes.count - 1)
        assert [(statement.name, len(statement.passes)) for statement in staged_statements] == [
            in_passes,
            in_passes,
        ]  # of the run, and of the statement alone

    @pytest.mark.engines("duckdb", "postgresql")
    def test_operands_are_stacked_in_passes(self, db: se.Database) -> None:
        """Rows are stacked from entries in passes, as memory does not hold all of them at once."""
        array = np.random.default_rng(0).random((3000, 60))
        db.tensor("A", array, promoted=["dim_0", "dim_1"])
        plan = db.plan("Y[i] = max(A[i, j])", pin={"Y": {"i": 1}}, memory_limit=limit_for(db, 4.5e6))
        staged = plan.sql("staged").replace('"', "")
        assert "CREATE TABLE A_by_dim_0_1" in staged.replace("TEMPORARY ", "")
        assert "INSERT INTO A_by_dim_0_1" in staged
        np.testing.assert_array_equal(db.run(plan)["Y"].to_numpy(), array.max(axis=1))

    @pytest.mark.engines("duckdb", "postgresql")
    def test_results_that_passes_read_are_computed_once(self, db: se.Database) -> None:
        rng = np.random.default_rng(0)
        inputs = {"A": rng.random((8000, 400)), "B": rng.random((400, 90))}
        for name, array in inputs.items():
            db.tensor(name, array)
        pin = {"T": {"i": 1, "k": 1}, "Z": {"i": 1, "k": 1}}
        text = "T[i, k] = sum(A[i, j] * B[j, k])\nZ[j, i] = sum(B[j, k] * T[i, k])\ny[j] = max(Z[j, i])"
        plan = db.plan(text, pin=pin, memory_limit=limit_for(db, 3.4e7), layout="any", indexes=False)
        assert "passes" in plan.notation()[1]
        assert plan.sql("staged").replace('"', "").count("CREATE TEMPORARY TABLE T ") == 1
        expected = (inputs["B"] @ (inputs["A"] @ inputs["B"]).T).max(axis=1)
        np.testing.assert_allclose(db.run(plan)["y"].to_numpy(), expected)

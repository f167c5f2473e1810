"""Users' tables are read in their current state, and refused once they are no tensor any more."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from any_sql import run_sql
from edge_tables import MATRIX, ROW_SUMS, refer
from observed_statements import observe_queries
from reading import assert_usable

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", "postgresql")

RIGHT = {
    "inserted": ("INSERT INTO edges VALUES (1, 2, 9)", [1.5, 9, 1.5]),
    "deleted": ("DELETE FROM edges WHERE src = 0", [0, 0, 1.5]),
    "emptied": ("DELETE FROM edges", [0, 0, 0]),
    "updated": ("UPDATE edges SET w = w * 2", [3, 0, 3]),
    "explicit zero": ("INSERT INTO edges VALUES (1, 2, 0)", [1.5, 0, 1.5]),
    "columns in another order": ("CREATE OR REPLACE TABLE edges AS SELECT w, dst, src FROM edges", [1.5, 0, 1.5]),
    "wider indices": ("ALTER TABLE edges ALTER src TYPE BIGINT", [1.5, 0, 1.5]),
    "a view instead": (
        "ALTER TABLE edges RENAME TO e; CREATE VIEW edges AS SELECT src, dst, w * 2 AS w FROM e",
        [3, 0, 3],
    ),
}
WRONG = {
    "NULL value": ("INSERT INTO edges VALUES (1, 1, NULL)", se.DataError, r"row 3 .*the value w is NULL"),
    "NULL index": ("INSERT INTO edges VALUES (NULL, 1, 1)", se.DataError, r"row 3 .*the index src is NULL"),
    "duplicate": ("INSERT INTO edges VALUES (2, 0, 7)", se.DataError, r"row 3 .*\(2, 0\) stands in an earlier row"),
    "beyond the bound": ("INSERT INTO edges VALUES (3, 0, 7)", se.DataError, r"row 3 .*the index src is 3"),
    "negative": ("INSERT INTO edges VALUES (0, -1, 7)", se.DataError, r"row 3 .*the index dst is -1"),
    "table dropped": ("DROP TABLE edges", se.CatalogueError, r"can no longer be read from main.edges: .*not exist"),
    "value dropped": (
        "ALTER TABLE edges DROP COLUMN w",
        se.CatalogueError,
        r"can no longer be read.*w\W+ (not found|does not exist)",
    ),
    "index dropped": (
        "ALTER TABLE edges DROP COLUMN dst",
        se.CatalogueError,
        r"can no longer be read.*dst\W+ (not found|does not exist)",
    ),
    "texts for values": (
        "ALTER TABLE edges ALTER w TYPE VARCHAR",
        se.CatalogueError,
        r"column w has the type (VARCHAR|TEXT) now",
    ),
    "narrower values": ("ALTER TABLE edges ALTER w TYPE FLOAT", se.CatalogueError, r"column w has the type FLOAT now"),
    "texts for indices": (
        "ALTER TABLE edges ALTER src TYPE VARCHAR",
        se.CatalogueError,
        r"src has the type (VARCHAR|TEXT) now",
    ),
    "fractions for indices": (
        "CREATE OR REPLACE TABLE edges AS SELECT src + 0.5::DOUBLE AS src, dst, w FROM edges WHERE src < 2",
        se.CatalogueError,
        r"column src has the type DOUBLE now; .*define the tensor again",
    ),
    "another table": ("CREATE OR REPLACE TABLE edges AS SELECT 1 AS x", se.CatalogueError, r"can no longer be read"),
}


def planned_before(db: se.Database, change: str) -> se.Plan:
    plan = db.plan(ROW_SUMS)
    run_sql(db, change)
    return plan


def not_planned(db: se.Database, change: str) -> str:
    run_sql(db, change)
    return ROW_SUMS


when = pytest.mark.parametrize("make", [planned_before, not_planned])


@pytest.mark.parametrize("change", RIGHT.keys())
@when
def test_results_are_of_the_data_as_they_are_now(
    edges: se.Database, make: Callable[[se.Database, str], se.Plan | str], change: str
) -> None:
    refer(edges, "edges")
    statement, expected = RIGHT[change]
    np.testing.assert_array_equal(edges.run(make(edges, statement))["Y"].to_numpy(), expected)


@pytest.mark.parametrize("change", WRONG.keys())
@when
def test_tables_that_are_no_tensor_any_more_are_refused(
    edges: se.Database, make: Callable[[se.Database, str], se.Plan | str], change: str
) -> None:
    refer(edges, "edges")
    statement, error, message = WRONG[change]
    with pytest.raises(error, match=r"tensor A.*" + message):
        edges.run(make(edges, statement))
    assert_usable(edges)


def test_values_that_are_cast_may_change_their_type(edges: se.Database) -> None:
    run_sql(edges, "ALTER TABLE edges ALTER w TYPE INTEGER")
    edges.tensor_from_table("A", "edges", ["src", "dst"], "w", shape=(3, 3), dtype="float64")
    plan = planned_before(edges, "ALTER TABLE edges ALTER w TYPE DECIMAL(9, 2); UPDATE edges SET w = 0.25")
    np.testing.assert_array_equal(edges.run(plan)["Y"].to_numpy(), [0.25, 0, 0.5])
    run_sql(edges, "ALTER TABLE edges ALTER w TYPE VARCHAR")
    with pytest.raises(se.CatalogueError, match=r"column w has the type (VARCHAR|TEXT) now"):
        edges.run(ROW_SUMS)


CHANGED = {
    "whole number beyond float64": ("BIGINT", "float64", str(2**53 + 1), "no float64"),
    "whole number beyond int64": ("HUGEINT", "int64", str(2**63), "no int64"),
    "fraction": ("DOUBLE", "int64", "2.5", "no int64"),
    "number that is no truth value": ("INTEGER", "bool", "2", "no bool"),
    "number beyond float32": ("DOUBLE", "float32", "1e300", "no float32"),
}


@pytest.mark.parametrize("change", CHANGED.keys())
@when
def test_values_that_would_change_when_they_are_cast_are_refused(
    edges: se.Database, make: Callable[[se.Database, str], se.Plan | str], change: str
) -> None:
    sql_type, dtype, value, message = CHANGED[change]
    run_sql(edges, f"ALTER TABLE edges ALTER w TYPE {sql_type} USING CASE WHEN w > 0 THEN 1 ELSE 0 END")
    edges.tensor_from_table("A", "edges", ["src", "dst"], "w", shape=(3, 3), dtype=dtype)
    with pytest.raises(se.DataError, match=rf"tensor A, row 2 \(counted from 0\): the value w is .*{message}"):
        edges.run(make(edges, f"UPDATE edges SET w = {value} WHERE dst = 1 AND src = 2"))
    assert_usable(edges)


ELSEWHERE = {
    "a view": "ALTER TABLE edges RENAME TO rows; CREATE VIEW edges AS SELECT * FROM rows",
    "a temporary table": "CREATE TEMP TABLE moved AS FROM edges; DROP TABLE edges; ALTER TABLE moved RENAME TO edges",
    "a computed column": "CREATE TABLE old AS FROM edges; CREATE OR REPLACE TABLE edges (src INT, dst INT, x DOUBLE, "
    "w DOUBLE GENERATED ALWAYS AS (x)); INSERT INTO edges SELECT src, dst, w FROM old",
}


@pytest.mark.engines("duckdb", reason="on a server, other sessions write")
@pytest.mark.parametrize("change", [None, *ELSEWHERE])
def test_rows_are_read_again_only_if_the_database_has_changed(
    edges: se.Database, monkeypatch: pytest.MonkeyPatch, change: str | None
) -> None:
    """Of tables of the database: views may read files, and temporary tables are in a database of their own."""
    if change is not None:
        run_sql(edges, ELSEWHERE[change])
    refer(edges, "edges")
    plan = edges.plan(ROW_SUMS)
    edges.run(plan)
    statements = observe_queries(edges, monkeypatch)
    edges.plan(ROW_SUMS)
    before = edges.run(plan)["Y"].to_numpy()
    assert any("edges" in text for text in statements) == (change is not None)
    run_sql(edges, "UPDATE edges SET w = w + 1" if change is None else "CREATE TABLE other (i INT)")
    statements.clear()
    after = edges.run(plan)["Y"].to_numpy()
    assert any("edges" in text for text in statements)
    assert (after > before).any() == (change is None)


@pytest.mark.engines("duckdb", reason="PostgreSQL reads no files")
def test_file_that_changes(edges: se.Database, tmp_path: Path) -> None:
    path = tmp_path / "edges.parquet"
    run_sql(edges, f"COPY edges TO '{path}'")
    refer(edges, path)
    plan = edges.plan(ROW_SUMS)
    run_sql(edges, f"COPY (SELECT src, dst, w + 1 AS w FROM edges) TO '{path}'")
    np.testing.assert_array_equal(edges.run(plan)["Y"].to_numpy(), [2.5, 0, 3.5])
    run_sql(edges, f"COPY (SELECT src, dst, w FROM edges UNION ALL FROM edges) TO '{path}'")
    with pytest.raises(se.DataError, match=r"tensor A, row .* stands in an earlier row"):
        edges.run(plan)
    path.unlink()
    with pytest.raises(se.CatalogueError, match=r"tensor A can no longer be read .*No files found"):
        edges.run(plan)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ("UPDATE A SET val = [7] WHERE dim_0 = 1", se.DataError, r"row \d .*val has 1 elements, .* multiply to 3"),
        ("UPDATE A SET val = [7, NULL, 8] WHERE dim_0 = 1", se.DataError, r"row \d .*array val holds NULL"),
        ("UPDATE A SET val = NULL WHERE dim_0 = 1", se.DataError, r"row \d .*value val is NULL"),
        ("INSERT INTO A FROM A WHERE dim_0 = 1", se.DataError, r"row 3 .*coordinate \(1\) stands in an earlier row"),
        (
            "CREATE OR REPLACE TABLE A AS SELECT dim_0, val::FLOAT[] AS val FROM A",
            se.CatalogueError,
            r"column val has the type FLOAT\[\] now",
        ),
        (
            "CREATE OR REPLACE TABLE A AS SELECT dim_0, 1::DOUBLE AS val FROM A",
            se.CatalogueError,
            r"column val has the type DOUBLE now",
        ),
    ],
)
@when
def test_arrays_that_are_no_tensor_any_more(
    db: se.Database,
    make: Callable[[se.Database, str], se.Plan | str],
    change: str,
    error: type[se.SparseEinsumError],
    message: str,
) -> None:
    db.tensor("A", MATRIX, promoted=["dim_0"])
    with pytest.raises(error, match=r"tensor A.*" + message):
        db.run(make(db, change))
    assert_usable(db)


def test_planning_names_bad_rows_too(db: se.Database) -> None:
    db.tensor("A", MATRIX, promoted=["dim_0"])
    run_sql(db, "UPDATE A SET val = [7] WHERE dim_0 = 1")
    with pytest.raises(se.DataError, match=r"tensor A, row \d .*val has 1 elements"):
        db.plan(ROW_SUMS)
    with pytest.raises(se.DataError, match=r"tensor A, row \d .*val has 1 elements"):
        db.statistics("A")


def test_arrays_that_change_in_value(db: se.Database) -> None:
    db.tensor("A", MATRIX, promoted=["dim_0"])
    plan = planned_before(db, "UPDATE A SET val = [1, 2, 4] WHERE dim_0 = 1")
    np.testing.assert_array_equal(db.run(plan)["Y"].to_numpy(), [1.5, 7, 1.5])


def test_plan_that_needs_every_tuple_is_refused_once_one_is_absent(db: se.Database) -> None:
    """The maximum over a row that has every tuple ignores the fill; it must not once a tuple is absent."""
    full = -np.ones((2, 2))
    db.tensor("A", full, promoted=["dim_0", "dim_1"])
    plan = db.plan("Y[i] = max(A[i, j])")
    run_sql(db, "DELETE FROM A WHERE dim_0 = 0 AND dim_1 = 0")
    with pytest.raises(se.EngineError, match="tensor A has changed since the plan was made; plan again"):
        db.run(plan)
    np.testing.assert_array_equal(db.run("Y[i] = max(A[i, j])")["Y"].to_numpy(), [0, -1])


@pytest.mark.parametrize("value", ["'inf'", "'-inf'", "'nan'"])
def test_plan_for_finite_data_is_refused_when_they_are_no_more(edges: se.Database, value: str) -> None:
    """Absent entries of a factor may be left out only beside finite factors, as 0 * inf is NaN."""
    refer(edges, "edges")
    edges.tensor("B", np.array([[1.0, 0, 0]] * 3), promoted=["dim_0", "dim_1"])
    program = "Y[i, k] = sum(A[i, j] * B[j, k])"
    plan = edges.plan(program)
    run_sql(edges, f"UPDATE edges SET w = {value} WHERE src = 0")
    with pytest.raises(se.EngineError, match="tensor A has changed since the plan was made; plan again"):
        edges.run(plan)
    with np.errstate(invalid="ignore"):
        expected = np.where(MATRIX == 1.5, float(value.strip("'")), MATRIX) @ np.array([[1.0, 0, 0]] * 3)
    np.testing.assert_array_equal(edges.run(program)["Y"].to_numpy(), expected)


@pytest.mark.parametrize("nonfinite", ["error", "allow"])
def test_plans_whose_order_is_right_for_finite_values_alone_are_refused(db: se.Database, nonfinite: str) -> None:
    """B C first gives numbers where numpy's inf * 0 is NaN, and no fill shows the zeros."""
    rng = np.random.default_rng(0)
    zero = rng.uniform(1, 2, (6, 6))
    zero[0, 0] = 0
    db.tensor("A", rng.uniform(1, 2, (6, 6)), promoted=["dim_0", "dim_1"])
    db.tensor("B", zero, fill=7)
    db.tensor("C", rng.uniform(1, 2, (6, 1)))
    text = "Y[i, l] = sum(A[i, j] * B[j, k] * C[k, l])"
    plan = db.plan(text, nonfinite=nonfinite)
    assert plan.data.rewriting.rewritten == ("Y_1", "Y")
    run_sql(db, "UPDATE A SET val = val * 0.99 + 0.011")
    np.testing.assert_allclose(db.run(plan)["Y"].to_numpy(), db.run(text, optimizer="dense")["Y"].to_numpy())
    run_sql(db, "UPDATE A SET val = 'inf' WHERE dim_0 = 0")
    with pytest.raises(se.EngineError, match=r"tensor A has .*computes Y_1, Y exactly for .*plan again"):
        db.run(plan)
    assert np.isnan(db.run(text, nonfinite=nonfinite)["Y"].to_numpy()[0, 0])

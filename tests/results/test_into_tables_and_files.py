"""Results replace or extend tables and files completely or not at all, and keep views on them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from any_sql import run_sql
from pyarrow import parquet
from reading import assert_usable, column_types, contents, read_back

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", "postgresql")

A = np.array([[1.0, 2.0], [3.0, 4.0]])
SUMS = "Y[i] = sum(A[i, j])"
SCORES = "SELECT * FROM scores ORDER BY i"


@pytest.fixture
def loaded(db: se.Database) -> se.Database:
    db.tensor("A", A)
    return db


def added(name: str) -> se.Table:
    return se.Table(name, mode="append")


def test_append_makes_the_table_then_adds_to_it(loaded: se.Database) -> None:
    loaded.run(SUMS, into={"Y": added("scores")})
    assert run_sql(loaded, SCORES) == [(0, 3), (1, 7)]
    run_sql(loaded, "UPDATE scores SET i = i + 5")
    loaded.run(SUMS, into={"Y": added("main.scores")})
    assert run_sql(loaded, SCORES) == [(0, 3), (1, 7), (5, 3), (6, 7)]
    loaded.run(SUMS, into={"Y": se.Table("scores")})
    assert run_sql(loaded, SCORES) == [(0, 3), (1, 7)]


@pytest.mark.parametrize("table", ["values", '"my table"', "other.scores"])
def test_names_of_tables_to_add_to(loaded: se.Database, table: str) -> None:
    run_sql(loaded, "CREATE SCHEMA other")
    for shift in (10, 20):
        loaded.run(SUMS, into={"Y": added(table)})
        quoted = table if '"' in table or "." in table else f'"{table}"'
        run_sql(loaded, f"UPDATE {quoted} SET i = i + {shift}")
    assert run_sql(loaded, f"SELECT i FROM {quoted} ORDER BY i") == [(20,), (21,), (30,), (31,)]


def test_order_of_columns_and_width_of_indices_may_differ(loaded: se.Database) -> None:
    run_sql(loaded, "CREATE TABLE scores (val DOUBLE, I BIGINT)")
    loaded.run(SUMS, into={"Y": added("scores")})
    assert run_sql(loaded, "SELECT i, val FROM scores ORDER BY i") == [(0, 3), (1, 7)]


def test_rows_may_be_added_to_a_table_that_the_program_reads(db: se.Database) -> None:
    """Steps of a process: each step doubles the previous one and is appended to it."""
    run_sql(db, "CREATE TABLE steps AS SELECT 0::INTEGER AS t, 1.0::DOUBLE AS val")
    db.tensor("Next", ([[0, 1, 2], [1, 2, 3]], [2.0, 2.0, 2.0]), shape=(4, 4))
    for step in range(3):
        run_sql(db, f"CREATE OR REPLACE VIEW last AS SELECT t, val FROM steps WHERE t = {step}")
        db.tensor_from_table("L", "last", ["t"], "val", shape=(4,))
        db.run("N[t] = sum(L[u] * Next[u, t])", into={"N": added("steps")})
    assert run_sql(db, "SELECT * FROM steps ORDER BY t") == [(0, 1), (1, 2), (2, 4), (3, 8)]


@pytest.mark.parametrize("program", [SUMS, "Y[] = sum(A[i, j])", "Y[I, j] = A[I, j]", "Y[i, j] = A[i, j]"])
def test_indices_that_exist_are_refused(loaded: se.Database, program: str) -> None:
    loaded.run(program, into={"Y": added("scores")})
    before = contents(loaded)
    with pytest.raises(
        se.DataError, match=r"the table scores has a row at (i 0|its single).* already, which .* delete"
    ):
        loaded.run(program, into={"Y": added("scores")})
    assert contents(loaded) == before
    assert_usable(loaded)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("i INTEGER, value DOUBLE", "it has the columns i, val, and the table has i, value; name the labels"),
        ("i INTEGER, val DOUBLE, day DATE", "it has the columns i, val, and the table has i, val, day"),
        ("i INTEGER, val FLOAT", "its column val has type DOUBLE, and that of the table FLOAT; change one"),
        ("i VARCHAR, val DOUBLE", "its column i has type (INTEGER|BIGINT), and that of the table (VARCHAR|TEXT)"),
    ],
)
def test_tables_of_other_columns_are_refused(loaded: se.Database, columns: str, message: str) -> None:
    run_sql(loaded, f"CREATE TABLE scores ({columns})")
    before = contents(loaded)
    with pytest.raises(se.DataError, match=f"Y cannot be added to the table scores: {message}"):
        loaded.run(SUMS, into={"Y": added("scores")})
    assert contents(loaded) == before


@pytest.mark.parametrize(
    ("into", "error", "message"),
    [
        ({"Y": added("A")}, se.CatalogueError, "A is the table that tensor A was loaded into"),
        ({"X": added("scores")}, se.PlanError, "the plan returns no X to put into the table scores; it returns Y"),
        ({"Y": "y.csv"}, se.PlanError, r"Y is to go into the file y\.csv, but only Parquet is written; .* y\.parquet"),
        ({"Y": added("y.parquet")}, se.PlanError, r"y\.parquet is the name of a file, which is replaced; give it with"),
        ({"Y": Path("nowhere/y.parquet")}, se.DataError, r"there is no folder .*nowhere to write y\.parquet into"),
        ({"X": "y.parquet"}, se.PlanError, r"the plan returns no X to put into the file .*y\.parquet; it returns Y"),
    ],
)
def test_refused_targets(
    loaded: se.Database,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    into: dict[str, str | Path | se.Table],
    error: type[se.SparseEinsumError],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = contents(loaded)
    with pytest.raises(error, match=message):
        loaded.run(SUMS, into=into)
    assert contents(loaded) == before
    assert list(tmp_path.iterdir()) == []


def test_modes_of_tables() -> None:
    with pytest.raises(se.PlanError, match="mode 'add' of the table scores is neither 'replace' nor 'append'"):
        se.Table("scores", mode="add")


def test_files_and_tables_of_a_run_stay_when_it_fails(loaded: se.Database, tmp_path: Path) -> None:
    path = tmp_path / "y.parquet"
    two = SUMS + "\nZ[i] = sum(1 / (A[i, j] - {}))"
    loaded.run(two.format(7), into={"Y": path, "Z": "z"})
    content, before = path.read_bytes(), contents(loaded)
    with pytest.raises(se.EngineError):
        loaded.run(two.format(4), into={"Y": path, "Z": "z"})
    assert (path.read_bytes(), contents(loaded)) == (content, before)
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(se.PlanError, match=r"Y and Z are both to go into the file .*y\.parquet; give each one"):
        loaded.run(two.format(7), into={"Y": path, "Z": f"{tmp_path}/../{tmp_path.name}/y.parquet"})
    assert parquet.read_table(path).to_pydict() == {"i": [0, 1], "val": [3, 7]}


def test_natural_keys(db: se.Database, tmp_path: Path) -> None:
    """Tables, files and batches have the natural keys of the data."""
    frame = pd.DataFrame({"who": ["ann", "bob", "cy"], "val": [1.0, 2.0, 3.0]})
    db.tensor("P", frame)
    path = tmp_path / "y.parquet"
    db.run("Y[who] = P[who] * 2\nZ[WHO] = P[WHO] * 2", into={"Y": added("scores"), "Z": path})
    doubled = [("ann", 2), ("bob", 4), ("cy", 6)]
    assert run_sql(db, "SELECT who, val FROM scores ORDER BY who") == doubled
    with pytest.raises(se.DataError, match="the table scores has a row at who ann already"):
        db.run("Y[who] = P[who] * 2", into={"Y": added("scores")})
    run_sql(db, "DELETE FROM scores")
    db.run("Y[who] = P[who] * 2", into={"Y": added("scores")})
    assert run_sql(db, "SELECT who, val FROM scores ORDER BY who") == doubled
    with db.stream("Y[who] = P[who] * 2") as stream:
        tables = [stream["Y"].read_all(), parquet.read_table(path)]
    for table in tables:
        assert sorted(zip(*table.to_pydict().values(), strict=True)) == doubled
        assert db.tensor("Q", table, fill=5).tensor.shape == (3,)


class TestViews:
    @pytest.fixture
    def viewed(self, loaded: se.Database) -> se.Database:
        """A table of a result, and a view on it."""
        loaded.run(SUMS, into={"Y": "scores"})
        run_sql(loaded, "CREATE VIEW best AS SELECT * FROM scores WHERE val > 5")
        return loaded

    def test_a_view_stays_where_columns_do(self, viewed: se.Database) -> None:
        types = column_types(viewed, "scores")
        viewed.run("Y[i] = sum(A[i, j]) * 10", into={"Y": "scores"})
        assert run_sql(viewed, "SELECT * FROM best ORDER BY i") == [(0, 30), (1, 70)]
        assert column_types(viewed, "scores") == types

    def test_a_table_is_read_while_its_rows_are_replaced(self, viewed: se.Database) -> None:
        viewed.tensor_from_table("S", "best", ["i"], "val", shape=(2,))
        viewed.run("Y[i] = S[i] * 2", into={"Y": "scores"})
        assert read_back(viewed, "S").tolist() == [0, 14]

    @pytest.mark.engines("postgresql", reason="DuckDB binds views anew")
    def test_other_columns_are_refused(self, viewed: se.Database) -> None:
        run_sql(viewed, "CREATE MATERIALIZED VIEW most AS SELECT * FROM scores")
        before = contents(viewed)
        with pytest.raises(
            se.CatalogueError,
            match=r"main\.scores cannot be replaced by one of other columns, because the materialized view main\.most, "
            r"the view main\.best depend on it; drop that first",
        ):
            viewed.run("Y[i, j] = A[i, j]", into={"Y": "scores"})
        assert contents(viewed) == before
        assert_usable(viewed)

    @pytest.mark.engines("postgresql", reason="DuckDB keeps no keys of results")
    def test_a_table_that_foreign_keys_refer_to(self, viewed: se.Database) -> None:
        viewed.connection.execute("DROP VIEW best; CREATE TABLE more (i INTEGER REFERENCES scores)")
        with pytest.raises(se.EngineError, match="truncate a table referenced in a foreign key"):
            viewed.run(SUMS, into={"Y": "scores"})
        with pytest.raises(
            se.CatalogueError, match=r"because constraint more_i_fkey on table main\.more depends on it"
        ):
            viewed.run("Y[i, j] = A[i, j]", into={"Y": "scores"})
        assert_usable(viewed)

    def test_a_view_on_a_tensor_stays(self, loaded: se.Database) -> None:
        loaded.tensor("B", A, promoted=["dim_0", "dim_1"])
        run_sql(loaded, "CREATE VIEW large AS SELECT * FROM B WHERE val > 2")
        loaded.tensor("B", A * 2, promoted=["dim_0", "dim_1"])
        assert [row[2] for row in run_sql(loaded, "SELECT * FROM large ORDER BY val")] == [4, 6, 8]


def test_a_table_is_read_with_all_appended_rows(db: se.Database) -> None:
    db.tensor("B", ([[0]], [5.0]), shape=(2,))
    db.tensor("C", ([[2]], [7.0]), shape=(4,))
    db.run("Y[i] = B[i] + 1", into={"Y": added("scores")})
    with pytest.raises(se.DataError, match=r"with the fill 1\.0, and Z has dtype float64 and the fill 0\.0"):
        db.run("Z[i] = 2 * C[i]", into={"Z": added("scores")})
    assert db.run("S[i] = scores[i] * 1")["S"].to_numpy().tolist() == [6, 1]
    db.run("Z[i] = C[i] + 1", into={"Z": added("scores")})
    assert db.run("S[i] = scores[i] * 1")["S"].to_numpy().tolist() == [6, 1, 8, 1]

"""Runs write results into users' tables completely or not at all."""

from collections.abc import Mapping

import numpy as np
import pytest
import two_matrices
from any_sql import run_sql
from reading import assert_usable, column_types, contents, read_back
from two_matrices import PRODUCT, SHARED, A

import sparseeinsum as se


@pytest.fixture
def loaded(db: se.Database) -> se.Database:
    """A database of the test's own with both matrices."""
    return two_matrices.load(db)


def test_result_goes_into_a_table(loaded: se.Database) -> None:
    results = loaded.run(SHARED, into={"Y": "row sums"})
    assert list(results) == ["Z"]
    assert list(column_types(loaded, '"row sums"')) == ["i", "val"]
    assert run_sql(loaded, 'FROM "row sums" ORDER BY i') == [(0, 5), (1, 30)]
    assert list(loaded.tensors()) == ["A", "B"]


def test_table_is_replaced_whole(loaded: se.Database) -> None:
    run_sql(loaded, "CREATE TABLE scores AS SELECT 42 AS answer")
    loaded.run(PRODUCT, into={"Y": "scores"})
    assert list(column_types(loaded, "scores")) == ["i", "k", "val"]
    loaded.run("Y[i] = sum(A[i, j])", into={"Y": "main.SCORES"})
    assert run_sql(loaded, "FROM scores ORDER BY i") == [(0, 3), (1, 7)]


@pytest.mark.parametrize("table", ["select", "values", '"my table"', "other.scores", 'other."group"'])
def test_names_of_tables(loaded: se.Database, table: str) -> None:
    run_sql(loaded, "DROP SCHEMA IF EXISTS other CASCADE; CREATE SCHEMA other")
    loaded.run("Y[i] = sum(A[i, j])", into={"Y": table})
    quoted = table if '"' in table or "." in table else f'"{table}"'
    assert run_sql(loaded, f"FROM {quoted} ORDER BY i") == [(0, 3), (1, 7)]


def test_names_of_tables_are_no_sql(loaded: se.Database) -> None:
    loaded.run("Y[] = sum(A[i, j])", into={"Y": "t; DROP TABLE A"})
    assert run_sql(loaded, 'FROM "t; DROP TABLE A"') == [(10,)]
    np.testing.assert_array_equal(read_back(loaded, "A"), A)


def test_table_keeps_the_layout_asked_for(loaded: se.Database) -> None:
    loaded.run("Y[I, k] = sum(A[I, j] * B[j, k])", into={"Y": "scores"})
    assert run_sql(loaded, "FROM scores ORDER BY i") == [(0, [5, 0]), (1, [6, 24])]


def test_table_of_the_user_that_the_program_reads_may_be_replaced(db: se.Database) -> None:
    """A step of an iteration: the new ranks replace the old ones."""
    run_sql(db, "CREATE TABLE ranks AS SELECT n::INTEGER AS i, 1.0::DOUBLE AS val FROM range(2) AS r(n)")
    db.tensor_from_table("R", "ranks", ["i"], "val", shape=(2,))
    db.tensor("M", np.array([[0.0, 2.0], [3.0, 0.0]]))
    db.run("N[i] = sum(M[i, j] * R[j])", into={"N": "ranks"})
    np.testing.assert_array_equal(read_back(db, "R"), [2, 3])
    db.run("N[i] = sum(M[i, j] * R[j])", into={"N": "ranks"})
    np.testing.assert_array_equal(read_back(db, "R"), [6, 6])


@pytest.mark.parametrize(
    ("into", "error", "message"),
    [
        ({"X": "scores"}, se.PlanError, "the plan returns no X to put into the table scores; it returns Y, Z"),
        ({"T": "scores"}, se.PlanError, "the plan returns no T to put into the table scores; it returns Y, Z"),
        ({"Y": "scores", "Z": "Scores"}, se.PlanError, "Y and Z are both to go into the table Scores; give each one"),
        ({"Y": "A"}, se.CatalogueError, "A is the table that tensor A was loaded into; choose another table for Y"),
        ({"Y": "main.a"}, se.CatalogueError, r"main\.a is the table that tensor A was loaded into"),
        ({"Y": '"B"'}, se.CatalogueError, '"B" is the table that tensor B was loaded into'),
        (
            {"Y": "sparseeinsum.tensors"},
            se.CatalogueError,
            "belongs to the catalogue of tensors; choose another table for Y",
        ),
        ({"Y": ""}, se.CatalogueError, "'' names no table"),
        ({"Y": "scores", "Z": "nowhere.scores"}, se.EngineError, r'nowhere"? does not exist(.|\n)*in the statement'),
        ({"Y": "scores", "Z": "scores_view"}, (se.EngineError, se.CatalogueError), "(?i:view)"),
    ],
)
def test_old_tables_stay_when_a_run_fails(
    loaded: se.Database,
    into: Mapping[str, str],
    error: type[se.SparseEinsumError] | tuple[type[se.SparseEinsumError], ...],
    message: str,
) -> None:
    run_sql(loaded, "CREATE TABLE scores AS SELECT 42 AS answer; CREATE VIEW scores_view AS SELECT 42 AS answer")
    before = contents(loaded)
    for program in (SHARED, loaded.plan(SHARED)):
        with pytest.raises(error, match=message):
            loaded.run(program, into=into)
        assert contents(loaded) == before
    assert_usable(loaded)


@pytest.mark.engines("duckdb", reason="the name of the database is DuckDB's")
def test_tables_by_the_name_of_their_database(loaded: se.Database) -> None:
    both = {"Y": "scores", "Z": "memory.main.scores"}
    message = "Y and Z are both to go into the table memory"
    test_old_tables_stay_when_a_run_fails(loaded, both, se.PlanError, message)
    loaded.connection.execute("DROP TABLE scores; DROP VIEW scores_view")
    message = r"memory\.A is the table that tensor A was loaded into"
    test_old_tables_stay_when_a_run_fails(loaded, {"Y": "memory.A"}, se.CatalogueError, message)

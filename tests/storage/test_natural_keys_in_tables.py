"""Natural keys in tables, views and dbt models are looked up whenever their rows are read."""

import datetime
from pathlib import Path

import pytest
from any_sql import run_sql
from reading import engine_of, rows_of
from render_dbt import new_project, render, run

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", "postgresql")

TABLE = "CREATE TABLE calls (caller TEXT, day DATE, minutes DOUBLE PRECISION)"
CALLS = (
    "INSERT INTO calls VALUES ('al', DATE '2021-01-02', 1), ('Al', DATE '2021-01-01', 2), ('é', DATE '2021-01-01', 3)"
)


@pytest.fixture
def calls(db: se.Database) -> se.Database:
    """A database with a table of calls."""
    run_sql(db, TABLE)
    run_sql(db, CALLS)
    return db


def test_tables_are_read_in_place(calls: se.Database) -> None:
    stored = calls.tensor_from_table("C", "calls", ["caller", "day"], "minutes", keys={"caller": "person"})
    assert [axis.dictionary.name for axis in stored.tensor.axes if axis.dictionary] == ["person", "day"]
    assert calls.dictionary("person").to_pylist() == ["Al", "al", "é"]
    results = calls.run("Y[d] = sum(C[p, d])\nZ[p] = max(C[p, d])")
    assert rows_of(results["Y"]) == [(datetime.date(2021, 1, 1), 5.0), (datetime.date(2021, 1, 2), 1.0)]
    assert rows_of(results["Z"]) == [("Al", 2.0), ("al", 1.0), ("é", 3.0)]


def test_new_keys_of_a_table_are_named(calls: se.Database) -> None:
    calls.tensor_from_table("C", "calls", ["caller", "day"], "minutes")
    plan = calls.plan("Y[p] = sum(C[p, d])")
    run_sql(calls, "INSERT INTO calls VALUES ('mia', DATE '2021-01-01', 1)")
    for program in ("Y[p] = sum(C[p, d])", plan):
        with pytest.raises(
            se.DataError, match=r"C, row 3 .*the key caller is mia, which the dictionary caller lacks; decl"
        ):
            calls.run(program)
    calls.tensor_from_table("C", "calls", ["caller", "day"], "minutes")
    assert rows_of(calls.run("Y[p] = sum(C[p, d])")["Y"])[-2:] == [("mia", 1.0), ("é", 3.0)]
    run_sql(calls, "INSERT INTO calls VALUES (NULL, DATE '2021-01-01', 1)")
    with pytest.raises(se.DataError, match=r"row 4 .*the key caller is NULL; leave such rows out"):
        calls.run("Y[p] = sum(C[p, d])")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("INSERT INTO calls VALUES ('al', DATE '2021-01-02', 1)", r"the coordinate \(.*\) stands in an earlier row"),
        ("INSERT INTO calls VALUES ('al', 'infinity', 1)", "C has the key infinity, which frames cannot hold"),
        ("INSERT INTO calls VALUES (NULL, DATE '2021-01-02', 1)", r"row 3 .*the key caller is NULL"),
        ("INSERT INTO calls VALUES ('x', DATE '2021-01-02', NULL)", r"row 3 .*the value minutes is NULL"),
        (
            "ALTER TABLE calls ALTER caller TYPE DOUBLE PRECISION USING 1.5",
            "the index column caller of calls has type DOU",
        ),
    ],
)
def test_tables_that_are_no_tensor(calls: se.Database, change: str, message: str) -> None:
    run_sql(calls, change)
    with pytest.raises(se.DataError, match=message):
        calls.tensor_from_table("C", "calls", ["caller", "day"], "minutes")
    assert calls.tensors() == {}
    assert calls.dictionaries() == {}


def test_undeclared_tables_with_keys(calls: se.Database) -> None:
    keys = r"keys=\{'caller': 'caller', 'day': 'day'\}"
    call = rf"tensor_from_table\('calls', '.*calls', \['caller', 'day'\], 'minutes', {keys}\)"
    with pytest.raises(se.CatalogueError, match=call):
        calls.run("Y[p] = sum(calls[p, d])")


@pytest.mark.engines("duckdb", reason="what is asked before a database is")
def test_a_column_that_is_two_axes(calls: se.Database) -> None:
    run_sql(calls, "CREATE VIEW heads AS SELECT DISTINCT caller FROM calls")
    calls.tensor_from_table("D", "heads", ["caller", "caller"], axes=["a", "b"], keys={"a": "person", "b": "person"})
    assert calls.run("S[] = sum(D[i, j])\nT[] = sum(D[i, i])")["T"].to_numpy() == 3
    with pytest.raises(se.ShapeError, match="the column caller is two axes; give both the same dictionary"):
        calls.tensor_from_table("D", "heads", ["caller", "caller"], axes=["a", "b"])


def test_models_of_dbt_have_keys(calls: se.Database, tmp_path: Path) -> None:
    calls.tensor_from_table("C", "calls", ["caller", "day"], "minutes", keys={"caller": "person"})
    project = new_project(tmp_path / "project")
    calls.write_dbt(calls.plan("Y[p] = sum(C[p, d])"), project, "prog")
    prefix = {"duckdb": "duckdb", "postgresql": "postgres"}[engine_of(calls).dialect_name]
    run(render(project, "prog", prefix), calls.connection.execute)
    assert sorted(run_sql(calls, "SELECT p, val FROM prog_y")) == [("Al", 2.0), ("al", 1.0), ("é", 3.0)]
    run_sql(calls, "INSERT INTO calls VALUES ('mia', DATE '2021-01-01', 1)")
    with pytest.raises(Exception, match="rows whose key caller is NULL, or not in the dictionary person: 1"):
        run(render(project, "prog", prefix), calls.connection.execute)

"""Users' tables, views and files serve as tensors."""

from pathlib import Path

import numpy as np
import pytest
from any_sql import run_sql
from edge_tables import MATRIX, ROW_SUMS, refer
from reading import assert_usable, contents, read_back

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", "postgresql")


def test_table(edges: se.Database) -> None:
    refer(edges, "edges")
    refer(edges, "EDGES")
    names = sorted(name.rsplit(".", 1)[1] for name in contents(edges))
    assert names == ['"dictionaries"', '"edges"', '"tensors"']


def test_shape_is_inferred(edges: se.Database) -> None:
    refer(edges, "edges", shape=None)


def test_view(edges: se.Database) -> None:
    run_sql(edges, "CREATE VIEW doubled AS SELECT src, dst, w * 2 AS w FROM edges")
    edges.tensor_from_table("A", "doubled", ["src", "dst"], "w", shape=(3, 3))
    np.testing.assert_array_equal(read_back(edges, "A"), 2 * MATRIX)


@pytest.mark.engines("duckdb", reason="PostgreSQL reads no files")
@pytest.mark.parametrize("ending", ["parquet", "csv", "csv.gz", "tsv", "json"])
@pytest.mark.parametrize("folder", ["plain", "it's 1.5"])
def test_file(edges: se.Database, tmp_path: Path, ending: str, folder: str) -> None:
    path = tmp_path / folder / f"edges.{ending}"
    path.parent.mkdir()
    edges.connection.sql("FROM edges").create_view("source")
    target = str(path).replace("'", "''")
    run_sql(edges, f"COPY edges TO '{target}'")
    refer(edges, path)
    refer(edges, str(path))


@pytest.mark.engines("duckdb", reason="PostgreSQL reads no files")
def test_file_by_a_relative_path_and_by_a_pattern(
    edges: se.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_sql(edges, "COPY (FROM edges WHERE src = 0) TO 'one.parquet'")
    run_sql(edges, "COPY (FROM edges WHERE src = 2) TO 'two.parquet'")
    refer(edges, "*.parquet")
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(read_back(edges, "A"), MATRIX)


def test_other_schema(edges: se.Database) -> None:
    run_sql(edges, "CREATE SCHEMA graphs; CREATE TABLE graphs.links AS FROM edges")
    refer(edges, "graphs.links")


@pytest.mark.engines("duckdb", reason="PostgreSQL reads no files")
def test_attached_database(edges: se.Database, tmp_path: Path) -> None:
    run_sql(edges, f"ATTACH '{tmp_path}/other.duckdb' AS other; CREATE TABLE other.links AS FROM edges")
    refer(edges, "other.links")
    refer(edges, "other.main.links")
    run_sql(edges, "DETACH other")
    with pytest.raises(se.CatalogueError, match=r"tensor A can no longer be read from other\.main\.links"):
        edges.plan(ROW_SUMS)


def test_temporary_table(edges: se.Database) -> None:
    run_sql(edges, "CREATE TEMPORARY TABLE links AS FROM edges")
    refer(edges, "links")


@pytest.mark.parametrize("name", ["my table", "select", "values", "views", "a-b", "größe"])
def test_names_are_quoted(db: se.Database, name: str) -> None:
    run_sql(db, f'CREATE TABLE "{name}" AS SELECT 1 AS "{name} index", 2.5::DOUBLE AS "group"')
    for relation in (name, f'"{name}"', f'main."{name}"'):
        db.tensor_from_table("A", relation, [f"{name} index"], "group")
        np.testing.assert_array_equal(read_back(db, "A"), [0, 2.5])


def test_dots_in_quoted_names_do_not_separate(db: se.Database) -> None:
    run_sql(db, 'CREATE TABLE "a.b" AS SELECT 1 AS i')
    db.tensor_from_table("A", '"a.b"', ["i"])
    np.testing.assert_array_equal(read_back(db, "A"), [0, 1])


def test_every_row_counts_as_1_without_a_value(edges: se.Database) -> None:
    edges.tensor_from_table("A", "edges", ["src", "dst"], shape=(3, 3))
    np.testing.assert_array_equal(read_back(edges, "A"), MATRIX != 0)


@pytest.mark.parametrize("sql_type", ["TINYINT", "SMALLINT", "BIGINT", "UTINYINT", "UINTEGER"])
@pytest.mark.parametrize("optimizer", ["dp", "relational", "dense"])
def test_index_columns_of_every_width(shared_db: se.Database, sql_type: str, optimizer: str) -> None:
    """Products of the bounds need wider integers than the columns have."""
    run_sql(
        shared_db,
        f"CREATE OR REPLACE TABLE t AS SELECT i::{sql_type} AS i, j::{sql_type} AS j, (i + j)::DOUBLE AS v "
        "FROM range(20) AS r(i), range(20) AS s(j)",
    )
    shared_db.tensor_from_table("A", "t", ["i", "j"], "v")
    shared_db.tensor("B", np.arange(40.0).reshape(20, 2))
    expected = np.add.outer(np.arange(20), np.arange(20)) @ np.arange(40.0).reshape(20, 2)
    result = shared_db.run("Y[k, i] = sum(A[i, j] * B[j, k])", optimizer=optimizer)["Y"]
    np.testing.assert_array_equal(result.to_numpy(), expected.T)


def test_axes_are_renamed(edges: se.Database) -> None:
    stored = edges.tensor_from_table("A", "edges", ["dst", "SRC"], "w", shape=(3, 3), axes=["To", "From"])
    assert [axis.name for axis in stored.tensor.axes] == ["to", "from"]
    np.testing.assert_array_equal(read_back(edges, "A"), MATRIX.T)


def test_column_named_as_the_values_is_an_index_of_another_name(db: se.Database) -> None:
    run_sql(db, "CREATE TABLE t AS SELECT 1 AS val, 2.5::DOUBLE AS i")
    with pytest.raises(se.ShapeError, match="named 'val'"):
        db.tensor_from_table("A", "t", ["val"], "i")
    db.tensor_from_table("A", "t", ["val"], "i", axes=["k"])
    np.testing.assert_array_equal(read_back(db, "A"), [0, 2.5])


def test_table_without_index_columns_is_a_number(db: se.Database) -> None:
    run_sql(db, "CREATE TABLE t AS SELECT 2.5::DOUBLE AS v")
    db.tensor_from_table("A", "t", [], "v")
    assert read_back(db, "A") == 2.5


def test_empty_table(db: se.Database) -> None:
    run_sql(db, "CREATE TABLE t (i INTEGER, v DOUBLE)")
    assert db.tensor_from_table("A", "t", ["i"], "v").tensor.shape == (0,)
    db.tensor_from_table("A", "t", ["i"], "v", shape=(2,))
    np.testing.assert_array_equal(read_back(db, "A"), [0, 0])
    run_sql(db, "INSERT INTO t VALUES (1, 2.5)")
    np.testing.assert_array_equal(read_back(db, "A"), [0, 2.5])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("(0, 0, 1), (NULL, 0, 2)", r"row 1 \(counted from 0\): the index i is NULL; leave"),
        ("(0, 0, 1), (0, 1, NULL)", r"row 1 \(counted from 0\): the value v is NULL; give it a number"),
        ("(0, 0, 1), (0, -1, 2)", r"row 1 \(counted from 0\): the index j is -1, but indices count from 0"),
        ("(0, 0, 1), (3, 0, 2)", r"row 1 .*index i is 3, but axis i has the bound 3; .* larger shape"),
        ("(0, 0, 1), (1, 1, 1), (0, 0, 2)", r"row 2 .*coordinate \(0, 0\) stands in an earlier row.*GROUP BY"),
        ("(0, 0, 1), (0, 0, 1), (NULL, 1, 1)", r"row 1 .*coordinate \(0, 0\)"),
    ],
)
def test_first_bad_row_is_named(db: se.Database, rows: str, message: str) -> None:
    db.tensor("A", MATRIX)
    run_sql(db, f"CREATE TABLE t AS FROM (VALUES {rows}) AS t(i, j, v)")
    before = contents(db)
    for value in ("v",) if "value v" in message else ("v", None):
        with pytest.raises(se.DataError, match="tensor A, " + message):
            db.tensor_from_table("A", "t", ["i", "j"], value, shape=(3, 3))
        assert contents(db) == before
    np.testing.assert_array_equal(read_back(db, "A"), MATRIX)


@pytest.mark.parametrize(
    ("index", "value"),
    [("TIME '10:00'", "1.0"), ("0.5::DOUBLE", "1.0"), ("1::HUGEINT", "1.0"), ("TRUE", "1.0")],
)
def test_index_columns_of_wrong_types(db: se.Database, index: str, value: str) -> None:
    run_sql(db, f"CREATE TABLE t AS SELECT {index} AS i, {value} AS v")
    with pytest.raises(
        se.DataError, match=r"tensor A: the index column i of t has type .*whole numbers.*view can cast"
    ):
        db.tensor_from_table("A", "t", ["i"], "v")
    assert_usable(db)


@pytest.mark.parametrize(
    ("relation", "message"),
    [
        ("nodes", "there is no table, view or file nodes"),
        ("graphs.edges", "tensor A: graphs.edges cannot be read: .*(schema|not exist)"),
        (
            "edges.parquet",
            "edges.parquet cannot be read: .*No files found|PostgreSQL reads no files; load edges.parquet",
        ),
        ("(SELECT * FROM edges)", "there is no table, view or file"),
        ("edges; DROP TABLE edges", "there is no table, view or file"),
        ("", "'' names no table"),
    ],
)
def test_missing_relations(edges: se.Database, relation: str, message: str) -> None:
    before = contents(edges)
    with pytest.raises(se.CatalogueError, match=message):
        edges.tensor_from_table("A", relation, ["src", "dst"], "w")
    assert contents(edges) == before
    refer(edges, "edges")


@pytest.mark.engines("duckdb", reason="what a name may mean beside a table is DuckDB's")
def test_python_variables_are_no_tables(edges: se.Database) -> None:
    frame = edges.connection.sql("FROM edges").df()
    with pytest.raises(se.CatalogueError, match="no table, view or file frame"):
        edges.tensor_from_table("A", "frame", ["src", "dst"], "w")
    assert len(frame) == 3


def test_missing_columns(edges: se.Database) -> None:
    with pytest.raises(se.CatalogueError, match=r"edges has no column source; .*src"):
        edges.tensor_from_table("A", "edges", ["source", "dst"], "w")
    with pytest.raises(se.CatalogueError, match="edges has no column weight; it has src, dst, w"):
        edges.tensor_from_table("A", "edges", ["src", "dst"], "weight")


def test_shape_and_axes_that_do_not_fit(edges: se.Database) -> None:
    with pytest.raises(se.ShapeError, match=r"tensor A is given shape \(3,\), but 2 index columns"):
        edges.tensor_from_table("A", "edges", ["src", "dst"], "w", shape=(3,))
    with pytest.raises(se.ShapeError, match=r"shape \(3\.5, 3\); give a whole number"):
        edges.tensor_from_table("A", "edges", ["src", "dst"], "w", shape=(3.5, 3))  # type: ignore[arg-type]  # on purpose
    with pytest.raises(se.ShapeError, match="2 axes, but 1 names are given: i"):
        edges.tensor_from_table("A", "edges", ["src", "dst"], "w", axes=["i"])
    with pytest.raises(se.DataError, match=r"dtype int16.*choose float64, float32, int64"):
        edges.tensor_from_table("A", "edges", ["src", "dst"], "w", dtype="int16")


def test_names_of_tensors(edges: se.Database) -> None:
    refer(edges, "edges")
    with pytest.raises(se.CatalogueError, match="there is a tensor A already"):
        edges.tensor_from_table("a", "edges", ["src", "dst"])
    with pytest.raises(se.CatalogueError, match="no program could name it"):
        edges.tensor_from_table("", "edges", ["src", "dst"])


def test_loading_never_replaces_a_table_of_the_user(edges: se.Database) -> None:
    edges.tensor_from_table("edges", "edges", ["src", "dst"], "w", shape=(3, 3))
    before = contents(edges)
    with pytest.raises(se.CatalogueError, match="there is a table or view edges that was not loaded"):
        edges.tensor("edges", MATRIX)
    assert contents(edges) == before


def test_loaded_table_is_dropped_with_its_tensor(edges: se.Database) -> None:
    edges.tensor("A", np.eye(2))
    refer(edges, "edges")
    assert not any(name.endswith('."A"') for name in contents(edges))
    edges.tensor("A", np.eye(2))
    np.testing.assert_array_equal(read_back(edges, "A"), np.eye(2))


@pytest.mark.engines("duckdb", reason="PostgreSQL drops no table that a view reads")
def test_loaded_table_is_not_referred_to_by_its_own_tensor(db: se.Database) -> None:
    db.tensor("A", MATRIX, promoted=["dim_0", "dim_1"])
    run_sql(db, "CREATE VIEW same AS FROM A")
    before = contents(db)
    with pytest.raises(se.CatalogueError, match="A is the table that tensor A was loaded into; choose another name"):
        db.tensor_from_table("A", "A", ["dim_0", "dim_1"], "val")
    with pytest.raises(se.CatalogueError, match="tensor A: same cannot be read"):
        db.tensor_from_table("A", "same", ["dim_0", "dim_1"], "val")
    assert contents(db) == before
    db.tensor_from_table("B", "A", ["dim_0", "dim_1"], "val")
    np.testing.assert_array_equal(read_back(db, "B"), MATRIX[:, :2])

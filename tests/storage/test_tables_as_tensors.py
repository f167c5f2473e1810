"""Programs read tables as tensors without a declaration."""

import numpy as np
import pytest

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", "postgresql")

VECTOR = np.array([1, 0, 100, 0, 10])
MATRIX = np.array([[0, 2, 0], [0, 0, -3], [0.5, 0, 0]])


@pytest.fixture
def tables(db: se.Database) -> se.Database:
    """A square matrix whose last column has no entries, a longer vector, and tables that are no tensors."""
    db.connection.execute("""
        CREATE TABLE a (i INTEGER, j SMALLINT, w DOUBLE PRECISION);
        INSERT INTO a VALUES (0, 1, 2.0), (1, 2, -3.0), (2, 0, 0.5);
        CREATE TABLE x (node BIGINT, score REAL);
        INSERT INTO x VALUES (0, 1.0), (4, 10.0), (2, 100.0);
        CREATE VIEW counts AS SELECT i, CAST(7 AS BIGINT) AS n FROM a WHERE i < 2;
        CREATE TABLE edges (src INTEGER, dst INTEGER);
        CREATE TABLE named (src TEXT, dst INTEGER, w DOUBLE PRECISION);
        CREATE TABLE wider (i INTEGER, j INTEGER, w DOUBLE PRECISION, note TEXT);
        CREATE TABLE nothing (i INTEGER, w DOUBLE PRECISION)
    """)
    return db


def test_product_with_a_longer_vector(tables: se.Database) -> None:
    result = tables.run("y[i] = sum(a[i, j] * x[j])")["y"]
    np.testing.assert_array_equal(result.to_numpy(), MATRIX @ [1, 0, 100])
    assert result.shape == (3,)


def test_axes_that_share_labels_have_one_bound(tables: se.Database) -> None:
    """Also through results: the bound of label j of x is the larger of those of the matrix and of x."""
    results = tables.run("t[j, i] = a[i, j]; y[j] = max(t[j, i]); z[j] = y[j] + x[j]", outputs=["y"])
    assert results["y"].shape == results["z"].shape == (5,)
    largest = np.zeros((5, 3))
    largest[:3] = MATRIX.T
    np.testing.assert_array_equal(results["y"].to_numpy(), largest.max(axis=1))
    np.testing.assert_array_equal(results["z"].to_numpy(), largest.max(axis=1) + VECTOR)


def test_views_and_whole_numbers(tables: se.Database) -> None:
    result = tables.run("n[] = sum(counts[i])")["n"]
    assert result.to_numpy() == 14
    assert result.schema.tensor.dtype == "int64"


def test_tables_without_rows(tables: se.Database) -> None:
    assert tables.run("n[] = sum(nothing[i])")["n"].to_numpy() == 0
    np.testing.assert_array_equal(tables.run("n[i] = counts[i] + nothing[i]")["n"].to_numpy(), [7, 7])


def test_declarations(tables: se.Database) -> None:
    program = "tensor x[i: 6] fill 1 dtype float64\ny[] = prod(x[i])"
    result = tables.run(program)["y"]
    assert result.to_numpy() == 1000
    assert result.schema.tensor.dtype == "float64"
    with pytest.raises(se.DataError, match="the index node is 4, but axis node has the bound 3"):
        tables.run("tensor x[i: 3]\ny[] = sum(x[i])")


def test_tensors_of_the_catalogue_give_bounds(tables: se.Database) -> None:
    tables.tensor("v", np.arange(7.0))
    result = tables.run("y[i] = v[i] + x[i]")["y"]
    np.testing.assert_array_equal(result.to_numpy(), np.arange(7) + np.pad(VECTOR, (0, 2)))
    tables.tensor("v", np.arange(4.0))
    with pytest.raises(se.DataError, match="the index node is 4, but axis node has the bound 4"):
        tables.run("y[i] = v[i] + x[i]")


def test_tensors_of_the_catalogue_come_first(tables: se.Database) -> None:
    tables.tensor_from_table("x", "counts", ["i"], "n")
    assert tables.run("n[] = sum(x[i])")["n"].to_numpy() == 14


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("y[i] = sum(edges[i, j])", r"it has src INTEGER, dst INTEGER; .*\('edges', 'main.edges', \['src', 'dst'\]\)"),
        ("y[i] = sum(a[i, j, k])", "for 3 labels it needs 3 columns of whole numbers"),
        ("y[i] = sum(named[i, j])", r"\['src', 'dst'\], 'w', keys=\{'src': 'src'\}\)"),
        ("y[i] = sum(wider[i, j])", r"\['i', 'j'\], 'w'\)"),
        ("y[i] = sum(absent[i, j])", "there is no tensor absent in this database; there are none"),
    ],
)
def test_other_tables_are_refused(tables: se.Database, program: str, message: str) -> None:
    with pytest.raises(se.CatalogueError, match=message):
        tables.plan(program)


def test_rows_that_are_no_tensor(tables: se.Database) -> None:
    tables.connection.execute("INSERT INTO x VALUES (4, 1.0)")
    with pytest.raises(se.DataError, match=r"the coordinate \(4\) stands in an earlier row, too"):
        tables.plan("y[] = sum(x[i])")
    tables.connection.execute("DELETE FROM x WHERE node = 4; INSERT INTO x VALUES (-1, 1.0)")
    with pytest.raises(se.DataError, match="the index node is -1, but indices count from 0"):
        tables.plan("y[] = sum(x[i])")


def test_plans_notice_that_the_table_grew(tables: se.Database) -> None:
    plan = tables.plan("y[] = sum(x[i])")
    assert tables.run(plan)["y"].to_numpy() == 111
    tables.connection.execute("INSERT INTO x VALUES (9, 1.0)")
    with pytest.raises(se.EngineError, match="plan again"):
        tables.run(plan)
    assert tables.run("y[] = sum(x[i])")["y"].to_numpy() == 112


def test_the_catalogue_stays_empty(tables: se.Database) -> None:
    tables.run("y[] = sum(x[i])")
    assert tables.tensors() == {}

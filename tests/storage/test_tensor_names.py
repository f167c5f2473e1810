"""Tensors have names that programs can say, axes and columns any; users' tables of the same name are left alone."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from any_sql import run_sql
from reading import contents, read_back

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", "postgresql")

MATRIX = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, -3.0]])
CUBE = np.arange(24.0).reshape(2, 3, 4)
ROWS = {"src": [0, 1, 1], "dst": [1, 0, 2], "weight": [1.5, 2.0, -3.0]}  # MATRIX as a frame
KEYWORDS = ["select", "group", "order", "table"]
ODD_NAMES = ["a b", 'a"b', "a'b", "a.b", "größe", "1st", "a;b"]


def test_axis_named_as_the_values_can_be_renamed(shared_db: se.Database) -> None:
    shared_db.tensor("A", pd.DataFrame({"val": [1], "v": [2.0]}), axes=["i"])
    np.testing.assert_array_equal(read_back(shared_db, "A"), [0, 2])


@pytest.mark.parametrize("name", [*KEYWORDS, "rowid", "value", "key_0", "row", "axis"])
def test_axes_and_index_columns_of_any_name(shared_db: se.Database, name: str) -> None:
    """Names may be keywords, or words that the statistics use."""
    shared_db.tensor("Dense", CUBE[0], axes=[name, "other"])
    shared_db.tensor("Sparse", pd.DataFrame({"other": ROWS["src"], name: ROWS["dst"], "v": ROWS["weight"]}))
    for optimizer in ("dp", "relational", "dense"):
        result = shared_db.run("Y[k, j] = sum(Sparse[k, i] * Dense[i, j])", optimizer=optimizer)["Y"]
        np.testing.assert_allclose(result.to_numpy(), MATRIX @ CUBE[0])


@pytest.mark.parametrize("name", [*KEYWORDS, "values", "force", "views", "main", "temp", "tensors", "val"])
def test_tensors_of_any_name(db: se.Database, name: str) -> None:
    db.tensor(name, MATRIX)
    np.testing.assert_array_equal(read_back(db, name), MATRIX)
    assert list(db.tensors()) == [name]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_of_columns_and_tables_are_quoted(db: se.Database, name: str) -> None:
    """Tensors of such tables have other names."""
    db.tensor("T", sp.csr_array(MATRIX), axes=[name, "j"])
    assert db.statistics("T").entries == 3
    quoted = '"' + name.replace('"', '""') + '"'
    run_sql(db, f"CREATE TABLE {quoted} AS SELECT * FROM T")
    db.tensor_from_table("Odd", quoted, index=[name, "j"], value="val")
    np.testing.assert_array_equal(read_back(db, "Odd"), MATRIX)
    assert run_sql(db, f"SELECT {quoted}, j, val FROM {quoted} ORDER BY 1, 2") == [
        (0, 1, 1.5),
        (1, 0, 2.0),
        (1, 2, -3.0),
    ]
    db.tensor("A", pd.DataFrame({name: [1], "v": [2.0]}))
    np.testing.assert_array_equal(read_back(db, "A"), [0, 2])


def test_names_that_no_program_can_say(db: se.Database) -> None:
    """What is stored can be named; `3` shows an argument in the wrong place."""
    db.tensor("T", MATRIX)
    before = contents(db)
    for name in (*ODD_NAMES, "", "my tensor", "été", "A[i]", "Q\n", "a\0b", "\ud800"):
        with pytest.raises(se.CatalogueError, match="no program could name it: names have letters"):
            db.tensor(name, MATRIX)
        with pytest.raises(se.CatalogueError, match="no program could name it: names have letters"):
            db.tensor_from_table(name, "T", index=["dim_0"], value="val")
    with pytest.raises(se.CatalogueError, match="named by a text, and 3 is none"):
        db.tensor(3, MATRIX)  # type: ignore[arg-type]
    assert contents(db) == before


def test_names_that_differ_only_in_case(db: se.Database) -> None:
    db.tensor("Edges", MATRIX)
    before = contents(db)
    with pytest.raises(se.CatalogueError, match=r"there is a tensor Edges already.*choose another name"):
        db.tensor("edges", CUBE)
    assert contents(db) == before


@pytest.mark.parametrize("kind", ["TABLE", "VIEW", "TEMPORARY TABLE", "TEMPORARY VIEW"])
@pytest.mark.parametrize("name", ["A", "a"])
def test_tables_of_the_user_are_left_alone(db: se.Database, kind: str, name: str) -> None:
    run_sql(db, f"CREATE {kind} {name} AS SELECT 42 AS answer")
    before = contents(db)
    with pytest.raises(se.CatalogueError, match=rf"table or view (?i:{name}) .*choose another name.*from_table"):
        db.tensor("A", MATRIX)
    assert contents(db) == before


def test_tables_in_other_schemas_do_not_clash(db: se.Database) -> None:
    run_sql(db, "CREATE SCHEMA other; CREATE TABLE other.A AS SELECT 42 AS answer")
    db.tensor("A", MATRIX)
    np.testing.assert_array_equal(read_back(db, "A"), MATRIX)
    assert run_sql(db, "FROM other.A") == [(42,)]


def test_tensor_moves_with_the_schema(db: se.Database) -> None:
    db.tensor("A", MATRIX)
    run_sql(db, "CREATE SCHEMA other; USE other; CREATE TABLE B AS SELECT 42 AS answer")
    np.testing.assert_array_equal(read_back(db, "A"), MATRIX)
    assert db.tensor("A", CUBE).relation.casefold() == "other.a"
    np.testing.assert_array_equal(read_back(db, "A"), CUBE)
    (name,) = [name for name in contents(db) if name.casefold().endswith('."a"')]
    assert name.casefold().endswith('"other"."a"')


def test_table_of_the_user_in_the_new_schema_is_left_alone(db: se.Database) -> None:
    db.tensor("A", MATRIX)
    run_sql(db, "CREATE SCHEMA other; USE other; CREATE TABLE A AS SELECT 42 AS answer")
    before = contents(db)
    with pytest.raises(se.CatalogueError, match=r"there is a table or view [Aa]"):
        db.tensor("A", CUBE)
    assert contents(db) == before


@pytest.mark.engines("duckdb", reason="a number of rows is DuckDB's own")
def test_row_numbers_that_the_user_named_do_not_split_scans(db: se.Database) -> None:
    """DuckDB's rowid splits scans of small tables; a column of that name hides it."""
    tall = np.random.default_rng(0).random((20_000, 4))
    db.tensor("A", tall[::-1], axes=["rowid", "j"])
    run_sql(db, "SET threads = 2")
    np.testing.assert_allclose(db.run("Y[j] = sum(A[i, j])")["Y"].to_numpy(), tall.sum(axis=0))

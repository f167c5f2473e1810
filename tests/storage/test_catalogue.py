"""A database remembers its tensors, whoever opens it again and however."""

import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from any_sql import run_sql
from reading import assert_usable, contents, read_back, stored_result

import sparseeinsum as se
from sparseeinsum.operators.dtypes import Number

DENSE = np.arange(6.0).reshape(2, 3)
SPARSE = sp.csr_array(np.diag([1.0, 0.0, 2.0]))
PRODUCT = "Y[i, k] = sum(Dense[i, j] * Sparse[j, k])"
SHARED = "T[i, k] = sum(Dense[i, j] * Sparse[j, k])\nY[i] = sum(T[i, k])\nZ[i] = max(T[i, k])"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database file with tensors of every kind, closed."""
    file = tmp_path / "tensors.duckdb"
    with se.connect(file) as db:
        db.tensor("Dense", DENSE)
        db.tensor("Sparse", SPARSE, axes=["from", "select"])
        db.tensor("Narrow", DENSE.astype(np.float32), promoted=["dim_1"])
        db.tensor("Number", 2.5)
        db.connection.execute(
            "CREATE TABLE edges AS SELECT 1 AS src, 3 AS w; CREATE VIEW nodes AS SELECT src FROM edges"
        )
        db.tensor_from_table("Edges", "edges", ["src"], "w", shape=(4,))
        db.tensor_from_table("Nodes", "nodes", ["src"])
    return file


def test_reopened_file_knows_its_tensors(path: Path) -> None:
    with se.connect(path) as first:
        before = first.tensors()
        assert list(before) == ["Dense", "Edges", "Narrow", "Nodes", "Number", "Sparse"]
    with se.connect(str(path)) as db:
        assert db.tensors() == before
        np.testing.assert_array_equal(read_back(db, "Dense"), DENSE)
        np.testing.assert_array_equal(read_back(db, "Sparse"), SPARSE.toarray())
        np.testing.assert_array_equal(read_back(db, "Narrow"), DENSE.astype(np.float32))
        np.testing.assert_array_equal(read_back(db, "Edges"), [0, 3, 0, 0])
        np.testing.assert_array_equal(read_back(db, "Nodes"), [0, 1])
        assert read_back(db, "Number") == 2.5
        assert read_back(db, "Narrow").dtype == np.float32


@pytest.mark.parametrize(
    ("dtype", "fill", "text"),
    [
        ("float64", 0.1, "0.1"),
        ("float64", -np.inf, "-inf"),
        ("float64", 5e-324, "5e-324"),
        ("float32", 0.1, "0.10000000149011612"),
        ("int64", -(2**63), str(-(2**63))),
        ("int64", 2**53 + 1, str(2**53 + 1)),
        ("bool", True, "true"),
        ("bool", False, "false"),
        ("complex128", complex(0.1, -np.inf), "(0.1-infj)"),
        ("complex64", 0, "0j"),
    ],
)
def test_dtype_and_fill_are_stored(tmp_path: Path, dtype: str, fill: Number, text: str) -> None:
    array = np.array([[1, 0], [0, 1]]).astype(dtype)
    with se.connect(tmp_path / "tensors.duckdb") as first:
        stored = first.tensor("A", array, fill=fill)
        assert stored.tensor.fill == np.array(fill, dtype)
    with se.connect(tmp_path / "tensors.duckdb") as db:
        assert db.tensors() == {"A": stored}
        assert type(db.tensors()["A"].tensor.fill) is type(stored.tensor.fill)
        assert db.connection.execute("SELECT fill FROM sparseeinsum.tensors").fetchall() == [(text,)]
        np.testing.assert_array_equal(stored_result(db, "A").to_numpy(), array)


OLD_CATALOGUE = """
CREATE SCHEMA sparseeinsum;
CREATE TABLE sparseeinsum.tensors (
  name TEXT PRIMARY KEY, axes TEXT[] NOT NULL, bounds BIGINT[] NOT NULL, dtype TEXT NOT NULL, fill DOUBLE NOT NULL,
  tiles BIGINT[] NOT NULL, relation TEXT NOT NULL, key_columns TEXT[] NOT NULL, value_column TEXT,
  casts BOOLEAN NOT NULL, is_owned BOOLEAN NOT NULL
);
CREATE TABLE Old AS SELECT 1::INTEGER AS i, 2.5::DOUBLE AS val;
INSERT INTO sparseeinsum.tensors VALUES
  ('Old', ['i'], [3], 'float64', 0.0, [1], 'main.Old', ['i'], 'val', false, true),
  ('Counts', ['i'], [3], 'float64', 0.0, [1], 'main.Old', ['i'], 'i', true, false);
"""


def test_catalogue_of_an_earlier_version(tmp_path: Path) -> None:
    """It stored fills as numbers."""
    file = tmp_path / "old.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(OLD_CATALOGUE)
    with duckdb.connect(str(file), read_only=True) as connection:
        np.testing.assert_array_equal(read_back(se.connect(connection), "Old"), [0, 2.5, 0])
    with se.connect(file) as db:
        np.testing.assert_array_equal(read_back(db, "Counts"), [0, 1, 0])
        db.tensor("New", np.array([1j, 0]), fill=1j)
        db.tensor("Other", np.array([True, False]), fill=True)
    with se.connect(file) as db:
        fills = {name: stored.tensor.fill for name, stored in db.tensors().items()}
        assert fills == {"Counts": 0, "New": 1j, "Old": 0, "Other": True}
        np.testing.assert_array_equal(read_back(db, "Old"), [0, 2.5, 0])
        np.testing.assert_array_equal(stored_result(db, "New").to_numpy(), [1j, 0])


@pytest.mark.parametrize(("dtype", "fill"), [("bool", "1"), ("int64", "0.5"), ("float64", "none"), ("complex64", "i")])
def test_fill_that_is_no_number_of_the_dtype(db: se.Database, dtype: str, fill: str) -> None:
    db.tensor("A", np.ones(3, dtype))
    run_sql(db, f"UPDATE sparseeinsum.tensors SET fill = '{fill}'")
    with pytest.raises(
        se.CatalogueError, match=rf"tensor A has dtype {dtype} and fill {fill}, .*define the tensor again"
    ):
        db.tensors()


def test_file_may_be_renamed(path: Path) -> None:
    moved = path.rename(path.with_name("other name.duckdb"))
    with se.connect(moved) as db:
        np.testing.assert_allclose(db.run(PRODUCT)["Y"].to_numpy(), DENSE @ SPARSE)


def test_repr_of_stored_tensors(db: se.Database) -> None:
    stored = db.tensor("A", DENSE, axes=["i", "j"], promoted=["j"])
    assert db.tensors() == {"A": stored}
    assert (stored.tensor.shape, stored.tensor.dtype, stored.tensor.fill) == ((2, 3), "float64", 0)
    assert (stored.keys, stored.relation.casefold(), stored.is_owned) == (("j",), "main.a", True)


def test_a_new_database_lists_its_tensors(db: se.Database) -> None:
    assert db.tensors() == {}
    db.tensor("A", DENSE)
    assert list(db.tensors()) == ["A"]


def test_statistics_are_measured_now(db: se.Database) -> None:
    db.tensor("A", SPARSE)
    assert (db.statistics("A").entries, db.statistics("A").distinct) == (2, (2, 2))
    db.connection.execute("INSERT INTO A VALUES (1, 2, 5)")
    assert (db.statistics("A").entries, db.statistics("A").distinct) == (3, (3, 2))


def test_unknown_tensor_lists_the_known_ones(path: Path) -> None:
    with se.connect(path) as db:
        for ask in (lambda: db.plan("Y[i] = X[i]"), lambda: db.run("Y[i] = X[i]"), lambda: db.statistics("X")):
            with pytest.raises(se.CatalogueError, match="no tensor X in this database; known are Dense, Edges, Narrow"):
                ask()
        with pytest.raises(KeyError, match="no tensor dense, but there is Dense; names are case-sensitive"):
            db.plan("Y[i, j] = dense[i, j]")


def test_database_without_tensors_is_named_in_errors(db: se.Database) -> None:
    assert db.tensors() == {}
    with pytest.raises(
        se.CatalogueError, match=r"no tensor X in this database; there are none; load one with db\.tensor"
    ):
        db.plan("Y[i] = X[i]")


def test_tensor_whose_catalogue_entry_is_deleted_is_unknown(path: Path) -> None:
    with se.connect(path) as db:
        plan = db.plan(PRODUCT)
        db.connection.execute("DELETE FROM sparseeinsum.tensors WHERE name = 'Dense'")
        with pytest.raises(se.CatalogueError, match="no tensor Dense"):
            db.run(plan)
        with pytest.raises(se.CatalogueError, match="there is a table or view Dense that was not loaded"):
            db.tensor("Dense", DENSE)


def test_table_that_only_looks_like_the_catalogue(db: se.Database) -> None:
    db.connection.execute("CREATE SCHEMA sparseeinsum; CREATE TABLE sparseeinsum.tensors AS SELECT 42 AS answer")
    before = contents(db)
    with pytest.raises(
        se.CatalogueError, match=r"sparseeinsum\.tensors .* is not the one in which tensors are recorded"
    ):
        db.tensor("A", DENSE)
    assert contents(db) == before


def test_read_only_file_can_be_planned_on_and_run_on(path: Path) -> None:
    with duckdb.connect(str(path), read_only=True) as connection:
        db = se.connect(connection)
        np.testing.assert_allclose(db.run(db.plan(PRODUCT))["Y"].to_numpy(), DENSE @ SPARSE)
        np.testing.assert_allclose(db.run(SHARED)["Z"].to_numpy(), (DENSE @ SPARSE).max(axis=1))
        assert db.statistics("Dense").entries == 5
        for refused in (
            lambda: db.tensor("New", DENSE),
            lambda: db.tensor_from_table("New", "edges", ["src"]),
            lambda: db.run(PRODUCT, into={"Y": "results"}),
        ):
            with pytest.raises(se.EngineError, match="read-only mode"):
                refused()
        np.testing.assert_allclose(db.run(PRODUCT)["Y"].to_numpy(), DENSE @ SPARSE)


def test_connection_of_the_user(path: Path) -> None:
    connection = duckdb.connect(str(path))
    with se.connect(connection) as db:
        assert db.connection is connection
        np.testing.assert_allclose(db.run(PRODUCT)["Y"].to_numpy(), DENSE @ SPARSE)
    assert connection.execute("SELECT COUNT(*) FROM edges").fetchall() == [(1,)]
    connection.close()


@pytest.mark.engines("duckdb", reason="cursors are DuckDB's connections")
def test_cursor_sees_the_same_tensors(db: se.Database) -> None:
    db.tensor("A", DENSE)
    with se.connect(db.connection.cursor()) as other:
        np.testing.assert_array_equal(read_back(other, "A"), DENSE)
        other.tensor("B", DENSE)
    assert list(db.tensors()) == ["A", "B"]


def test_functions_are_available_in_plain_sql() -> None:
    with duckdb.connect() as connection:
        assert connection.execute("SELECT tensor_dot([1.0, 2.0], [3.0, 4.0])").fetchall() == [(11,)]


def test_connection_opened_before_the_import_is_refused() -> None:
    script = (
        "import duckdb\n"
        "connection = duckdb.connect()\n"
        "import sparseeinsum as se\n"
        "try:\n"
        "    se.connect(connection)\n"
        "except se.EngineError as error:\n"
        "    print(error)\n"
        "se.connect(duckdb.connect()).tensor('A', 1.0)\n"
        "print('opened after it, it works')\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    message, works = ran.stdout.splitlines()
    assert "opened before `import sparseeinsum`, or before the kernels were compiled; close it and open it" in message
    assert works == "opened after it, it works"


def test_a_closed_connection_is_refused() -> None:
    connection = duckdb.connect()
    connection.close()
    with pytest.raises(se.EngineError, match="already closed"):
        se.connect(connection)


def test_looking_for_the_functions_undoes_no_transaction_of_the_users() -> None:
    script = (
        "import duckdb\n"
        "connection = duckdb.connect()\n"
        "connection.execute('BEGIN; CREATE TABLE kept AS SELECT 1 AS a')\n"
        "import sparseeinsum as se\n"
        "try:\n"
        "    se.connect(connection)\n"
        "except se.EngineError:\n"
        "    connection.execute('COMMIT')\n"
        "print(connection.execute('FROM kept').fetchall())\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[(1,)]\n"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("/nowhere/to be found.duckdb", "cannot open /nowhere/to be found.duckdb: .*No such file"),
        ("mysql://localhost/db", "mysql is not supported; this version runs on DuckDB and PostgreSQL"),
    ],
)
def test_database_that_cannot_be_opened(target: str, message: str) -> None:
    with pytest.raises(se.EngineError, match=message):
        se.connect(target)


def test_file_that_is_no_database(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("no database at all\n" * 1000)
    with pytest.raises(se.EngineError, match=r"cannot open .*notes\.txt.*not a valid DuckDB database"):
        se.connect(file)


def test_memory_by_name() -> None:
    with se.connect(":memory:") as db:
        assert db.tensors() == {}


def test_databases_do_not_know_each_others_tensors() -> None:
    with se.connect() as one, se.connect() as other:
        one.tensor("A", DENSE)
        other.tensor("A", 2 * DENSE)
        other.tensor("B", DENSE)
        np.testing.assert_array_equal(read_back(one, "A"), DENSE)
        np.testing.assert_array_equal(read_back(other, "A"), 2 * DENSE)
        assert list(one.tensors()) == ["A"]


def test_plan_runs_only_on_tensors_that_are_as_they_were_planned() -> None:
    with se.connect() as one, se.connect() as other:
        one.tensor("A", DENSE)
        plan = one.plan("Y[i] = sum(A[i, j])")
        with pytest.raises(se.CatalogueError, match="no tensor A"):
            other.run(plan)
        other.tensor("A", sp.csr_array(DENSE))
        with pytest.raises(se.EngineError, match="tensor A was defined anew since the plan was made; plan again"):
            other.run(plan)
        other.tensor("A", DENSE + 1)
        np.testing.assert_array_equal(other.run(plan)["Y"].to_numpy(), (DENSE + 1).sum(axis=1))


def test_one_file_opened_twice(path: Path) -> None:
    with se.connect(path) as one, se.connect(path) as other:
        one.tensor("New", DENSE)
        np.testing.assert_array_equal(read_back(other, "New"), DENSE)


@pytest.mark.engines("duckdb", reason="PostgreSQL attaches no databases")
def test_current_database_is_the_one_that_counts(db: se.Database, path: Path) -> None:
    db.tensor("A", DENSE)
    db.connection.execute(f"ATTACH '{path}' AS stored; USE stored")
    np.testing.assert_allclose(db.run(PRODUCT)["Y"].to_numpy(), DENSE @ SPARSE)
    assert "A" not in db.tensors()
    db.connection.execute("USE memory")
    np.testing.assert_array_equal(read_back(db, "A"), DENSE)


def test_closed_database_refuses_work(path: Path) -> None:
    db = se.connect(path)
    plan = db.plan(PRODUCT)
    db.close()
    db.close()
    for refused in (
        lambda: db.plan(PRODUCT),
        lambda: db.run(plan),
        lambda: db.run(PRODUCT),
        lambda: db.tensor("A", DENSE),
        lambda: db.tensor("A", pd.DataFrame({"v": [1.0]})),
        lambda: db.tensor_from_table("A", "edges", ["src"]),
        db.tensors,
    ):
        with pytest.raises(se.EngineError, match="Connection already closed"):
            refused()
    with duckdb.connect(str(path)) as connection:
        assert connection.execute("SELECT COUNT(*) FROM sparseeinsum.tensors").fetchall() == [(6,)]


def test_failure_inside_with_closes_the_file(path: Path) -> None:
    with pytest.raises(se.CatalogueError), se.connect(path) as db:
        db.plan("Y[i] = X[i]")
    with se.connect(path) as db:
        assert_usable(db)

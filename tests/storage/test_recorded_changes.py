"""Whatever changes a tensor's table between a plan and its run, the result is of the present rows, or an error."""

import itertools
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from changed_tables import SIZE, check_product, tensor_of
from hypothesis import given
from hypothesis import strategies as st
from observed_statements import observe_queries
from random_runs import random_runs
from sqlglot import exp

import sparseeinsum as se
from sparseeinsum.engines.duckdb import recorded_changes
from sparseeinsum.statistics.scan_cache import ChangeToken

PROGRAM = "Y[i] = sum(A[i, j] * X[j])"
MATRIX = np.array([[0, 1.5, 0, 0], [0, 0, 3, 0], [0, 0, 0, 0], [4, 0, 0, 1]])
VECTOR = np.array([1.0, 2.0, 0.5, -1.0])

# What a user may run, {t} standing for the table; DuckDB refuses some of it.
CHANGES = [
    "INSERT INTO {t} SELECT {keys}, {v}",
    "INSERT INTO {t} BY NAME SELECT {v} AS val, {named}",
    "UPDATE {t} SET val = {v} WHERE j = {j}",
    "UPDATE {t} SET val = {v}",
    "UPDATE {t} SET j = {j} WHERE val > 1",
    "DELETE FROM {t} WHERE j = {j}",
    "TRUNCATE {t}",
    "COPY {t} FROM '{csv}'",
    "MERGE INTO {t} USING (SELECT {j} AS j, {v} AS v) AS s ON {t}.j = s.j WHEN MATCHED THEN UPDATE SET val = s.v",
    "ALTER TABLE {t} ALTER val TYPE DOUBLE USING {v}",
    "ALTER TABLE {t} ALTER j TYPE INTEGER USING ({j})",
    "ALTER TABLE {t} DROP COLUMN val; ALTER TABLE {t} ADD COLUMN val DOUBLE DEFAULT {v}",
    "ALTER TABLE {t} RENAME i TO k; ALTER TABLE {t} RENAME j TO i; ALTER TABLE {t} RENAME k TO j",
    "ALTER TABLE {t} RENAME TO B; CREATE TABLE {t} AS SELECT {named}, {v}::DOUBLE AS val",
    "CREATE OR REPLACE TABLE {t} AS SELECT {named}, {v}::DOUBLE AS val",
    "CREATE OR REPLACE TABLE {t} AS SELECT * REPLACE ({v}::DOUBLE AS val) FROM {t}",
    "DROP TRIGGER sparseeinsum_update ON {t}; UPDATE {t} SET val = {v}",
    "BEGIN; UPDATE {t} SET val = {v}; ROLLBACK",
    "BEGIN; UPDATE {t} SET val = {v}; COMMIT",
    "BEGIN; INSERT INTO {t} SELECT {keys}, {v}; DELETE FROM {t} WHERE j = {j}; COMMIT",
    "DROP SCHEMA sparseeinsum CASCADE",
    "CHECKPOINT",
    "SELECT * FROM {t}",
    "",
]


def dense(connection: duckdb.DuckDBPyConnection, name: str, keys: list[str]) -> np.ndarray | None:
    """The tensor that the rows of a table are now; None if they are none."""
    try:
        cursor = connection.execute(f"SELECT * FROM {name}")
    except duckdb.Error:
        return None
    columns, rows = [column for column, *_ in cursor.description or ()], cursor.fetchall()
    is_recorded = connection.execute("FROM duckdb_tables() WHERE schema_name = 'sparseeinsum'").fetchall()
    return tensor_of(columns, rows, keys if is_recorded else len(keys))


@st.composite
def changes(draw: st.DrawFn, csv: str) -> str:
    table = draw(st.sampled_from(["A", "X"]))
    i, j = (draw(st.integers(0, SIZE)) % (SIZE + draw(st.integers(0, 1))) for _ in "ij")
    value = draw(st.sampled_from(["2.5", "-1.0", "0.0", "'inf'", "'nan'", "NULL"])) + "::DOUBLE"
    keys, named = (f"{i}, {j}", f"{i} AS i, {j} AS j") if table == "A" else (f"{j}", f"{j} AS j")
    return draw(st.sampled_from(CHANGES)).format(t=table, csv=f"{csv}_{table}", v=value, j=j, keys=keys, named=named)


def execute(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    """Run the statements; DuckDB refuses some of them."""
    for statement in text.split("; "):
        with suppress(duckdb.Error):
            connection.execute(statement)


@pytest.mark.parametrize("is_stored", [False, True])
def test_random_changes(tmp_path: Path, is_stored: bool) -> None:
    csv = tmp_path / "rows.csv"
    Path(f"{csv}_A").write_text("0,3,5.0\n")
    Path(f"{csv}_X").write_text("0,5.0\n")
    numbers, rng = itertools.count(), np.random.default_rng(0)

    @random_runs(15)
    @given(st.lists(st.tuples(changes(str(csv)), st.booleans(), st.booleans()), min_size=1, max_size=6))
    def run(steps: list[tuple[str, bool, bool]]) -> None:
        path = tmp_path / f"{next(numbers)}.duckdb" if is_stored else None
        # The rows are read from a copy: any query of the database itself would make a run look for changes again.
        with se.connect(path) as db, se.connect() as copy:
            for database in (db, copy):
                database.tensor("A", MATRIX, axes=["i", "j"], promoted=["i", "j"])
                database.tensor("X", VECTOR, axes=["j"], promoted=["j"])
            plan, prepared = db.plan(PROGRAM), db.prepare(PROGRAM, ["X"])
            for text, in_another_connection, is_planned_again in steps:
                execute(copy.connection, text)
                if in_another_connection:
                    with db.connection.cursor() as cursor:
                        execute(cursor, text)
                else:
                    execute(db.connection, text)
                matrix, vector = dense(copy.connection, "A", ["i", "j"]), dense(copy.connection, "X", ["j"])
                for _ in range(2):
                    check_product(partial(db.run, PROGRAM if is_planned_again else plan), matrix, vector)
                supplied = np.append(rng.standard_normal(SIZE), 0)
                check_product(partial(prepared.run, X=supplied[:SIZE]), matrix, supplied)
                check_product(prepared.run, matrix, supplied)

    run()


@pytest.mark.parametrize("keys", [[0, 1, 2], [2, 0, 1]])
def test_columns_that_change_their_names_after_loading(keys: list[int]) -> None:
    """Keys that were unique when they were loaded are those of another axis then, whose rows must be grouped."""
    with se.connect() as db:
        db.tensor("A", (np.array([keys, [1, 1, 1]]), np.array([1.0, 2.0, 3.0])), shape=(3, 3), axes=["i", "j"])
        for before, after in (("i", "k"), ("j", "i"), ("k", "j")):
            db.connection.execute(f"ALTER TABLE A RENAME {before} TO {after}")
        np.testing.assert_array_equal(db.run("Y[i] = sum(A[i, j])")["Y"].to_numpy(), [0, 6, 0])


@pytest.mark.parametrize("is_undone", [False, True])
def test_changes_of_a_transaction_that_is_open(is_undone: bool) -> None:
    with se.connect() as db:
        db.tensor("A", np.eye(SIZE), axes=["i", "j"], promoted=["i", "j"])
        db.tensor("X", np.ones(SIZE))
        plan = db.plan(PROGRAM)
        other = db.connection.cursor()
        other.execute("BEGIN")
        other.execute("UPDATE A SET val = 5")
        np.testing.assert_array_equal(db.run(plan)["Y"].to_numpy(), 1)
        other.execute("ROLLBACK" if is_undone else "COMMIT")
        np.testing.assert_array_equal(db.run(plan)["Y"].to_numpy(), 1 if is_undone else 5)
        other.execute("UPDATE A SET val = 7")
        np.testing.assert_array_equal(db.run(plan)["Y"].to_numpy(), 7)


def test_a_table_of_an_attached_database_changes_only_where_it_is_the_current_one(tmp_path: Path) -> None:
    for name in ("first", "second"):
        with se.connect(tmp_path / f"{name}.duckdb") as db:
            db.tensor("A", np.eye(2), axes=["i", "j"], promoted=["i", "j"])
    with se.connect(tmp_path / "first.duckdb") as db:
        plan = db.plan("Y[] = sum(A[i, j])")
        db.connection.execute(f"ATTACH '{tmp_path / 'second.duckdb'}' AS other")
        with pytest.raises(duckdb.Error, match="changes_"):
            db.connection.execute("UPDATE other.main.A SET val = 3")
        db.connection.execute("USE other")
        db.connection.execute("UPDATE A SET val = 3")
        with pytest.raises(duckdb.Error, match="changes_"):
            db.connection.execute("UPDATE first.main.A SET val = 4")
        assert db.run("Y[] = sum(A[i, j])")["Y"].to_numpy() == 6
        db.connection.execute("USE first")
        assert db.run(plan)["Y"].to_numpy() == 2
        db.connection.execute("UPDATE A SET val = 4")
        assert db.run(plan)["Y"].to_numpy() == 8


def test_unchanged_tables_are_not_scanned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with se.connect() as db:
        db.tensor("A", np.eye(SIZE), axes=["i", "j"], promoted=["i", "j"])
        db.tensor("X", np.ones(SIZE))
        plan = db.plan(PROGRAM)
        db.run(plan)  # reads them into memory
        statements = observe_queries(db, monkeypatch)
        db.plan(PROGRAM)
        db.run(plan)
        assert not [text for text in statements if "main.A" in text or "main.X" in text]
        statements.clear()
        db.plan(PROGRAM)
        db.run(plan)
        assert not [text for text in statements if "sparseeinsum" in text]  # neither the catalogue nor the changes
        db.connection.execute("INSERT INTO A VALUES (0, 1, 5)")
        np.testing.assert_array_equal(db.run(plan)["Y"].to_numpy(), [6, 1, 1, 1])
        assert any("main.A" in text for text in statements)
        assert not any("main.X" in text for text in statements)


def test_a_write_while_results_are_streamed_is_seen() -> None:
    with se.connect() as db:
        db.tensor("A", np.eye(SIZE), axes=["i", "j"], promoted=["i", "j"])
        db.tensor("X", np.ones(SIZE))
        plan = db.plan(PROGRAM)
        db.run(plan)
        with db.stream(plan) as results:
            list(results["Y"])
            db.connection.execute("UPDATE A SET val = 5")
        actual = db.run(plan)["Y"].to_numpy()
        ((value,),) = db.connection.execute("SELECT DISTINCT val FROM A").fetchall()  # 1 if the transaction was undone
        np.testing.assert_array_equal(actual, value)


WRITES = [
    "INSERT INTO A VALUES (0, 2, 1) RETURNING *",
    "UPDATE A SET val = 3 RETURNING *",
    "DELETE FROM A WHERE j = 2 RETURNING *",
    "UPDATE A SET val = s.v FROM (SELECT 1 AS i, 9.0 AS v) AS s WHERE A.i = s.i",
    "DELETE FROM A USING (SELECT 1 AS i) AS s WHERE A.i = s.i",
    "WITH q AS (SELECT 1 AS i, 2 AS j, 1.0 AS val) INSERT INTO A FROM q",
    "PREPARE p AS INSERT INTO A VALUES (1, 0, 4); EXECUTE p",
    "COPY (SELECT 0 AS i, 1 AS j, 1.0 AS val) TO '{folder}/rows.parquet'; COPY A FROM '{folder}/rows.parquet'",
    "BEGIN; INSERT INTO A VALUES (1, 2, 3); COMMIT",
]


@pytest.mark.parametrize("text", WRITES)
def test_every_statement_that_writes_changes_the_token(tmp_path: Path, text: str) -> None:
    with se.connect() as db:
        db.tensor("A", np.eye(3), axes=["i", "j"], promoted=["i", "j"])
        before = change_token(db)
        db.connection.execute(text.format(folder=tmp_path))
        assert change_token(db) not in (before, None)


def test_every_way_of_the_driver_to_add_rows_changes_the_token() -> None:
    frame = pd.DataFrame({"i": [0], "j": [1], "val": [2.0]}).astype({"i": "int32", "j": "int32"})
    with se.connect() as db:
        db.tensor("A", np.eye(3), axes=["i", "j"], promoted=["i", "j"])
        connection = db.connection
        ways: list[Callable[[], object]] = [
            lambda: connection.append("A", frame),
            lambda: connection.register("frame", frame).execute("INSERT INTO A SELECT * FROM frame"),
            lambda: connection.executemany("INSERT INTO A VALUES (?, ?, ?)", [[1, 2, 3.0], [2, 1, 3.0]]),
            lambda: connection.sql("SELECT 2 AS i, 0 AS j, 5.0 AS val").insert_into("A"),
            lambda: connection.table("A").insert([0, 2, 1.0]),
        ]
        tokens = [change_token(db)]
        for add in ways:
            add()
            tokens.append(change_token(db))
        assert None not in tokens
        assert len(set(map(str, tokens))) == 1 + len(ways)


def change_token(db: se.Database) -> object:
    (token,) = db._engine.change_tokens([exp.table_("A", db="main")])
    return token


def test_many_changes_change_the_token() -> None:
    """A log of many changes is summarised by the database, one of few by the client: both to the same."""
    with se.connect() as database:
        database.tensor("A", MATRIX, axes=["i", "j"], promoted=["i", "j"])
        database.tensor("X", VECTOR, axes=["j"])
        for count in (1, 255, 45):
            for _ in range(count):
                database.connection.execute("UPDATE A SET val = val + 1 WHERE i = 3 AND j = 0")
            table = exp.table_("A", db="main")
            token, again = (database._engine.change_tokens([table])[0] for _ in range(2))
            assert token == again
            assert isinstance(token, ChangeToken)
            log = token.state.log
            expected = MATRIX.copy()
            expected[3, 0] = database.connection.execute("SELECT val FROM A WHERE i = 3 AND j = 0").fetchall()[0][0]
            np.testing.assert_array_equal(database.run(PROGRAM)["Y"].to_numpy(), expected @ VECTOR)
        few, many = 0, recorded_changes._FEW_CHANGES + 1  # rows of the log, as DuckDB estimates them
        summary = recorded_changes._changes(database._engine.rows, log, many)
        assert recorded_changes._changes(database._engine.rows, log, few) == summary

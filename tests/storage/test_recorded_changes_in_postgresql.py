"""On PostgreSQL, whatever changes a table between plan and run, the result is of its present rows, or an error."""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import psycopg
import pytest
from changed_tables import SIZE, check_product, tensor_of
from hypothesis import given
from hypothesis import strategies as st
from observed_statements import observe_queries
from postgres_server import PostgresServer, start_beside
from random_runs import random_runs
from sqlglot import exp

import sparseeinsum as se

pytestmark = pytest.mark.engines("postgresql", reason="test_recorded_changes.py is for DuckDB")

PROGRAM = "Y[i] = sum(A[i, j] * X[j])"
MATRIX = np.array([[0, 1.5, 0, 0], [0, 0, 3, 0], [0, 0, 0, 0], [4, 0, 0, 1]])
VECTOR = np.array([1.0, 2.0, 0.5, -1.0])

# What a user may run, {t} standing for the table; PostgreSQL refuses some of it.
CHANGES = [
    "INSERT INTO {t} VALUES ({keys}, {v})",
    "INSERT INTO {t} (val, {names}) VALUES ({v}, {keys})",
    "UPDATE {t} SET val = {v} WHERE j = {j}",
    "UPDATE {t} SET val = {v}",
    "UPDATE {t} SET j = {j} WHERE val > 1",
    "DELETE FROM {t} WHERE j = {j}",
    "TRUNCATE {t}",
    "MERGE INTO {t} USING (SELECT {j} AS j, {v} AS v) AS s ON {t}.j = s.j WHEN MATCHED THEN UPDATE SET val = s.v",
    "WITH gone AS (DELETE FROM {t} WHERE j = {j} RETURNING 1) SELECT * FROM gone",
    "ALTER TABLE {t} ALTER val TYPE float8 USING {v}",
    "ALTER TABLE {t} ALTER j TYPE bigint USING {j}",
    "ALTER TABLE {t} DROP COLUMN val; ALTER TABLE {t} ADD COLUMN val float8 DEFAULT {v}",
    "ALTER TABLE {t} RENAME i TO k; ALTER TABLE {t} RENAME j TO i; ALTER TABLE {t} RENAME k TO j",
    "BEGIN; ALTER TABLE {t} RENAME i TO k; ALTER TABLE {t} RENAME j TO i; ALTER TABLE {t} RENAME k TO j; COMMIT",
    "DROP TABLE IF EXISTS b; ALTER TABLE {t} RENAME TO b; CREATE TABLE {t} AS SELECT {named}, {v} AS val",
    "DROP TABLE {t}; CREATE TABLE {t} AS SELECT {named}, {v} AS val",
    "ALTER TABLE {t} DISABLE TRIGGER ALL; UPDATE {t} SET val = {v}",
    "ALTER TABLE {t} DISABLE TRIGGER ALL; UPDATE {t} SET val = {v}; ALTER TABLE {t} ENABLE TRIGGER ALL",
    "BEGIN; ALTER TABLE {t} DISABLE TRIGGER USER; UPDATE {t} SET val = {v}; "
    "ALTER TABLE {t} ENABLE ALWAYS TRIGGER sparseeinsum_change; "
    "ALTER TABLE {t} ENABLE REPLICA TRIGGER sparseeinsum_replicated_change; COMMIT",
    "DROP TRIGGER sparseeinsum_change ON {t}; UPDATE {t} SET val = {v}",
    "SET session_replication_role = replica; UPDATE {t} SET val = {v}; RESET session_replication_role",
    "BEGIN; UPDATE {t} SET val = {v}; ROLLBACK",
    "BEGIN; UPDATE {t} SET val = {v}; COMMIT",
    "BEGIN; SAVEPOINT s; UPDATE {t} SET val = {v}; ROLLBACK TO s; DELETE FROM {t} WHERE j = {j}; COMMIT",
    "BEGIN; UPDATE {t} SET val = {v}; SAVEPOINT s; DELETE FROM {t}; ROLLBACK TO s; COMMIT",
    "CREATE TABLE parent (LIKE {t}); ALTER TABLE {t} INHERIT parent; UPDATE parent SET val = {v}; "
    "ALTER TABLE {t} NO INHERIT parent; DROP TABLE parent",
    "CREATE TABLE child () INHERITS ({t}); INSERT INTO child VALUES ({keys}, {v})",
    "DROP TABLE IF EXISTS child",
    "CREATE TABLE parts (LIKE {t}) PARTITION BY LIST (j); ALTER TABLE parts ATTACH PARTITION {t} DEFAULT; "
    "UPDATE parts SET val = {v}; ALTER TABLE parts DETACH PARTITION {t}; DROP TABLE parts",
    "CREATE OR REPLACE FUNCTION sparseeinsum.record_change() RETURNS trigger LANGUAGE plpgsql "
    "AS 'BEGIN RETURN NULL; END'; UPDATE {t} SET val = {v}",
    "UPDATE sparseeinsum.tensors SET statistics = replace(statistics, '1.5', '9.0')",
    "UPDATE sparseeinsum.tensors SET statistics = (SELECT max(statistics) FROM sparseeinsum.tensors)",
    "UPDATE sparseeinsum.tensors SET axis_counts = axis_counts || 'a'",
    "UPDATE {t} SET val = {v}; DELETE FROM sparseeinsum.changes",
    "TRUNCATE sparseeinsum.changes",
    "DROP TABLE sparseeinsum.changes",
    "DROP SCHEMA sparseeinsum CASCADE",
    "VACUUM FULL {t}",
    "ANALYZE {t}",
    "SELECT * FROM {t}",
    "",
]


@st.composite
def changes(draw: st.DrawFn) -> str:
    table = draw(st.sampled_from(["a", "x"]))
    i, j = (draw(st.integers(0, SIZE)) % (SIZE + draw(st.integers(0, 1))) for _ in "ij")
    value = draw(st.sampled_from(["2.5", "-1.0", "0.0", "'inf'", "'nan'", "NULL"])) + "::float8"
    keys, names, named = (f"{i}, {j}", "i, j", f"{i} AS i, {j} AS j") if table == "a" else (f"{j}", "j", f"{j} AS j")
    return draw(st.sampled_from(CHANGES)).format(t=table, v=value, j=j, keys=keys, names=names, named=named)


def execute(connection: psycopg.Connection, text: str) -> None:
    """Run the statements; PostgreSQL refuses some of them."""
    for statement in filter(None, text.split("; ")):
        with suppress(psycopg.Error):
            connection.execute(statement)
    connection.execute("ROLLBACK")  # of what an error has left


def dense(connection: psycopg.Connection, name: str, keys: list[str]) -> np.ndarray | None:
    """The tensor that the rows of a table are now; None if they are none."""
    try:
        cursor = connection.execute(f"SELECT * FROM {name}")
    except psycopg.Error:
        return None
    columns, rows = [column.name for column in cursor.description or ()], cursor.fetchall()
    is_recorded = connection.execute("SELECT to_regclass('sparseeinsum.tensors')").fetchall() != [(None,)]
    return tensor_of(columns, rows, keys if is_recorded else len(keys))


def reset(connection: psycopg.Connection) -> None:
    connection.execute("SET client_min_messages = error; RESET session_replication_role")
    connection.execute("DROP TABLE IF EXISTS child, parent, parts, a, x, b CASCADE")
    connection.execute("DROP SCHEMA IF EXISTS sparseeinsum, sparseeinsum_dictionaries CASCADE")


@pytest.fixture
def other(db: se.Database) -> Iterator[psycopg.Connection]:
    """Another session."""
    with psycopg.connect(db.connection.info.dsn, autocommit=True, prepare_threshold=None) as connection:
        connection.execute("SET search_path = main, public")
        yield connection


def test_random_changes(db: se.Database, other: psycopg.Connection) -> None:
    dsn = db.connection.info.dsn

    @random_runs(15, "postgresql")
    @given(st.lists(st.tuples(changes(), st.booleans(), st.booleans()), min_size=1, max_size=6))
    def run(steps: list[tuple[str, bool, bool]]) -> None:
        reset(db.connection)
        db.tensor("A", MATRIX, axes=["i", "j"], promoted=["i", "j"])
        db.tensor("X", VECTOR, axes=["j"], promoted=["j"])
        plan = db.plan(PROGRAM)
        for text, in_another_session, is_planned_again in steps:
            execute(other if in_another_session else db.connection, text)
            matrix, vector = dense(other, "a", ["i", "j"]), dense(other, "x", ["j"])
            check_product(partial(db.run, PROGRAM if is_planned_again else plan), matrix, vector)
            check_product(partial(db.run, plan), matrix, vector)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("SET search_path = main, public")
            check_product(lambda: se.connect(connection).run(PROGRAM), matrix, vector)

    run()


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_gives_another_token_or_none(db: se.Database, other: psycopg.Connection, change: str) -> None:
    db.tensor("A", MATRIX, axes=["i", "j"], promoted=["i", "j"])
    before = change_token(db), rows(other)
    execute(other, change.format(t="a", v="7.0::float8", j=2, keys="0, 2", names="i, j", named="0 AS i, 2 AS j"))
    after = change_token(db), rows(other)
    assert before[0] is not None
    assert after[0] != before[0] or after[1] == before[1]
    reset(db.connection)


def rows(connection: psycopg.Connection) -> object:
    try:
        cursor = connection.execute("SELECT * FROM a ORDER BY 1, 2, 3")
    except psycopg.Error:
        return None
    return cursor.fetchall(), [column.name for column in cursor.description or ()]


def change_token(db: se.Database) -> object:
    (token,) = db._engine.change_tokens([exp.table_("a", db="main")])
    return token


def test_unchanged_tables_are_not_scanned_again(
    db: se.Database, other: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor are they by other sessions, though others write to other tables."""
    db.tensor("A", np.eye(SIZE), axes=["i", "j"], promoted=["i", "j"])
    db.tensor("X", np.ones(SIZE))
    with se.connect(other) as later:
        statements = observe_queries(later, monkeypatch)
        plan = later.plan(PROGRAM)
        for _ in range(2):
            db.connection.execute("CREATE TABLE IF NOT EXISTS t (i INT); INSERT INTO t VALUES (1)")
            np.testing.assert_array_equal(later.run(plan)["Y"].to_numpy(), 1)
        assert len([text for text in statements if "main.a" in text]) <= 2
        db.connection.execute("INSERT INTO a VALUES (0, 1, 5)")
        np.testing.assert_array_equal(later.run(plan)["Y"].to_numpy(), [6, 1, 1, 1])


@pytest.mark.parametrize("is_undone", [False, True])
def test_changes_of_a_transaction_that_is_open(db: se.Database, other: psycopg.Connection, is_undone: bool) -> None:
    db.tensor("A", np.eye(SIZE), axes=["i", "j"], promoted=["i", "j"])
    db.tensor("X", np.ones(SIZE))
    plan = db.plan(PROGRAM)
    other.execute("BEGIN")
    other.execute("UPDATE a SET val = 5")
    np.testing.assert_array_equal(db.run(plan)["Y"].to_numpy(), 1)
    other.execute("ROLLBACK" if is_undone else "COMMIT")
    np.testing.assert_array_equal(db.run(plan)["Y"].to_numpy(), 1 if is_undone else 5)


def test_a_tensor_loaded_and_changed_in_one_transaction(db: se.Database) -> None:
    with db.connection.transaction():
        db.tensor("A", np.eye(SIZE), axes=["i", "j"], promoted=["i", "j"])
        db.connection.execute("INSERT INTO a VALUES (0, 1, 'inf')")
        assert change_token(db) is None
    assert db.run("Y[i] = sum(A[i, j])")["Y"].to_numpy()[0] == np.inf
    with db.connection.transaction(force_rollback=True):
        db.connection.execute("DELETE FROM a")
        np.testing.assert_array_equal(db.run("Y[i] = sum(A[i, j])")["Y"].to_numpy(), 0)
    assert db.run("Y[i] = sum(A[i, j])")["Y"].to_numpy()[0] == np.inf


def test_bad_rows_of_a_table_that_the_transaction_has_locked(db: se.Database) -> None:
    """The row is looked for on another connection, which must not wait for the lock."""
    db.tensor("A", MATRIX, axes=["i", "j"], promoted=["i"])
    for lock in ("TRUNCATE a", "ALTER TABLE a ADD COLUMN other INT; ALTER TABLE a DROP COLUMN other"):
        with db.connection.transaction(force_rollback=True):
            db.connection.execute(f"{lock}; INSERT INTO a VALUES (7, ARRAY[1, NULL, 2, 3])")
            with pytest.raises(se.EngineError, match="NULL"):
                db.run("Y[i] = sum(A[i, j])")
    np.testing.assert_array_equal(db.run("Y[i] = sum(A[i, j])")["Y"].to_numpy(), MATRIX.sum(axis=1))


def test_many_changes_take_few_rows(db: se.Database) -> None:
    """Rows of several changes stand for them all, whichever transaction joins them; one of 64 does, by chance."""
    db.tensor("A", np.eye(SIZE), axes=["i", "j"], promoted=["i", "j"])
    tokens = set()
    for _ in range(1000):
        db.connection.execute("UPDATE a SET val = 2")
        tokens.add(change_token(db))
    ((count, changes),) = db.connection.execute("SELECT count(*), sum(changes) FROM sparseeinsum.changes").fetchall()
    assert len(tokens) == 1000
    assert changes == 1001
    assert count < 1001


def test_roles_without_rights_to_the_log_change_it(db: se.Database) -> None:
    db.tensor("A", np.eye(SIZE), axes=["i", "j"], promoted=["i", "j"])
    db.connection.execute("DROP ROLE IF EXISTS clerk; CREATE ROLE clerk")
    db.connection.execute("GRANT USAGE ON SCHEMA main TO clerk; GRANT SELECT, INSERT ON a TO clerk")
    plan = db.plan("Y[i] = sum(A[i, j])")
    db.connection.execute("SET ROLE clerk")
    db.connection.execute("INSERT INTO a VALUES (0, 1, 5)")
    with pytest.raises(psycopg.Error, match="permission denied"):
        db.connection.execute("DELETE FROM sparseeinsum.changes")
    db.connection.execute("RESET ROLE")
    np.testing.assert_array_equal(db.run(plan)["Y"].to_numpy(), [6, 1, 1, 1])
    db.connection.execute("DROP OWNED BY clerk; DROP ROLE clerk")


def test_changes_by_logical_replication(postgres: PostgresServer) -> None:
    """It fires no triggers of statements; the subscription may be gone before anybody looks."""
    with start_beside(postgres, ["-c wal_level=logical"]) as server:
        with server.connect() as maintenance:
            for name in ("source", "target"):
                maintenance.execute(f"CREATE DATABASE {name}")
        with server.connect("source") as source, server.connect("target") as connection:
            connection.execute("CREATE EXTENSION sparseeinsum")
            with se.connect(connection) as db:
                db.tensor("A", np.eye(SIZE), axes=["i", "j"], promoted=["i", "j"])
                plan = db.plan("Y[i] = sum(A[i, j])")
                (before,) = db._engine.change_tokens([exp.table_("a", db="public")])
                source.execute("CREATE TABLE a (i INT, j INT, val FLOAT8)")
                source.execute("CREATE PUBLICATION p FOR TABLE a")
                source.execute("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
                connection.execute(
                    f"CREATE SUBSCRIPTION s CONNECTION 'host={server.folder} user=postgres dbname=source' "
                    "PUBLICATION p WITH (create_slot = FALSE, slot_name = 's', copy_data = FALSE)"
                )
                source.execute("INSERT INTO a VALUES (0, 1, 5), (0, 2, 1)")
                while connection.execute("SELECT count(*) FROM a").fetchall() != [(6,)]:
                    pass
                connection.execute("DROP SUBSCRIPTION s")
                (after,) = db._engine.change_tokens([exp.table_("a", db="public")])
                assert None not in (before, after)
                assert before != after
                np.testing.assert_array_equal(db.run(plan)["Y"].to_numpy(), [7, 1, 1, 1])


OTHER_TABLES = (
    "DROP TABLE a; CREATE TABLE a AS SELECT 3 AS i, 2 AS j, 2.5::float8 AS val",
    "ALTER TABLE a RENAME TO b; CREATE TABLE a AS SELECT 3 AS i, 2 AS j, NULL::float8 AS val",
    "ALTER TABLE a RENAME TO b; ALTER TABLE spare RENAME TO a",
)


@pytest.mark.parametrize("query", range(1, 6))
@pytest.mark.parametrize("change", OTHER_TABLES)
def test_another_table_of_the_name_while_a_run_begins(
    db: se.Database, other: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, change: str, query: int
) -> None:
    """Queries find a table by its present name, and its rows by an older snapshot."""
    db.tensor("A", MATRIX, axes=["i", "j"], promoted=["i", "j"])
    db.tensor("X", VECTOR, axes=["j"], promoted=["j"])
    other.execute("CREATE TABLE spare AS SELECT 3 AS i, 2 AS j, unnest(ARRAY[1.0, 1.0])::float8 AS val")
    for _ in range(2):
        db.run(PROGRAM)
    count, rows = 0, type(db._engine).rows

    def changing(engine: Any, statement: Any) -> Any:  # noqa: ANN401  # of the engine's method
        nonlocal count
        count += 1
        if count == query:
            execute(other, f"SET lock_timeout = '100ms'; {change}")
        return rows(engine, statement)

    monkeypatch.setattr(type(db._engine), "rows", changing)
    states = [dense(other, "a", ["i", "j"])]
    with suppress(se.SparseEinsumError):
        actual = db.run(PROGRAM)["Y"].to_numpy()
        states.append(dense(other, "a", ["i", "j"]))
        assert any(np.array_equal(actual, state[:SIZE, :SIZE] @ VECTOR) for state in states if state is not None)

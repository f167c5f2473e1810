"""Queries that runs repeat are prepared, and see all changes."""

import duckdb
import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.engines.duckdb.duckdb_prepared import RepeatedQueries
from sparseeinsum.errors import EngineError

pytestmark = pytest.mark.engines("duckdb", reason="its prepared statements")

TABLES = "SELECT schema_name, table_name, sql FROM duckdb_tables() ORDER BY ALL"
NUMBER = "SELECT txid_current(), current_setting('threads'), current_database()"


def repeated_queries(db: se.Database) -> RepeatedQueries:
    return RepeatedQueries(db.connection)


def prepared_names(connection: duckdb.DuckDBPyConnection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM duckdb_prepared_statements()").fetchall()}


def test_all_changes_are_seen(db: se.Database) -> None:
    repeated, connection = repeated_queries(db), db.connection
    statements = (
        "CREATE TABLE t (i INT)",
        "BEGIN",
        "CREATE TABLE u (i INT)",
        "ROLLBACK",
        "ALTER TABLE t ADD COLUMN j INT",
        "SET threads = 1",
        "ATTACH ':memory:' AS other",
        "CREATE TABLE other.t (i INT)",
        "USE other",
        "USE memory",
        "DROP TABLE t",
    )
    for statement in ("SELECT 1", "SELECT 1", *statements):
        connection.execute(statement)
        assert repeated.rows(TABLES) == connection.execute(TABLES).fetchall()
        ((number, *settings),) = repeated.rows(NUMBER)
        ((_, *expected),) = connection.execute(NUMBER).fetchall()
        assert settings == expected
        assert isinstance(number, int)


def test_a_statement_that_somebody_removed_is_prepared_again(db: se.Database) -> None:
    repeated, before = repeated_queries(db), prepared_names(db.connection)
    for _ in range(3):
        repeated.rows(TABLES)
    (name,) = prepared_names(db.connection) - before
    db.connection.execute(f"DEALLOCATE {name}")
    with pytest.raises(EngineError, match="does not exist"):
        repeated.rows(TABLES)
    assert repeated.rows(TABLES) == db.connection.execute(TABLES).fetchall()


def test_another_connection_changes_a_tensor(db: se.Database) -> None:
    db.tensor("A", np.arange(3.0), promoted=["dim_0"])
    plan = db.plan("Y[] = sum(A[i])")
    for value in range(5):
        cursor = db.connection.cursor()
        cursor.execute(f"UPDATE A SET val = {value} WHERE dim_0 = 2")
        cursor.close()
        assert db.run(plan, progress=False)["Y"].to_numpy() == 1 + value


def test_databases_on_one_connection(db: se.Database) -> None:
    """Neither runs a statement that the other has prepared."""
    queries = "SELECT 1", "SELECT 2"
    several = [repeated_queries(db), repeated_queries(db)]
    for _ in range(3):
        for repeated, query in zip(several, queries, strict=True):
            assert repeated.rows(query) == db.connection.execute(query).fetchall()

"""A run sees one state of the data while others write, or is refused with a suggestion."""

import re
import time
from collections.abc import Iterator

import numpy as np
import psycopg
import pytest
from any_sql import run_sql
from postgres_server import PostgresServer
from psycopg import errors
from writers import SIZE, STATISTICS, Execute, check_consistent, writing

import sparseeinsum as se

ENGINES = pytest.mark.engines("duckdb", "postgresql")
ROUNDS = 24


@pytest.fixture
def execute(db: se.Database, engine: str, postgres_urls: dict[str, str]) -> Iterator[Execute]:
    """Runs statements on a second connection."""
    if engine == "duckdb":
        with db.connection.cursor() as cursor:
            yield cursor.execute
        return
    with psycopg.connect(postgres_urls["db"], autocommit=True) as connection:
        connection.execute("SET search_path = main, public")
        yield connection.execute


@pytest.fixture
def x(db: se.Database) -> se.Database:
    """A vector of ones, whose table writers change."""
    run_sql(db, "CREATE TABLE x (i BIGINT, v DOUBLE PRECISION)")
    run_sql(db, f"INSERT INTO x SELECT i, 1 FROM generate_series(0, {SIZE - 1}) AS t(i)")
    db.tensor_from_table("X", "x", ["i"], "v", shape=[SIZE])
    return db


CHANGES = {
    "values": ["UPDATE x SET v = v + 1"],
    "duplicates": ["INSERT INTO x SELECT i, 1 FROM x", "BEGIN; DELETE FROM x; {ones}; COMMIT"],
    "emptied": ["BEGIN; TRUNCATE x; {ones}; COMMIT"],
    "new": ["BEGIN; DROP TABLE x; CREATE TABLE x (i BIGINT, v DOUBLE PRECISION); {ones}; COMMIT"],
}
ONES = f"INSERT INTO x SELECT i, 1 FROM generate_series(0, {SIZE - 1}) AS t(i)"


@ENGINES
@pytest.mark.parametrize("changes", CHANGES)
@pytest.mark.parametrize("is_planned", [False, True])
def test_runs_see_one_state(x: se.Database, engine: str, execute: Execute, changes: str, is_planned: bool) -> None:
    plan = x.plan(STATISTICS) if is_planned else STATISTICS
    transactions = [transaction.format(ones=ONES) for transaction in CHANGES[changes]]
    refused = 0
    with writing(execute, *transactions) as written:
        for _ in range(ROUNDS):
            try:
                check_consistent(x.run(plan))
            except se.SparseEinsumError as error:  # the state at that time
                refused += 1
                assert re.search("in an earlier row|again|can no longer be read", str(error)), error
        assert written() > 1
    if changes == "values":
        assert refused == 0


@ENGINES
def test_streams_see_one_state(x: se.Database, execute: Execute) -> None:
    with writing(execute, "UPDATE x SET v = v + 1"):
        for _ in range(ROUNDS // 4):
            with x.stream("Y[i] = X[i]\nS[] = sum(X[i])") as results:
                total = sum(batch.column(0).to_numpy().sum() for batch in results["S"])
                values = np.concatenate([batch.column(1).to_numpy() for batch in results["Y"]])
                assert values.min() == values.max() == total / SIZE


@ENGINES
def test_loading_and_keeping_beside_writers(x: se.Database, execute: Execute) -> None:
    """While rows change, each stored tensor and each filled table holds one state."""
    with writing(execute, "UPDATE x SET v = v + 1"):
        for number in range(ROUNDS // 4):
            x.tensor("C", "x", index=["i"], value="v")
            check_consistent(x.run(STATISTICS.replace("X", "C")))
            x.tensor_from_table("T", "x", ["i"], "v")
            check_consistent(x.run(STATISTICS.replace("X", "T")))
            x.run(STATISTICS, into={"P": "most", "Q": "least", "S": "total"})
            check_consistent(x.run("P[] = most[]\nQ[] = least[]\nS[] = total[]"))
            x.run(f"Y[i] = X[i] + {number}", into={"Y": "y"})


class TestTransactionsOfTheUser:
    """On PostgreSQL; in DuckDB, no transaction of a user is open while a program runs."""

    pytestmark = pytest.mark.engines("postgresql", reason="DuckDB refuses to run in a transaction of the user's")

    def test_at_read_committed_tables_are_locked(self, x: se.Database, execute: Execute) -> None:
        with writing(execute, "UPDATE x SET v = v + 1") as written:
            for _ in range(ROUNDS // 2):
                with x.connection.transaction():
                    check_consistent(x.run(STATISTICS))
            assert written() > 1

    def test_at_repeatable_read_there_is_a_snapshot(self, x: se.Database, execute: Execute) -> None:
        with writing(execute, "UPDATE x SET v = v + 1") as written, x.connection.transaction():
            x.connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            check_consistent(x.run(STATISTICS))
            before = written()
            while written() < before + 3:
                time.sleep(0.01)
            check_consistent(x.run(STATISTICS))

    def test_tables_that_cannot_be_locked_are_refused(self, x: se.Database) -> None:
        connection = x.connection
        connection.execute("CREATE ROLE reader; GRANT SELECT ON x TO reader; GRANT USAGE ON SCHEMA main TO reader")
        x.grant("reader")
        try:
            connection.execute("SET ROLE reader")
            assert x.run("S[] = sum(X[i])")["S"].to_numpy() == SIZE
            with (
                pytest.raises(se.EngineError, match=r"others may write to tensor X .*ISOLATION LEVEL REPEATABLE READ"),
                connection.transaction(),
            ):
                x.run(STATISTICS)
            with connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                check_consistent(x.run(STATISTICS))
        finally:
            connection.execute("RESET ROLE; DROP OWNED BY reader; DROP ROLE reader")


def test_programs_at_psql(postgres_python: PostgresServer) -> None:
    with postgres_python.connect() as maintenance:
        maintenance.execute("CREATE DATABASE writers")
    try:
        with postgres_python.connect("writers") as shell, postgres_python.connect("writers") as other:
            shell.execute("CREATE EXTENSION sparseeinsum_python CASCADE; CREATE TABLE x (i BIGINT, v FLOAT8)")
            shell.execute(ONES)
            shell.execute("SELECT sparseeinsum.tensor_from_table('X', 'x', '{i}', 'v')")
            read = "SELECT (SELECT val FROM p), (SELECT val FROM q), (SELECT val FROM s)"
            query = f"SELECT * FROM sparseeinsum.einsum_into('{STATISTICS}', replace => true)"
            with writing(other.execute, "UPDATE x SET v = v + 1") as written:
                for _ in range(ROUNDS // 4):
                    shell.execute(query).fetchall()
                    ((most, least, total),) = shell.execute(read).fetchall()
                    assert most == least == total / SIZE
                assert written() > 1
            columns = [
                f"SELECT val FROM sparseeinsum.einsum('{line}') AS t(val float8)" for line in STATISTICS.splitlines()
            ]
            with writing(other.execute, "UPDATE x SET v = v + 1") as written:
                for _ in range(ROUNDS // 4):
                    ((most, least, total),) = shell.execute(f"SELECT ({'), ('.join(columns)})").fetchall()
                    assert most == least == total / SIZE
                assert written() > 1
            shell.execute("CREATE ROLE analyst; GRANT SELECT ON x TO analyst; GRANT CREATE ON SCHEMA public TO analyst")
            se.connect(shell).grant("analyst")
            shell.execute("DROP TABLE p, q, s; DELETE FROM sparseeinsum.tensors WHERE name <> 'X'; SET ROLE analyst")
            with pytest.raises(errors.ObjectNotInPrerequisiteState, match="cannot be locked") as caught:
                shell.execute(query).fetchall()
            assert "SET default_transaction_isolation = 'repeatable read'" in (caught.value.diag.message_hint or "")
            shell.execute("SET default_transaction_isolation = 'repeatable read'")
            shell.execute(query).fetchall()
    finally:
        with postgres_python.connect() as maintenance:
            maintenance.execute("DROP DATABASE writers (FORCE)")
            maintenance.execute("DROP ROLE IF EXISTS analyst")

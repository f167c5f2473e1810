"""On PostgreSQL, einsum returns the rows of a program's result in any query, from the data that the query sees."""

import re
from collections.abc import Iterator

import numpy as np
import psycopg
import pytest
from hypothesis import given
from program_cases import Case
from psycopg import errors
from random_programs import FAMILIES, cases
from random_runs import random_runs

import sparseeinsum as se

A = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, -3.0]])
SUMS = "SELECT * FROM einsum('S[i] = sum(A[i, j])') AS s(i bigint, val float8)"


@pytest.fixture
def shell(python_connection: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """The module's session with a tensor A, in a transaction that is rolled back."""
    with python_connection.transaction(force_rollback=True):
        python_connection.execute("CREATE SCHEMA main; SET LOCAL search_path = main, public, sparseeinsum")
        se.connect(python_connection).tensor("A", A, promoted=["dim_0", "dim_1"])
        yield python_connection


def sums(rows: list[tuple[int, float]]) -> list[float]:
    dense = dict(rows)
    return [dense.get(i, 0.0) for i in range(len(A))]


class TestRows:
    @pytest.mark.parametrize("family", list(FAMILIES)[:2])
    def test_are_numpys(self, shell: psycopg.Connection, family: str) -> None:
        db = se.connect(shell)

        @random_runs(8, "postgresql")
        @given(cases(family, "dp"))
        def run(case: Case) -> None:
            case.load(db)
            check(shell, db, case)

        run()

    def test_in_views_joins_and_subqueries(self, shell: psycopg.Connection) -> None:
        shell.execute(f"CREATE VIEW sums AS {SUMS}")
        named = "SELECT name, val FROM sums JOIN (VALUES (0, 'zero'), (1, 'one')) AS n(i, name) USING (i) ORDER BY i"
        assert shell.execute(named).fetchall() == [("zero", 1.5), ("one", -1.0)]
        shell.execute("INSERT INTO a VALUES (0, 0, 10)")
        assert sums(shell.execute("SELECT * FROM sums").fetchall()) == [11.5, -1.0]
        total = "(SELECT val FROM einsum('T[] = sum(A[i, j])') AS t(val float8))"
        assert shell.execute(f"SELECT DISTINCT {total} FROM generate_series(1, 3)").fetchall() == [(10.5,)]

    def test_in_tables_that_the_query_makes(self, shell: psycopg.Connection) -> None:
        shell.execute(f"CREATE TABLE stored AS {SUMS}; CREATE MATERIALIZED VIEW kept_sums AS {SUMS}")
        shell.execute("INSERT INTO stored TABLE kept_sums; REFRESH MATERIALIZED VIEW kept_sums")
        assert shell.execute("SELECT count(*), sum(val) FROM stored").fetchall() == [(4, 1.0)]

    def test_of_prepared_statements_follow_the_data_and_the_program(self, shell: psycopg.Connection) -> None:
        shell.execute("PREPARE total(text) AS SELECT * FROM einsum($1) AS t(val float8)")
        for program, total in (("T[] = sum(A[i, j])", 0.5), ("T[] = 2 * sum(A[i, j])", 1.0)):
            assert shell.execute(f"EXECUTE total('{program}')").fetchall() == [(total,)]
        shell.execute("INSERT INTO a VALUES (0, 0, 1)")
        assert shell.execute("EXECUTE total('T[] = sum(A[i, j])')").fetchall() == [(1.5,)]
        shell.execute("DEALLOCATE total")

    def test_have_indices_of_one_type_whatever_the_tables(self, shell: psycopg.Connection) -> None:
        shell.execute("CREATE TABLE edges AS SELECT 1::int AS i, 2::smallint AS j, 2.5::float8 AS w")
        query = "SELECT * FROM einsum('Y[j, i] = 2 * edges[i, j]') AS y(j bigint, i bigint, val float8)"
        assert shell.execute(query).fetchall() == [(2, 1, 5.0)]

    def test_of_one_output_of_several(self, shell: psycopg.Connection) -> None:
        query = "SELECT * FROM einsum('S[i] = sum(A[i, j])\nT[] = sum(S[i])', output => 'T') AS t(val float8)"
        assert shell.execute(query).fetchall() == [(0.5,)]

    def test_have_natural_keys(self, shell: psycopg.Connection) -> None:
        shell.execute("CREATE TABLE edges AS SELECT 'ann' AS src, 'bob' AS dst, 2.5::float8 AS w")
        se.connect(shell).tensor_from_table("E", "edges", ["src", "dst"], "w", keys={"src": "p", "dst": "p"})
        query = "SELECT * FROM einsum('Y[i] = sum(E[i, j])') AS y(i text, val float8)"
        assert shell.execute(query).fetchall() == [("ann", 2.5)]

    def test_have_columns_that_a_function_lists(self, shell: psycopg.Connection) -> None:
        program = "B[order] = sum(A[order, j])\nT[] = sum(B[i])"
        for output, listed in (("B", '"order" bigint, val double precision'), ("T", "val double precision")):
            assert shell.execute("SELECT einsum_columns(%s, %s)", [program, output]).fetchall() == [(listed,)]
            query = f"SELECT sum(val) FROM einsum(%s, %s) AS t({listed})"
            assert shell.execute(query, [program, output]).fetchall() == [(0.5,)]

    def test_leave_no_setting(self, shell: psycopg.Connection) -> None:
        query = "SELECT current_setting('work_mem'), current_setting('jit'), current_setting('search_path')"
        before = shell.execute(query).fetchall()
        shell.execute(SUMS)
        assert shell.execute(query).fetchall() == before


def check(shell: psycopg.Connection, db: se.Database, case: Case) -> None:
    """Compare the rows of every output with numpy; the list of columns is the one that the hint says."""
    query = """SELECT * FROM einsum(%(program)s, output => %(output)s, optimizer => %(optimizer)s,
        nonfinite => %(nonfinite)s) AS t"""
    try:
        results = db.run(case.text, outputs=case.outputs, optimizer=case.optimizer, nonfinite=case.nonfinite)
    except se.SparseEinsumError:
        return
    for name, result in results.items():
        arguments = {
            "program": case.text,
            "output": name,
            "optimizer": case.optimizer,
            "nonfinite": case.nonfinite,
        }
        with pytest.raises(psycopg.Error) as caught, shell.transaction():
            shell.execute(f"{query}(wrong int)", arguments)
        assert caught.value.diag.message_hint is not None, str(caught.value)
        (columns,) = re.findall(r"write AS t(\(.*\))", caught.value.diag.message_hint or "")
        computed = np.full(result.shape, result.fill, case.expected[name].dtype)
        for *index, value in shell.execute(f"{query}{columns}", arguments).fetchall():
            computed[tuple(index)] = value
        case.expect(name, computed)


class TestReadOnly:
    def test_transactions(self, python_connection: psycopg.Connection) -> None:
        python_connection.execute("CREATE TABLE IF NOT EXISTS only_read AS SELECT 0::bigint AS i, 2.5::float8 AS val")
        query = "SELECT * FROM sparseeinsum.einsum('S[] = sum(only_read[i])') AS s(val float8)"
        for mode in ("READ ONLY", "ISOLATION LEVEL SERIALIZABLE READ ONLY"):
            with python_connection.transaction():
                python_connection.execute(f"SET TRANSACTION {mode}")
                assert python_connection.execute(query).fetchall() == [(2.5,)]

    def test_a_role_that_may_only_read(self, shell: psycopg.Connection) -> None:
        shell.execute("CREATE ROLE reader; GRANT USAGE ON SCHEMA main, sparseeinsum TO reader")
        shell.execute("GRANT SELECT ON a, sparseeinsum.tensors TO reader; SET LOCAL ROLE reader")
        assert sums(shell.execute(SUMS).fetchall()) == [1.5, -1.0]


class TestErrors:
    @pytest.mark.parametrize(
        ("query", "message", "hint"),
        [
            (
                "* FROM einsum('S[i] = sum(A[i, j])') AS s(j bigint, val float8)",
                "has the columns (i bigint, val double precision), and is declared as (j bigint, val double precision)",
                "write AS t(i bigint, val double precision)",
            ),
            (
                "* FROM einsum('S[i] = sum(A[i, j])') AS s(i bigint, val real)",
                "has the columns (i bigint, val double precision), and is declared as (i bigint, val real)",
                "write AS t(i bigint, val double precision)",
            ),
            (
                "* FROM einsum('S[i] = sum(A[i, j])') AS s(i bigint)",
                "and is declared as (i bigint)",
                "write AS t(i bigint, val double precision)",
            ),
            (
                "einsum('S[i] = sum(A[i, j])')",
                "einsum is called where it cannot return rows",
                "write SELECT * FROM einsum(...) AS t(i bigint, val double precision)",
            ),
            (
                "* FROM einsum('S[i] = sum(A[i, j])\nT[] = max(A[i, j])') AS s(i bigint, val float8)",
                "the program returns S, T, but einsum returns one result",
                "name it, as in output := 'S'",
            ),
            ("* FROM einsum('S[i] = Z[i]') AS s(i bigint)", "there is no tensor Z in this database", "known are A"),
            ("* FROM einsum(NULL) AS s(i bigint)", "the argument program of einsum is NULL", "give it a value"),
            (
                "* FROM einsum('S[i, j] = sqrt(A[i, j] - 9)') AS s(i bigint, j bigint, val float8)",
                "tensor_finite: S turned NaN or infinite out of finite values",
                "nonfinite='allow' lets a run go on",
            ),
        ],
    )
    def test_say_what_to_write(self, shell: psycopg.Connection, query: str, message: str, hint: str | None) -> None:
        with pytest.raises(psycopg.Error) as caught, shell.transaction():
            shell.execute(f"SELECT {query}")
        assert message in (caught.value.diag.message_primary or "")
        assert (caught.value.diag.message_hint or "").startswith(hint or "")
        assert "Traceback" not in (caught.value.diag.context or "")

    def test_a_column_definition_list_is_needed(self, shell: psycopg.Connection) -> None:
        with pytest.raises(errors.SyntaxError, match="a column definition list is required"), shell.transaction():
            shell.execute("SELECT * FROM einsum('S[i] = sum(A[i, j])')")

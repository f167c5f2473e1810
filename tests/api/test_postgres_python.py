"""The SQL functions of sparseeinsum_python plan and run programs inside the PostgreSQL server."""

import json
from collections.abc import Iterator

import numpy as np
import psycopg
import pytest
from cancelling import cancelled
from hypothesis import given
from program_cases import Case
from psycopg import errors
from random_programs import FAMILIES, cases
from random_runs import random_runs
from reading import contents, stored_result
from server_programs import PRODUCT, einsum_into

import sparseeinsum as se

A = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, -3.0]])
B = np.arange(6.0).reshape(3, 2)


@pytest.fixture
def shell(python_connection: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """The module's session, in an empty schema without tensors."""
    python_connection.execute("RESET ALL; CREATE SCHEMA main; SET search_path = main, public")
    yield python_connection
    python_connection.execute("RESET ALL; SET client_min_messages = error; DROP SCHEMA IF EXISTS main, other CASCADE")
    # The first tensor makes the catalogue.
    if python_connection.execute("SELECT to_regclass('sparseeinsum.tensors')").fetchone() != (None,):
        python_connection.execute("TRUNCATE sparseeinsum.tensors")


@pytest.fixture
def db(shell: psycopg.Connection) -> se.Database:
    """The same database as an se.Database, with two matrices."""
    db = se.connect(shell)
    db.tensor("A", A, promoted=["dim_0", "dim_1"])
    db.tensor("B", B)
    return db


def stored(db: se.Database, name: str) -> np.ndarray:
    return stored_result(db, name).to_numpy()


class TestEinsum:
    def test_tables_and_results_become_tensors(self, shell: psycopg.Connection) -> None:
        shell.execute("CREATE TABLE edges (src INT, dst INT, weight REAL); CREATE TABLE x (node INT, v FLOAT8)")
        shell.execute("INSERT INTO edges VALUES (0, 1, 0.5), (1, 2, 2), (2, 0, 4); INSERT INTO x VALUES (0, 1), (2, 3)")
        declare = "SELECT sparseeinsum.tensor_from_table('E', 'edges', '{src,dst}', 'weight', shape => '{3,3}')"
        assert shell.execute(declare).fetchall() == [("tensor E[src: 3, dst: 3] fill 0.0 dtype float32",)]
        declare = (
            "SELECT sparseeinsum.tensor_from_table('X', 'x', '{node}', 'v', fill => 'Infinity', dtype => 'float64')"
        )
        assert shell.execute(declare).fetchall() == [("tensor X[node: 3] fill inf dtype float64",)]
        rows = einsum_into(shell, "D[i] = min(E[i, j] + X[j])")
        assert [row[:5] for row in rows] == [("D", "d", [3], "float64", "inf")]
        assert shell.execute("SELECT * FROM D ORDER BY i").fetchall() == [(0, 1.0), (1, 1.0), (2, 3.0)]
        (row,) = einsum_into(shell, "F[i] = exp(-D[i])\nG[] = sum(F[i])", outputs=["F"])[1:]
        assert row[0] == "G"
        assert shell.execute("SELECT val FROM g").fetchone() == (pytest.approx(2 * np.exp(-1) + np.exp(-3)),)

    def test_tables_are_read_as_they_are(self, shell: psycopg.Connection) -> None:
        shell.execute("CREATE TABLE edges AS SELECT i, i AS j, i * 1.5::float8 AS w FROM generate_series(0, 2) AS i")
        einsum_into(shell, "D[j] = sum(edges[i, j])")
        assert shell.execute("SELECT * FROM d ORDER BY j").fetchall() == [(0, 0), (1, 1.5), (2, 3)]
        with pytest.raises(errors.DuplicateTable, match=r"main\.edges that was not made for a tensor"):
            einsum_into(shell, "edges[j] = D[j]", replace=True)

    @pytest.mark.parametrize("family", FAMILIES)
    def test_results_are_numpys(self, shell: psycopg.Connection, family: str) -> None:
        db = se.connect(shell)

        @random_runs(16, "postgresql")
        @given(cases(family, "dp"))
        def run(case: Case) -> None:
            case.load(db)
            check(shell, db, case)

        run()

    def test_options(self, db: se.Database, shell: psycopg.Connection) -> None:
        for optimizer in ("dp", "greedy", "relational", "dense"):
            einsum_into(
                shell,
                PRODUCT,
                replace=True,
                optimizer=optimizer,
                tiles="2,4",
                estimator="exact",
                memory_limit="1GB",
                rewrite=False,
            )
            np.testing.assert_allclose(stored(db, "C"), A @ B)
        einsum_into(shell, PRODUCT, replace=True, layout="any", pin=json.dumps({"C": ["i"]}))
        np.testing.assert_allclose(stored(db, "C"), A @ B)
        assert db.tensors()["C"].decomposition.tiles == (1, 0)

    def test_no_notice_and_no_setting_is_left(self, db: se.Database, shell: psycopg.Connection) -> None:
        query = "SELECT current_setting('work_mem'), current_setting('jit'), current_setting('search_path')"
        notices: list[str] = []
        shell.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
        before = shell.execute(query).fetchall()
        with shell.transaction():
            einsum_into(shell, PRODUCT)
            assert shell.execute(query).fetchall() == before
        assert notices == []


def check(shell: psycopg.Connection, db: se.Database, case: Case) -> None:
    options = {"optimizer": case.optimizer, "layout": case.layout, "outputs": list(case.outputs)}
    options |= {"nonfinite": case.nonfinite, "pin": json.dumps(case.pin)}
    options |= {"tiles": ",".join(map(str, case.tiles))} if case.tiles else {}
    try:
        wanted_by_client = db.run(case.plan(db))
    except se.SparseEinsumError as error:
        with pytest.raises(psycopg.Error) as caught:
            einsum_into(shell, case.text, replace=True, **options)
        assert str(error).startswith(caught.value.diag.message_primary or "nothing")
        return
    rows = einsum_into(shell, case.text, replace=True, **options)
    assert [row[0] for row in rows] == [*wanted_by_client]
    for name, table, shape, dtype, fill, tuples in rows:
        expected, result = case.expected[name], stored_result(db, name)
        assert (tuple(shape), dtype, fill) == (expected.shape, str(expected.dtype), repr(result.fill).lower())
        assert (tuples, table) == (result.rows.num_rows, name.lower())
        case.expect(name, result.to_numpy())


class TestReplacing:
    def test_needs_the_option_replace(self, db: se.Database, shell: psycopg.Connection) -> None:
        einsum_into(shell, PRODUCT)
        before = contents(db)
        with pytest.raises(errors.DuplicateTable, match=r"there is a tensor C already, in main\.c") as caught:
            einsum_into(shell, "C[i, j] = A[i, j] * 2")
        assert caught.value.diag.message_hint == "pass replace => true, or give the result another name"
        assert contents(db) == before
        einsum_into(shell, "C[i, j] = A[i, j] * 2", replace=True)
        np.testing.assert_array_equal(stored(db, "C"), 2 * A)

    @pytest.mark.parametrize("kind", ["TABLE", "VIEW"])
    def test_tables_of_users_are_not_replaced(self, db: se.Database, shell: psycopg.Connection, kind: str) -> None:
        shell.execute(f"CREATE {kind} c AS SELECT 1 AS i, 2.0::float8 AS v")
        with pytest.raises(errors.DuplicateTable, match=r"a table or view main\.c that was not made for a tensor"):
            einsum_into(shell, PRODUCT, replace=True)
        shell.execute("SELECT sparseeinsum.tensor_from_table('C', 'c', '{i}', 'v')")
        with pytest.raises(errors.DuplicateTable, match="not made for a tensor C"):
            einsum_into(shell, PRODUCT, replace=True)
        assert shell.execute("SELECT * FROM c").fetchall() == [(1, 2.0)]
        np.testing.assert_array_equal(stored(db, "C"), [0, 2])


class TestErrors:
    @pytest.mark.parametrize(
        ("program", "options", "state", "message", "hint"),
        [
            ("C[i, k] = sum(A[i, j] * B[j, k]", {}, "42601", "line 1, column 32: the program ends here", None),
            ("C[i] = Z[i]", {}, "42P01", "there is no tensor Z in this database", "known are A, B"),
            ("C[i] = A[i, i]", {}, "22023", "label i", None),
            (PRODUCT, {"optimizer": "best"}, "54000", "there is no optimizer 'best'", "choose one of dp, "),
            (PRODUCT, {"tiles": "many"}, "54000", "tiles many are neither 'auto' nor whole numbers", None),
            (PRODUCT, {"memory_limit": "lots"}, "54000", "memory_limit: 'lots' is no size", "write it as in 4GB"),
            (PRODUCT, {"outputs": ["Y"]}, "54000", "the program computes no Y", "it computes C"),
            ("C[i] = sum(sqrt(A[i, j] - 9))", {}, "22023", "C turned NaN or infinite", None),
        ],
    )
    def test_have_sqlstate_message_and_hint(
        self,
        db: se.Database,
        shell: psycopg.Connection,
        program: str,
        options: dict[str, object],
        state: str,
        message: str,
        hint: str | None,
    ) -> None:
        before = contents(db)
        with pytest.raises(psycopg.Error) as caught:
            einsum_into(shell, program, **options)
        diagnostics = caught.value.diag
        assert diagnostics.sqlstate == state
        assert message in (diagnostics.message_primary or "")
        assert (diagnostics.message_hint or "").startswith(hint or "")
        assert "Traceback" not in str(caught.value) + (diagnostics.context or "")
        assert contents(db) == before

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            ("einsum_into(NULL)", "the argument program of einsum_into is NULL"),
            ("tensor_from_table('E', 'a', NULL)", "the argument index_columns of tensor_from_table is NULL"),
            ("tensor_from_table('E', 'a', '{NULL}')", "index_columns of tensor_from_table must be a plain list"),
            ("tensor_from_table('E', 'a', '{{dim_0}}')", "index_columns of tensor_from_table must be a plain list"),
            ("tensor_from_table('E', 'a', '{nothing}')", "a has no column nothing"),
            ("tensor_from_table('E', 'a', '{dim_0}', 'val', '{-1}')", "has the bound -1"),
            ("tensor_from_table('E', 'a', '{dim_0}', 'val', fill => 'NaN')", "the fill NaN"),
            ("tensor_from_table('', 'a', '{dim_0}', 'val')", "no program could name it"),
            ("tensor_from_table('E', 'nothing', '{i}')", 'relation "nothing" does not exist'),
            ("einsum_into('C[i] = sum(A[i, j])', pin => '[1]')", "pin must name labels of results"),
            ("einsum_into('C[i] = sum(A[i, j])', pin => '{\"C\": [1]}')", "pin must name labels of results"),
            ('einsum_into(\'C[i] = sum(A[i, j])\', pin => \'{"C": {"i": "a"}}\')', "a tile is a whole number"),
            ("einsum_into('C[i] = sum(A[i, j])', outputs => '{NULL}')", "outputs of einsum_into must be a plain list"),
            ("einsum_into('C[i] = ' || repeat('(', 3000) || 'A[i, i]' || repeat(')', 3000))", ""),
            ("einsum_sql('C[i] = sum(A[i, j])', style => 'x')", "style 'x' is neither 'cte' nor 'staged'"),
            ("explain('')", ""),
        ],
    )
    def test_invalid_arguments(self, db: se.Database, shell: psycopg.Connection, call: str, message: str) -> None:
        with pytest.raises(psycopg.Error) as caught:
            shell.execute(f"SELECT sparseeinsum.{call}")
        assert message in str(caught.value)
        assert "Traceback" not in (caught.value.diag.context or "")
        assert shell.execute("SELECT 1").fetchone() == (1,)

    def test_rows_that_are_no_tensor(self, shell: psycopg.Connection) -> None:
        shell.execute("CREATE TABLE edges AS SELECT 0 AS i, NULL::float8 AS v")
        with pytest.raises(errors.DataException, match=r"row 0 \(counted from 0\): the value v is NULL"):
            shell.execute("SELECT sparseeinsum.tensor_from_table('E', 'edges', '{i}', 'v')")
        shell.execute("UPDATE edges SET v = 1")
        shell.execute("SELECT sparseeinsum.tensor_from_table('E', 'edges', '{i}', 'v')")
        shell.execute("INSERT INTO edges VALUES (0, 2)")
        with pytest.raises(errors.DataException, match=r"coordinate \(0\) stands in an earlier row"):
            einsum_into(shell, "C[] = sum(E[i])")

    def test_a_statement_that_is_cancelled_leaves_nothing(self, shell: psycopg.Connection) -> None:
        db = se.connect(shell)
        db.tensor("A", np.ones((500, 500)), promoted=["dim_0", "dim_1"])
        before = contents(db)
        with cancelled(shell), pytest.raises(errors.QueryCanceled, match="due to user request"):
            einsum_into(shell, "C[i, k] = sum(A[i, j] * A[j, k])", optimizer="relational")
        assert contents(db) == before
        einsum_into(shell, "C[] = sum(A[i, j])")
        np.testing.assert_array_equal(stored(db, "C"), 250_000)


class TestTransactions:
    def test_rollback_removes_the_result(self, db: se.Database, shell: psycopg.Connection) -> None:
        before = contents(db)
        shell.execute("BEGIN")
        einsum_into(shell, PRODUCT)
        shell.execute("SAVEPOINT kept")
        with pytest.raises(errors.DuplicateTable):
            einsum_into(shell, PRODUCT)
        shell.execute("ROLLBACK TO kept")
        einsum_into(shell, "D[i] = sum(C[i, k])")
        assert len(shell.execute("SELECT * FROM d").fetchall()) == 2
        shell.execute("ROLLBACK")
        assert contents(db) == before

    def test_uncommitted_changes_are_seen(self, shell: psycopg.Connection) -> None:
        with shell.transaction():
            shell.execute("CREATE TEMPORARY TABLE edges AS SELECT i, i * 2.0::float8 AS v FROM generate_series(0, 2) i")
            shell.execute("SELECT sparseeinsum.tensor_from_table('E', 'edges', '{i}', 'v')")
            einsum_into(shell, "C[] = sum(E[i])")
            assert shell.execute("SELECT val FROM c").fetchall() == [(6.0,)]
            shell.execute("DROP TABLE edges; DELETE FROM sparseeinsum.tensors WHERE name = 'E'")

    def test_results_go_where_the_search_path_says(self, db: se.Database, shell: psycopg.Connection) -> None:
        shell.execute("CREATE SCHEMA other; SET search_path = other, main, public")
        assert einsum_into(shell, PRODUCT)[0][1] == "c"
        assert shell.execute("SELECT COUNT(*) FROM other.c").fetchall() == [(4,)]
        shell.execute("SET search_path = main, public")
        assert db.tensors()["C"].relation == "other.c"
        einsum_into(shell, "D[i] = sum(C[i, k])")
        np.testing.assert_allclose(stored(db, "D"), (A @ B).sum(axis=1))
        einsum_into(shell, PRODUCT, replace=True)
        assert db.tensors()["C"].relation == "main.c"
        assert shell.execute("SELECT to_regclass('other.c')").fetchall() == [(None,)]
        shell.execute("SET search_path = nowhere, public")
        shell.execute("SET search_path = nowhere")
        with pytest.raises(errors.ObjectNotInPrerequisiteState, match="no schema on the search_path exists"):
            einsum_into(shell, PRODUCT, replace=True)


class TestRights:
    @pytest.fixture
    def analyst(self, db: se.Database, shell: psycopg.Connection) -> Iterator[psycopg.Connection]:
        """The session, as a role without superuser rights."""
        shell.execute("CREATE ROLE analyst; GRANT USAGE, CREATE ON SCHEMA main TO analyst; SET ROLE analyst")
        yield shell
        shell.execute("RESET ROLE; DROP SCHEMA main CASCADE; DROP OWNED BY analyst; DROP ROLE analyst")

    def test_are_those_of_the_caller(self, db: se.Database, analyst: psycopg.Connection) -> None:
        with pytest.raises(errors.InsufficientPrivilege, match="schema sparseeinsum"):
            einsum_into(analyst, PRODUCT)
        analyst.execute("RESET ROLE; GRANT USAGE ON SCHEMA sparseeinsum TO analyst; SET ROLE analyst")
        with pytest.raises(errors.InsufficientPrivilege, match="permission denied for table tensors"):
            einsum_into(analyst, PRODUCT)
        analyst.execute("RESET ROLE; GRANT SELECT ON sparseeinsum.tensors TO analyst; SET ROLE analyst")
        ((text,),) = analyst.execute("SELECT sparseeinsum.einsum_sql(%s)", (PRODUCT,)).fetchall()
        with pytest.raises(errors.InsufficientPrivilege, match="permission denied for table a"):
            analyst.execute(text)
        analyst.execute("RESET ROLE; GRANT SELECT ON a, b TO analyst; SET ROLE analyst")
        assert len(analyst.execute(text).fetchall()) == 4
        with pytest.raises(errors.ObjectNotInPrerequisiteState, match="others may write to tensor A while it is read"):
            einsum_into(analyst, PRODUCT)
        analyst.execute("SET default_transaction_isolation = 'repeatable read'")
        with pytest.raises(errors.InsufficientPrivilege, match="permission denied for table tensors"):
            einsum_into(analyst, PRODUCT)
        analyst.execute("RESET ROLE; GRANT INSERT, DELETE ON sparseeinsum.tensors TO analyst; SET ROLE analyst")
        einsum_into(analyst, PRODUCT)
        np.testing.assert_allclose(stored(db, "C"), A @ B)
        owner = "SELECT tableowner FROM pg_tables WHERE tablename = 'c'"
        assert analyst.execute(owner).fetchall() == [("analyst",)]

    def test_files_are_refused(self, shell: psycopg.Connection) -> None:
        request = json.dumps({"name": "E", "relation": "/etc/passwd.csv", "index_columns": []})
        with pytest.raises(errors.UndefinedTable, match="PostgreSQL reads no files"):
            shell.execute("SELECT sparseeinsum.python_result('tensor_from_table', %s)", (request,))


class TestTexts:
    def test_sql_gives_the_result(self, db: se.Database, shell: psycopg.Connection) -> None:
        for style in ("cte", "staged"):
            query = "SELECT sparseeinsum.einsum_sql(%s, style => %s)"
            ((text,),) = shell.execute(query, (PRODUCT, style)).fetchall()
            product = np.zeros((2, 2))
            for i, k, value in shell.execute(text).fetchall():
                product[i, k] = value
            np.testing.assert_allclose(product, A @ B)

    def test_explain(self, db: se.Database, shell: psycopg.Connection) -> None:
        query = "SELECT * FROM sparseeinsum.explain(%s, optimizer => 'relational', run => %s)"
        for runs in (False, True):
            text = "\n".join(line for (line,) in shell.execute(query, (PRODUCT, runs)).fetchall())
            assert "C[I, K] = sum(A[I, J] * B[J, K])" in text
            assert ("actual" in text) == runs

    @pytest.mark.parametrize("program", [PRODUCT, "C[i] = any(A[i, j] > 1)", "C[] = max(A[i, j])"])
    @pytest.mark.parametrize("optimizer", ["relational", "dense"])
    def test_explain_runs_whatever_the_layout(
        self, db: se.Database, shell: psycopg.Connection, program: str, optimizer: str
    ) -> None:
        query = "SELECT * FROM sparseeinsum.explain(%s, optimizer => %s, layout => 'any', run => true)"
        assert "actual" in str(shell.execute(query, (program, optimizer)).fetchall())

    def test_every_function_is_explained(self, shell: psycopg.Connection) -> None:
        query = """
            SELECT p.proname, obj_description(p.oid, 'pg_proc') FROM pg_proc AS p
            JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE n.nspname = 'sparseeinsum'"""
        comments: dict[str, str] = dict(shell.execute(query).fetchall())
        assert {"einsum", "einsum_into", "einsum_sql", "explain", "tensor_from_table"} < set(comments)
        for name, comment in comments.items():
            assert comment.startswith(("Part of", "Internal: ")) or f"sparseeinsum.{name}(" in comment

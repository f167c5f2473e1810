"""`einsum()` and its companions run programs in the SQL of any DuckDB connection."""

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.kernels.array_functions import array_functions

A = sp.random_array((30, 20), density=0.2, rng=np.random.default_rng(0)).toarray()
B = np.random.default_rng(1).normal(size=(20, 4))
PRODUCT = "Y[i, k] = sum(A[i, j] * B[j, k])"
HIDDEN = "which sees neither temporary tables nor uncommitted changes"


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        database = se.connect(connection)
        database.tensor("A", sp.coo_array(A))
        database.tensor("B", B)
        yield connection


def dense(connection: duckdb.DuckDBPyConnection, query: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    result = np.zeros(shape)
    *indices, values = connection.execute(query).fetchnumpy().values()
    result[tuple(indices)] = values
    return result


def error_of(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    with pytest.raises(duckdb.Error) as caught:
        connection.execute(query)
    return str(caught.value)


@pytest.mark.parametrize("optimizer", ["dp", "relational", "dense"])
def test_einsum_is_a_table(connection: duckdb.DuckDBPyConnection, optimizer: str) -> None:
    result = dense(connection, f"FROM einsum('{PRODUCT}', optimizer := '{optimizer}')", (30, 4))
    np.testing.assert_allclose(result, A @ B, rtol=1e-12)


def test_einsum_within_larger_queries(connection: duckdb.DuckDBPyConnection) -> None:
    query = """
        SELECT r.i, r.val + c.val FROM einsum('R[i] = sum(A[i, j])') AS r
        JOIN einsum('C[j] = sum(A[i, j])', tiles := [4]) AS c ON r.i = c.j
    """
    result = dense(connection, query, (30,))[:20]
    has_both = (A[:20] != 0).any(1) & (A != 0).any(0)
    np.testing.assert_allclose(result, np.where(has_both, A.sum(1)[:20] + A.sum(0), 0), rtol=1e-12)
    connection.execute(f"CREATE TABLE scores AS FROM einsum('{PRODUCT}')")
    np.testing.assert_allclose(dense(connection, "FROM scores", (30, 4)), A @ B, rtol=1e-12)


def test_views_and_prepared_statements_plan_again(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE VIEW sums AS FROM einsum('R[j] = sum(A[i, j])')")
    connection.execute("PREPARE prepared AS FROM einsum('R[j] = sum(A[i, j])')")
    for factor in (1, 2):
        for query in ("FROM sums", "EXECUTE prepared"):
            np.testing.assert_allclose(dense(connection, query, (20,)), factor * A.sum(0), rtol=1e-12)
        connection.execute("UPDATE A SET val = 2 * val")


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex128"])
def test_dtypes(connection: duckdb.DuckDBPyConnection, dtype: str) -> None:
    values = np.array([[1, 0, 2], [0, 0, 3]], dtype)
    se.connect(connection).tensor("V", values)
    aggregate = "any" if dtype == "bool" else "sum"
    rows = connection.execute(f"FROM einsum('R[j] = {aggregate}(V[i, j])') ORDER BY j").fetchall()
    expected = values.any(axis=0) if dtype == "bool" else values.sum(axis=0)
    value_by_index = dict.fromkeys(range(3), expected.dtype.type(0).item())
    value_by_index |= {j: complex(*value) if isinstance(value, list) else value for j, value in rows}
    assert list(value_by_index.values()) == expected.tolist()


def test_functions_of_users_and_files(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    @se.function
    def halved(x: float) -> float:
        return x / 2

    assert halved(1.0) == 0.5
    connection.execute(f"COPY (SELECT 1 AS i, 3.0 AS w) TO '{tmp_path}/v.parquet'")
    connection.execute(f"CALL tensor_from_table('V', '{tmp_path}/v.parquet', ['i'], 'w')")
    assert connection.execute("FROM einsum('S[] = sum(halved(V[i]))')").fetchall() == [(1.5,)]


def test_memory_limit_of_the_database_stays(connection: duckdb.DuckDBPyConnection) -> None:
    (before,) = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    np.testing.assert_allclose(
        dense(connection, f"FROM einsum('{PRODUCT}', memory_limit := '100MB')", (30, 4)), A @ B, rtol=1e-12
    )
    assert connection.execute("SELECT current_setting('memory_limit')").fetchall() == [before]


def test_programs_as_parameters(connection: duckdb.DuckDBPyConnection) -> None:
    ((total,),) = connection.execute("SELECT val FROM einsum(?)", ["S[] = sum(A[i, j])"]).fetchall()
    assert total == pytest.approx(A.sum())


def test_sql_and_explanation(connection: duckdb.DuckDBPyConnection) -> None:
    database = se.connect(connection)
    ((text,),) = connection.execute(f"SELECT einsum_sql('{PRODUCT}')").fetchall()
    assert text == database.plan(PRODUCT).sql()
    np.testing.assert_allclose(dense(connection, text, (30, 4)), A @ B, rtol=1e-12)
    ((text,),) = connection.execute(f"SELECT einsum_explain('{PRODUCT}')").fetchall()
    assert "EinSums (labels in upper case are handled by the database)" in text


def test_statements_are_computed_as_written_where_asked(connection: duckdb.DuckDBPyConnection) -> None:
    square = np.random.default_rng(2).normal(size=(600, 600))
    database = se.connect(connection)
    database.tensor("S", square)
    database.tensor("x", square[0])
    program = "T[i, k] = sum(S[i, j] * S[j, k])\nY[i] = sum(T[i, k] * x[k])"
    for rewrite in ("true", "false"):
        result = dense(connection, f"FROM einsum('{program}', rewrite := {rewrite})", (600,))
        np.testing.assert_allclose(result, square @ square @ square[0], rtol=1e-9, atol=1e-6)
        ((explanation,),) = connection.execute(f"SELECT einsum_explain('{program}', rewrite := {rewrite})").fetchall()
        assert ("without T" in explanation) == (rewrite == "true")


def test_tensor_from_table(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        "CREATE TABLE edges AS SELECT i % 5 AS src, i % 7 AS dst, 0.5::DOUBLE AS w FROM range(35) AS t(i)"
    )
    call = (
        "CALL tensor_from_table('E', 'edges', ['src', 'dst'], 'w', shape := [5, 8], axes := ['s', 'd'], fill := 'inf')"
    )
    assert connection.execute(call).fetchall() == [("tensor E[s: 5, d: 8] fill inf dtype float64",)]
    assert se.connect(connection).tensors()["E"].tensor.fill == np.inf
    assert connection.execute("SELECT MAX(val) FROM einsum('L[s] = min(E[s, d])')").fetchall() == [(0.5,)]
    counted = connection.execute("FROM tensor_from_table('N', 'edges', ['src', 'dst'], fill => 0)").fetchall()
    assert counted == [("tensor N[src: 5, dst: 7] fill 0.0 dtype float64",)]
    assert "has no column weight" in error_of(connection, "CALL tensor_from_table('E', 'edges', ['src'], 'weight')")
    assert "the fill no is not a number" in error_of(
        connection, "CALL tensor_from_table('E', 'edges', ['src'], fill := 'no')"
    )


def test_the_current_database_and_schema_count(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    connection.execute("CREATE SCHEMA graphs; USE graphs; CREATE TABLE links AS SELECT 1 AS src, 2 AS dst, 7 AS w")
    connection.execute("CALL tensor_from_table('L', 'links', ['src', 'dst'], 'w')")
    assert connection.execute("FROM einsum('S[] = sum(L[i, j])')").fetchall() == [(7,)]
    connection.execute(f'ATTACH \'{tmp_path}/other.duckdb\' AS "an other"; USE "an other"')
    assert "there is no tensor A in this database; there are none" in error_of(connection, f"FROM einsum('{PRODUCT}')")
    connection.execute(
        "CREATE TABLE edges AS SELECT 3 AS src, 4 AS w; CALL tensor_from_table('A', 'edges', ['src'], 'w')"
    )
    assert connection.execute("FROM einsum('S[] = sum(A[i])')").fetchall() == [(4,)]


def test_open_transactions(connection: duckdb.DuckDBPyConnection) -> None:
    """Plans are made for committed data; if the session sees other data, the call fails."""
    query = "SELECT SUM(val) FROM einsum('R[j] = sum(A[i, j])')"
    connection.execute("BEGIN")
    ((total,),) = connection.execute(query).fetchall()
    assert total == pytest.approx(A.sum())
    connection.execute("DELETE FROM A WHERE dim_0 = 0")
    assert "the rows of tensor A are other ones in this transaction than those that others see" in error_of(
        connection, query
    )
    connection.rollback()
    connection.execute("BEGIN; UPDATE sparseeinsum.tensors SET fill = '1.0' WHERE name = 'A'")
    assert "the definitions of tensors (A) are other ones in this transaction" in error_of(connection, query)
    connection.rollback()
    connection.execute("BEGIN; DELETE FROM A")
    assert "the rows of tensor A are other ones" in error_of(connection, "FROM einsum('R[j] = sum(A[i, j])')")
    connection.rollback()
    assert connection.execute(query).fetchall() == [(total,)]


def test_commits_of_others_after_the_transaction_began(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("BEGIN; SELECT COUNT(*) FROM A")
    with connection.cursor() as other:
        other.execute("UPDATE A SET val = 0")
    assert "the rows of tensor A are other ones" in error_of(connection, f"FROM einsum('{PRODUCT}')")


def test_temporary_tables(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TEMP TABLE T AS SELECT 0 AS i, 1.0 AS val")
    assert HIDDEN in error_of(connection, "FROM einsum('Y[] = sum(T[i])')")
    connection.execute("CREATE TEMP TABLE A AS SELECT 0 AS dim_0, 0 AS dim_1, 1.0::DOUBLE AS val")
    ((total,),) = connection.execute("SELECT SUM(val) FROM main.A").fetchall()
    if total == 1:  # the temporary table is what main.A means
        assert "the rows of tensor A are other ones" in error_of(connection, "FROM einsum('Y[] = sum(A[i, j])')")
    else:
        assert connection.execute("FROM einsum('Y[] = sum(A[i, j])')").fetchall() == [(pytest.approx(A.sum()),)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("FROM einsum('Y[i] = sum(A[i, j)')", "line 1, column 18"),
        ("FROM einsum('Y[i] = sum(Q[i, j])')", "there is no tensor Q in this database; known are A, B (SQL functions"),
        ("FROM einsum('Y[i] = sum(A[i, j]); Z[j] = sum(A[i, j])')", "name it, as in output := 'Y'"),
        ("FROM einsum('Y[i] = sum(A[i, j])', output := 'Z')", "the program computes no Z"),
        ("FROM einsum('Y[i] = sum(A[i, j])', optimizer := 'best')", "there is no optimizer 'best'"),
        ("FROM einsum('Y[i] = sum(A[i, j])', tiles := 'many')", "tiles many are neither 'auto' nor whole numbers"),
        ("FROM einsum('Y[i] = sum(A[i, j])', memory_limit := 'much')", "'much' is no size"),
        ("FROM einsum('Y[i] = sum(A[i, j])', rewrite := 'maybe')", "rewrite maybe is neither true nor false"),
        ("FROM einsum('Y[i] = sum(A[i, j])', nonfinite := 'x')", "neither 'error' nor 'allow'"),
        ("FROM einsum(NULL)", "the program is NULL"),
        ("FROM einsum('Y[i] = log(0 * B[i, k])')", "Y"),
        ("FROM einsum()", "einsum(program VARCHAR, output VARCHAR"),
    ],
)
def test_errors(connection: duckdb.DuckDBPyConnection, query: str, message: str) -> None:
    assert message in error_of(connection, query)
    assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_output(connection: duckdb.DuckDBPyConnection) -> None:
    program = "T[i, k] = sum(A[i, j] * B[j, k]); Y[i] = sum(T[i, k])"
    np.testing.assert_allclose(dense(connection, f"FROM einsum('{program}', 'T')", (30, 4)), A @ B, rtol=1e-12)


def test_many_databases_and_threads() -> None:
    """Each database answers for its own data in every thread."""
    connections = [duckdb.connect() for _ in range(4)]
    totals: dict[int, object] = {}

    def ask(number: int) -> None:
        with connections[number].cursor() as cursor:
            cursor.execute(f"CREATE TABLE t AS SELECT range AS i, {number} AS val FROM range(10)")
            cursor.execute("CALL tensor_from_table('V', 't', ['i'], 'val')")
            totals[number] = cursor.execute("FROM einsum('S[] = sum(V[i])')").fetchall()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert totals == {number: [(10 * number,)] for number in range(4)}
    for connection in connections:
        connection.close()


def test_a_file_is_free_once_closed(tmp_path: Path) -> None:
    path = str(tmp_path / "graph.duckdb")
    with duckdb.connect(path) as connection:
        se.connect(connection).tensor("v", np.ones(3))
        assert connection.execute("FROM einsum('S[] = sum(v[i])')").fetchall() == [(3.0,)]
    del connection
    gc.collect()
    program = f"import duckdb; print(duckdb.connect({path!r}).execute('SELECT COUNT(*) FROM v').fetchall())"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    assert finished.stdout == "[(1,)]\n"


def test_read_only_files(tmp_path: Path) -> None:
    path = str(tmp_path / "graph.duckdb")
    with duckdb.connect(path) as connection:
        se.connect(connection).tensor("v", np.ones(3))
    with duckdb.connect(path, read_only=True) as connection:
        assert connection.execute("FROM einsum('S[] = sum(v[i])')").fetchall() == [(3.0,)]


def test_functions_are_described(connection: duckdb.DuckDBPyConnection) -> None:
    described = connection.execute(
        "SELECT function_name, parameters[1], LENGTH(description) > 40, examples FROM duckdb_functions() "
        "WHERE function_name LIKE 'einsum%' OR function_name = 'tensor_from_table' ORDER BY ALL"
    ).fetchall()
    assert [row[:3] for row in described] == [
        ("einsum", "program", True),
        ("einsum_explain", "program", True),
        ("einsum_sql", "program", True),
        ("tensor_from_table", "name", True),
    ]
    assert all(len(row[3]) == 1 for row in described)


def test_array_functions_are_described(connection: duckdb.DuckDBPyConnection) -> None:
    query = (
        "SELECT function_name, len(parameters) AS arity, coalesce(description, ''), examples FROM duckdb_functions() "
        "WHERE function_name LIKE 'tensor%' AND function_type = 'scalar'"
    )
    listed = (
        "SELECT DISTINCT name, len(string_split(arguments, ', ')), description, [example] FROM tensor_functions() "
        "WHERE NOT is_aggregate"
    )
    described = connection.execute(f"SELECT DISTINCT * FROM ({query}) ORDER BY ALL").fetchall()
    assert described == connection.execute(f"{listed} ORDER BY ALL").fetchall()
    assert len({name for name, *_ in described}) > 40
    assert all(len(description) > 10 for _, _, description, _ in described)
    ((overloads, distinct),) = connection.execute(
        "SELECT count(*), count(DISTINCT (function_name, parameter_types, return_type)) FROM duckdb_functions() "
        "WHERE function_name LIKE 'tensor%' AND function_type = 'scalar'"
    ).fetchall()
    assert (
        overloads
        == distinct
        == sum(len(function.dtypes) for function in array_functions() if not function.is_aggregate)
    )


def test_array_functions_are_listed(connection: duckdb.DuckDBPyConnection) -> None:
    names = (
        "SELECT function_name FROM duckdb_functions() WHERE function_name LIKE 'tensor%' AND macro_definition IS NULL"
    )
    registered = {name for (name,) in connection.execute(names).fetchall()} - {
        *("tensor_functions", "tensor_no_tuples", "tensor_row_numbers")
    }
    listed = {name for (name,) in connection.execute("SELECT name FROM tensor_functions()").fetchall()}
    assert listed == registered
    signatures = connection.execute(
        "SELECT arguments, returns FROM tensor_functions() WHERE name = 'tensor_slice'"
    ).fetchall()
    assert signatures == [("u tensor, axis integer, position integer, extents integers", "tensor")]

"""Large arrays that several threads compute in slices are those that one thread computes, and errors are the same."""

from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray
from sql_errors import expect_error

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", reason="a process of PostgreSQL has one thread")

Connection = duckdb.DuckDBPyConnection
ROWS, WIDTH = 1031, 521
SIZE = ROWS * WIDTH  # elements of four slices and some more, which end in the middle of rows
THREADS = 4
DTYPES = {"DOUBLE": np.float64, "FLOAT": np.float32, "BIGINT": np.int64}
CALLS = {
    "tensor_add(u, v)": lambda u, v: u + v,
    "tensor_scale(v[1], u)": lambda u, v: v[0] * u,
    "tensor_mul(u, v[2])": lambda u, v: u * v[1],
    "tensor_sub(u[3], v)": lambda u, v: u[2] - v,
    "tensor_map('abs(u) * u', u)": lambda u, v: np.abs(u) * u,
    f"tensor_reduce('sum', 'u * v - u', 'i,i->i', u, v, [{SIZE}])": lambda u, v: u * v - u,
    f"tensor_reduce('sum', 'u - v', 'ij,j->ij', u, v[:{WIDTH}], [{ROWS}, {WIDTH}])": lambda u, v: (
        u.reshape(ROWS, WIDTH) - v[:WIDTH]
    ).ravel(),
    f"tensor_reduce('sum', 'u * v', 'ij,i->ji', u, v[:{ROWS}], [{ROWS}, {WIDTH}])": lambda u, v: (
        u.reshape(ROWS, WIDTH) * v[:ROWS, None]
    ).T.ravel(),
    f"tensor_reduce('max', 'u', 'ij->i', u, [{ROWS}, {WIDTH}])": lambda u, v: u.reshape(ROWS, WIDTH).max(axis=1),
    f"tensor_reduce('sum', 'u - v', 'ij,j->j', u, v[:{WIDTH}], [{ROWS}, {WIDTH}])": lambda u, v: (
        u.reshape(ROWS, WIDTH) - v[:WIDTH]
    ).sum(axis=0),
    f"tensor_reduce('min', 'u * u', 'i->', u, [{SIZE}])": lambda u, v: (u * u).min(keepdims=True),
    f"tensor_reduce('max', 'u', 'ijk->jk', u, [1, {ROWS}, {WIDTH}])": lambda u, v: u,
    f"tensor_einsum('ij->i', u, [{ROWS}, {WIDTH}])": lambda u, v: u.reshape(ROWS, WIDTH).sum(axis=1),
    f"tensor_einsum('ij->j', u, [{ROWS}, {WIDTH}])": lambda u, v: u.reshape(ROWS, WIDTH).sum(axis=0),
    f"tensor_einsum('ij->ji', u, [{ROWS}, {WIDTH}])": lambda u, v: u.reshape(ROWS, WIDTH).T.ravel(),
    f"tensor_einsum('i->', u, [{SIZE}])": lambda u, v: u.sum(keepdims=True),
    f"tensor_einsum(',i->', v[2:2], u, [{SIZE}])": lambda u, v: v[1] * u.sum(keepdims=True),
    f"tensor_einsum('ij,ij->i', u, v, [{ROWS}, {WIDTH}])": lambda u, v: (u * v).reshape(ROWS, WIDTH).sum(axis=1),
    f"tensor_einsum('ij,i->j', u, v[:{ROWS}], [{ROWS}, {WIDTH}])": lambda u, v: v[:ROWS] @ u.reshape(ROWS, WIDTH),
    f"tensor_einsum('ij,kj->ik', u, v, [{ROWS}, {WIDTH}, {ROWS}])": lambda u, v: (
        u.reshape(ROWS, WIDTH) @ v.reshape(ROWS, WIDTH).T
    ).ravel(),
    f"tensor_matmul(u, v[:{7 * WIDTH}], [{ROWS}, {WIDTH}, 7])": lambda u, v: (
        u.reshape(ROWS, WIDTH) @ v[: 7 * WIDTH].reshape(WIDTH, 7)
    ).ravel(),
    f"tensor_einsum('bij,bjk->bik', u[:{9 * 500 * 80}], v[:{9 * 80 * 70}], [9, 500, 80, 70])": lambda u, v: (
        u[: 9 * 500 * 80].reshape(9, 500, 80) @ v[: 9 * 80 * 70].reshape(9, 80, 70)
    ).ravel(),
    f"tensor_einsum('bij,jbk->kib', u[:{130 * 50 * 60}], v[:{130 * 60 * 40}], [130, 50, 60, 40])": lambda u, v: (
        np.einsum(
            "bij,jbk->kib", u[: 130 * 50 * 60].reshape(130, 50, 60), v[: 130 * 60 * 40].reshape(60, 130, 40)
        ).ravel()
    ),
}


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with se.connect() as database:
        rng = np.random.default_rng(5)
        u, v = (rng.integers(-50, 50, SIZE).astype(float) for _ in range(2))
        database.connection.execute("CREATE TABLE numbers AS SELECT * FROM (SELECT ? AS u, ? AS v)", [u, v])
        database.connection.execute(f"SET threads = {THREADS}")
        yield database.connection


def operands(connection: Connection, sql_type: str) -> tuple[NDArray[Any], NDArray[Any]]:
    u, v = connection.execute("SELECT u, v FROM numbers").fetchnumpy().values()
    return np.asarray(u[0]).astype(DTYPES[sql_type]), np.asarray(v[0]).astype(DTYPES[sql_type])


def result(connection: Connection, call: str, sql_type: str) -> NDArray[Any]:
    source = f"(SELECT u::{sql_type}[] AS u, v::{sql_type}[] AS v FROM numbers)"
    (array,) = connection.execute(f"SELECT {call} AS val FROM {source}").fetchnumpy()["val"]
    return np.asarray(array)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("sql_type", DTYPES)
def test_results_are_numpys(connection: Connection, call: str, sql_type: str) -> None:
    expected = CALLS[call](*operands(connection, sql_type))
    np.testing.assert_array_equal(result(connection, call, sql_type), expected)


@pytest.mark.parametrize("function", ["tensor_sparse_matmul", "tensor_sparse_matmul_transposed"])
@pytest.mark.parametrize("width", [1, 7, WIDTH])
def test_sparse_products_are_numpys(connection: Connection, function: str, width: int) -> None:
    """Most entries are in few rows; and there are more products than a thread computes alone, even of narrow rows."""
    entries = (
        f"SELECT n * n % {ROWS} // (1 + n % 3) AS i, n * 7919 % {ROWS} AS j, n % 5 - 2 AS x FROM range(300000) AS t(n)"
    )
    i, j, x = connection.execute(entries).fetchnumpy().values()
    u, _ = operands(connection, "DOUBLE")
    matrix, array = np.zeros((ROWS, ROWS)), u[: ROWS * width].reshape(ROWS, width)
    np.add.at(matrix, (i, j), x)
    expected = (matrix.T if function.endswith("transposed") else matrix) @ array
    handle = f"(SELECT tensor_compressed(x::DOUBLE, i, j, {ROWS}) FROM ({entries}))"
    call = f"{function}({handle}, {ROWS}, u[:{ROWS * width}], {width})"
    np.testing.assert_array_equal(result(connection, call, "DOUBLE"), expected.ravel())


@pytest.mark.parametrize("is_shared", [False, True])
def test_matrix_products_of_a_batch_are_numpys(connection: Connection, is_shared: bool) -> None:
    """Rows that share an operand are one matrix product; threads take parts of other rows."""
    count, m, n, k = 40, 60, 70, 80
    u, v = operands(connection, "DOUBLE")
    left, right = u[: count * m * n].reshape(count, m, n), v[: count * n * k].reshape(count, n, k)
    right = np.broadcast_to(right[0], right.shape) if is_shared else right
    stored = "SELECT unnest(range(?)) AS i, unnest(?::DOUBLE[][]) AS u, unnest(?::DOUBLE[][]) AS v"
    lists = [count, left.reshape(count, -1).tolist(), right.reshape(count, -1).tolist()]
    connection.execute(f"CREATE OR REPLACE TEMP TABLE stored AS {stored}", lists)
    operand = "one.v" if is_shared else "stored.v"
    source = "stored CROSS JOIN (SELECT v FROM stored WHERE i = 0) AS one"
    query = f"SELECT tensor_matmul(stored.u, {operand}, [{m}, {n}, {k}]) AS val FROM {source} ORDER BY i"
    results = connection.execute(query).fetchnumpy()["val"]
    np.testing.assert_array_equal(np.stack(list(results)).reshape(count, m, k), left @ right)


@pytest.mark.parametrize(
    "call",
    ["tensor_map('abs(u) * u', val)", f"tensor_reduce('sum', 'u * v', 'i,->i', val, [number], [{WIDTH}])"],
)
def test_rows_of_a_batch_are_shared(connection: Connection, call: str) -> None:
    """Threads take parts of the rows of a chunk, whose arrays follow each other."""
    u, v = operands(connection, "DOUBLE")
    rows, numbers = u.reshape(ROWS, WIDTH), v[:ROWS]
    stored = "SELECT unnest(range(?)) AS i, unnest(?::DOUBLE[][]) AS val, unnest(?::DOUBLE[]) AS number"
    connection.execute(f"CREATE OR REPLACE TEMP TABLE stored AS {stored}", [ROWS, rows.tolist(), numbers.tolist()])
    results = connection.execute(f"SELECT {call} AS val FROM stored ORDER BY i").fetchnumpy()["val"]
    expected = np.abs(rows) * rows if "map" in call else rows * numbers[:, None]
    np.testing.assert_array_equal(np.stack(list(results)), expected)


def test_an_error_in_any_slice_is_reported(connection: Connection) -> None:
    """The check names the tensor, whichever thread meets the infinity."""
    for place in (1, SIZE // 2, SIZE):
        array = f"list_concat(list_append(u[:{place - 1}], 'inf'::DOUBLE), u[{place + 1}:])"
        expect_error(connection, f"SELECT tensor_finite('next_W', {array}, 0::DOUBLE) FROM numbers", "next_W")
    (checked,) = connection.execute("SELECT tensor_finite('next_W', u, 0::DOUBLE) AS u FROM numbers").fetchnumpy()["u"]
    np.testing.assert_array_equal(checked, operands(connection, "DOUBLE")[0])

"""Functions and aggregates accept extents that differ from row to row, as those of tiles do."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from sql_rows import ROWS, Array, Connection

import sparseeinsum as se

pytestmark = pytest.mark.engines("duckdb", reason="calls in DuckDB's SQL, of kernels that PostgreSQL has, too")

ELEMENTS = {"float64": "DOUBLE", "int64": "BIGINT", "complex128": "DOUBLE"}

# The extent of one label, by the number of the row: 4, or that of a shorter tile.
PATTERNS: dict[str, Callable[[Array], Array]] = {
    "every third": lambda i: np.where(i % 3 == 2, 1, 4),
    "the first": lambda i: np.where(i == 0, 3, 4),
    "the last of a chunk": lambda i: np.where(i % 2048 == 2047, 3, 4),
    "one in the second chunk": lambda i: np.where(i == 2300, 0, 4),
    "one after the other": lambda i: np.where(i < 1000, 4, 2),
    "random": lambda i: np.random.default_rng(0).integers(0, 5, len(i)),
}


@dataclass(frozen=True)
class Rows:
    """Arrays u of shape (2, n) and v of shape (n, 2); n differs from row to row."""

    u: list[Array]
    v: list[Array]
    groups: Array
    prefix: str


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> Connection:
    """A connection for the tables of all rows."""
    return shared_db.connection


@pytest.fixture(scope="module", params=PATTERNS)
def extents(request: pytest.FixtureRequest) -> Array:
    pattern: str = request.param
    return PATTERNS[pattern](np.arange(ROWS))


@pytest.fixture(scope="module", params=ELEMENTS)
def rows(request: pytest.FixtureRequest, connection: Connection, extents: Array) -> Rows:
    dtype, rng = request.param, np.random.default_rng(1)
    is_complex, kind = "complex" in dtype, ELEMENTS[dtype]

    def drawn(shape: tuple[int, int]) -> Array:
        values: Array = rng.integers(-9, 10, (2, *shape))
        return np.asarray(values[0] + 1j * values[1] if is_complex else values[0], dtype)

    u, v = [drawn((2, n)) for n in extents], [drawn((n, 2)) for n in extents]
    stored = [[array.ravel().view(array.real.dtype).tolist() for array in arrays] for arrays in (u, v)]
    columns = f"unnest(range({ROWS})) AS i, unnest($1::{kind}[][]) AS u, unnest($2::{kind}[][]) AS v"
    query = f"CREATE OR REPLACE TABLE ragged AS SELECT {columns}, unnest($3::BIGINT[]) AS n"
    connection.execute(query, [*stored, extents.tolist()])
    return Rows(u, v, np.arange(ROWS) % 7, "tensor_complex" if is_complex else "tensor")


def fetch(connection: Connection, rows: Rows, call: str, tail: str = "ORDER BY i") -> list[Array]:
    """Results of a call; in it, `tensor` stands for the prefix of the functions' names."""
    records = connection.execute(f"SELECT {call.replace('tensor', rows.prefix)} FROM ragged {tail}").fetchall()
    dtype = rows.u[0].dtype
    return [np.array(value, dtype.type(0).real.dtype).view(dtype) for (value,) in records]


# Functions of u and v, by row.
SCALARS: dict[str, Callable[[Array, Array], Array]] = {
    "tensor_einsum('ij,jk->ik', u, v, [2, n, 2])": lambda u, v: u @ v,
    "tensor_einsum('ij,ki->jk', u, v, [2, n, n])": lambda u, v: np.einsum("ij,ki->jk", u, v),
    "tensor_einsum('ij->ji', u, [2, n])": lambda u, v: u.T,
    "tensor_einsum('ij->i', u, [2, n])": lambda u, v: u.sum(axis=1),
    "tensor_matmul(u, v, [2, n, 2])": lambda u, v: u @ v,
    "tensor_matmul(v, u, [n, 2, n])": lambda u, v: v @ u,
    "tensor_reduce('sum', 'u + v', 'ij,ji->i', u, v, [2, n])": lambda u, v: (u + v.T).sum(axis=1),
    "tensor_reduce('prod', 'u * v', 'ij,jk->jk', u, v, [2, n, 2])": lambda u, v: (u[:, :, None] * v).prod(axis=0),
    "tensor_reduce('prod', '1 + u', 'ij->i', u, [2, n])": lambda u, v: (1 + u).prod(axis=1),
    "tensor_map('1 + u', u)": lambda u, v: 1 + u,
}

# Aggregates of groups, with the result of one row.
SUMS: dict[str, Callable[[Array, Array], Array]] = {
    "tensor_einsum_sum('ij,jk->ik', u, v, [2, n, 2])": lambda u, v: u @ v,
    "tensor_einsum_sum('ij,jk->ki', u, v, [2, n, 2])": lambda u, v: (u @ v).T,
    "tensor_einsum_sum('ij,ji->', u, v, [2, n])": lambda u, v: np.einsum("ij,ji->", u, v),
    "tensor_sum(tensor_matmul(u, v, [2, n, 2]))": lambda u, v: u @ v,
    "tensor_sum(tensor_reduce('sum', 'u - v', 'ij,ji->i', u, v, [2, n]))": lambda u, v: (u - v.T).sum(axis=1),
}


@pytest.mark.parametrize("call", SCALARS)
def test_results_by_row(connection: Connection, rows: Rows, call: str) -> None:
    expected = [SCALARS[call](u, v) for u, v in zip(rows.u, rows.v, strict=True)]
    for actual, result in zip(fetch(connection, rows, call), expected, strict=True):
        np.testing.assert_array_equal(actual, result.ravel())


@pytest.mark.parametrize("call", SUMS)
def test_results_by_group(on_four_threads: Connection, rows: Rows, call: str) -> None:
    results = np.array([SUMS[call](u, v) for u, v in zip(rows.u, rows.v, strict=True)])
    for actual, group in zip(
        fetch(on_four_threads, rows, call, "GROUP BY i % 7 ORDER BY i % 7"), np.unique(rows.groups), strict=True
    ):
        np.testing.assert_array_equal(actual, results[rows.groups == group].sum(axis=0).ravel())
    (actual,) = fetch(on_four_threads, rows, call, "")
    np.testing.assert_array_equal(actual, results.sum(axis=0).ravel())


def test_fill_by_row(connection: Connection, rows: Rows, extents: Array) -> None:
    value = "[i, 1]::DOUBLE[]" if rows.prefix == "tensor_complex" else f"i::{ELEMENTS[rows.u[0].dtype.name]}"
    filled_arrays = fetch(connection, rows, f"tensor_fill(n, {value})")
    imaginary = 1j if rows.prefix == "tensor_complex" else 0
    assert [array.tolist() for array in filled_arrays] == [[i + imaginary] * int(n) for i, n in enumerate(extents)]


@pytest.mark.parametrize("aggregate", ["max", "min", "logsumexp"])
def test_ordered_aggregates_by_row(connection: Connection, extents: Array, aggregate: str) -> None:
    """No complex numbers, which have no order; the aggregate of no values is infinite."""
    table = f"(SELECT unnest(range({ROWS})) AS i, unnest($1::BIGINT[]) AS n)"
    call = f"tensor_reduce('{aggregate}', 'u + 1', 'ij->i', tensor_fill(2 * n, i::DOUBLE), [2, n])"
    records = connection.execute(f"SELECT {call} FROM {table} ORDER BY i", [extents.tolist()]).fetchall()
    with np.errstate(divide="ignore"):
        shift = np.log(extents) if aggregate == "logsumexp" else np.zeros(ROWS)
    expected = np.where(extents > 0, np.arange(1, ROWS + 1) + shift, np.inf if aggregate == "min" else -np.inf)
    np.testing.assert_allclose([value for (value,) in records], np.stack([expected] * 2, axis=1), rtol=1e-14)


# The two shapes of arrays of one length, (2, 3) and (3, 2), in every other row.
TWO_SHAPES: dict[str, Callable[[Array], Array]] = {
    "tensor_matmul(u, u, [a, b, a])": lambda u: u @ u.reshape(u.shape[::-1]),
    "tensor_einsum('ij,jk->ki', u, u, [a, b, a])": lambda u: (u @ u.reshape(u.shape[::-1])).T,
    "tensor_einsum('ij->j', u, [a, b])": lambda u: u.sum(axis=0),
    "tensor_einsum_sum('ij,jk->', u, u, [a, b, a])": lambda u: (u @ u.reshape(u.shape[::-1])).sum(),
    "tensor_reduce('max', 'u', 'ij->j', u, [a, b])": lambda u: u.max(axis=0),
}


@pytest.mark.parametrize("call", TWO_SHAPES)
def test_arrays_of_one_length_and_two_shapes(connection: Connection, call: str) -> None:
    """Such arrays have equal distances in memory, as those that are computed in one batch."""
    is_sum = "_sum(" in call
    shaped = "2 + i % 2 AS a, 3 - i % 2 AS b, [i, 1, 2, 3, 4, 5]::DOUBLE[] AS u"
    relation = f"(SELECT i, {shaped} FROM range({ROWS}) AS t(i))"
    records = connection.execute(f"SELECT {call} FROM {relation} {'' if is_sum else 'ORDER BY i'}").fetchall()
    results = [TWO_SHAPES[call](np.array([i, 1.0, 2, 3, 4, 5]).reshape(2 + i % 2, 3 - i % 2)) for i in range(ROWS)]
    if is_sum:
        assert records == [([sum(results)],)]
    else:
        assert [value for (value,) in records] == [result.ravel().tolist() for result in results]

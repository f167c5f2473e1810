"""The functions of udfs/functions.toml, called in SQL as a shell user calls them, against numpy."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import sparseeinsum as se
from sparseeinsum.kernels.catalogue import Function, ValueType, functions

Array = NDArray[Any]
Connection = duckdb.DuckDBPyConnection

ROWS = 2500  # more than one chunk of DuckDB's, which holds 2,048
SQL_TYPES = {"float64": "DOUBLE", "float32": "FLOAT"}
TOLERANCES = {"float64": 1e-12, "float32": 1e-4}
NULL_EVERY = {"u": 5, "v": 7, "s": 3}  # every so many rows of the relation `nulls`, a column is NULL


@dataclass(frozen=True)
class Rows:
    """Columns of a relation: u and v hold (rows, 6), s and i (rows,)."""

    u: Array
    v: Array
    s: Array
    i: Array

    def __getitem__(self, selection: Array) -> "Rows":
        return Rows(self.u[selection], self.v[selection], self.s[selection], self.i[selection])


Oracle = Callable[[Rows], Array]

SCALARS: dict[str, Oracle] = {
    "tensor_add(u, v)": lambda r: r.u + r.v,
    "tensor_sub(u, v)": lambda r: r.u - r.v,
    "tensor_mul(u, v)": lambda r: r.u * r.v,
    "tensor_div(u, v)": lambda r: r.u / r.v,
    "tensor_scale(s, u)": lambda r: r.s[:, None] * r.u,
    "tensor_outer(u, v)": lambda r: np.einsum("ri,rj->rij", r.u, r.v),
    "tensor_dot(u, v)": lambda r: np.einsum("ri,ri->r", r.u, r.v),
    "tensor_norm(u)": lambda r: np.linalg.norm(r.u, axis=1),
    "tensor_nnz(u)": lambda r: np.count_nonzero(r.u, axis=1),
    "tensor_is_finite(tensor_div(u, v))": lambda r: np.asarray(np.isfinite(r.u / r.v).all(axis=1)),
    "tensor_map('relu', u)": lambda r: np.maximum(r.u, 0),
    "tensor_map('exp(u) - 2 * u ^ 2', u)": lambda r: np.exp(r.u) - 2 * r.u**2,
    "tensor_map('tanh', s)": lambda r: np.tanh(r.s),
    "tensor_fill(4, s)": lambda r: np.repeat(r.s[:, None], 4, axis=1),
    "tensor_matmul(u, v, [2, 3, 2])": lambda r: r.u.reshape(-1, 2, 3) @ r.v.reshape(-1, 3, 2),
    "tensor_matmul(u, v, [1, 6, 1])": lambda r: np.einsum("ri,ri->r", r.u, r.v),
    "tensor_einsum('ij,kj->ki', u, v, [2, 3, 2])": lambda r: np.einsum(
        "rij,rkj->rki", r.u.reshape(-1, 2, 3), r.v.reshape(-1, 2, 3)
    ),
    "tensor_einsum('ij->j', u, [2, 3])": lambda r: r.u.reshape(-1, 2, 3).sum(axis=1),
    "tensor_reduce('max', 'abs(u - v)', 'ij,ik->jk', u, v, [2, 3, 3])": lambda r: np.abs(
        r.u.reshape(-1, 2, 3, 1) - r.v.reshape(-1, 2, 1, 3)
    ).max(axis=1),
    "tensor_reduce('prod', '1 + u', 'ij->i', u, [2, 3])": lambda r: (1 + r.u.reshape(-1, 2, 3)).prod(axis=2),
    "tensor_slice(u, 1, i % 3, [2, 3])": lambda r: np.take_along_axis(
        r.u.reshape(-1, 2, 3), (r.i % 3)[:, None, None], axis=2
    ),
    "tensor_split(u, [1], [2, 3])": lambda r: r.u.reshape(-1, 2, 3).transpose(0, 2, 1),
}

# What rows may come from, so that DuckDB hands over vectors of every kind.
SOURCES = {
    "table": "{t}",
    "filter": "(SELECT * FROM {t} WHERE i % 3 = 1)",
    "join": "(SELECT a.i, a.u, b.v, b.s FROM {t} AS a JOIN {t} AS b ON b.i < 7 AND b.i = a.i % 7)",
    "cross join": "(SELECT a.i, b.u, a.v, a.s FROM {t} AS a CROSS JOIN (SELECT u FROM {t} WHERE i = 5) AS b)",
    "literal": "(SELECT i, u, [1.5, -2.0, 0.0, 4.0, 0.5, 3.0]::{type}[] AS v, 2.5::{type} AS s FROM {t})",
    "constants": "(SELECT 4::BIGINT AS i, [1.5, -2.0, 0.0, 4.0, 0.5, 3.0]::{type}[] AS u, "
    "[2, 1, 3, 4, 5, 6]::{type}[] AS v, 2.5::{type} AS s FROM range(2500))",
    "case": "(SELECT i, CASE WHEN i % 2 = 0 THEN u ELSE v END AS u, CASE i % 3 WHEN 0 THEN u ELSE v END AS v, s "
    "FROM {t})",
    "list functions": "(SELECT i, list_reverse(u) AS u, v[4:6] || list_select(v, [3, 2, 1]) AS v, s FROM {t})",
    "fixed size": "(SELECT i, u::{type}[6] AS u, v::{type}[6] AS v, s FROM {t})",
    "nested": "(SELECT i, pair[1] AS u, unnest(pair) AS v, s FROM (SELECT i, [u, v] AS pair, s FROM {t}))",
}

AGGREGATES: dict[str, Oracle] = {
    "tensor_sum(u)": lambda r: r.u.sum(axis=0),
    "tensor_prod(tensor_map('1 + u / 1000', u))": lambda r: (1 + r.u / 1000).prod(axis=0),
    "tensor_max(u)": lambda r: r.u.max(axis=0),
    "tensor_min(u)": lambda r: r.u.min(axis=0),
    "tensor_sum_scaled(s, v)": lambda r: r.s @ r.v,
    "tensor_einsum_sum('ij,jk->ik', u, v, [2, 3, 2])": lambda r: np.einsum(
        "rij,rjk->ik", r.u.reshape(-1, 2, 3), r.v.reshape(-1, 3, 2)
    ),
    "tensor_einsum_sum('i,j->ij', u, v, [6, 6])": lambda r: np.einsum("ri,rj->ij", r.u, r.v),
    "tensor_stack(u, i, 2501, 3, -1.5)": lambda r: stack(r.u.reshape(-1, 2, 3), r.i, 2501, -1.5),
    "tensor_stack(s, i, 2501, -1.5)": lambda r: stack(r.s[:, None, None], r.i, 2501, -1.5),
    "tensor_nnz_along(u, 1, [2, 3])": lambda r: np.count_nonzero(r.u.reshape(-1, 2, 3), axis=(0, 1)),
}


def stack(arrays: Array, positions: Array, size: int, fill: float) -> Array:
    """Arrays (rows, outer, inner) side by side: (outer, size, inner)."""
    stacked = np.full((arrays.shape[1], size, arrays.shape[2]), fill, arrays.dtype)
    stacked[:, positions] = arrays.swapaxes(0, 1)
    return stacked


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> Connection:
    """Tables rows_float64 and rows_float32, some of their numbers 0, and views of them with NULLs."""
    opened = shared_db.connection
    rng = np.random.default_rng(0)
    for dtype, kind in SQL_TYPES.items():
        values = rng.uniform(-2, 2, (ROWS, 13)) * (rng.random((ROWS, 13)) < 0.9)
        columns = f"unnest($1::{kind}[][]) AS u, unnest($2::{kind}[][]) AS v, unnest($3::{kind}[]) AS s"
        opened.execute(
            f"CREATE TABLE rows_{dtype} AS SELECT unnest(range({ROWS})) AS i, {columns}",
            [values[:, :6].tolist(), values[:, 6:12].tolist(), values[:, 12].tolist()],
        )
        missing = [f"CASE WHEN i % {every} > 0 THEN {name} END AS {name}" for name, every in NULL_EVERY.items()]
        opened.execute(f"CREATE VIEW nulls_{dtype} AS SELECT i, {', '.join(missing)} FROM rows_{dtype}")
    return opened


@pytest.fixture
def on_four_threads(connection: Connection) -> Iterator[Connection]:
    """The same connection, on four threads, each of which has states of its own until they are merged."""
    connection.execute("SET threads = 4")
    yield connection
    connection.execute("RESET threads")


def fetch_array(connection: Connection, expression: str, relation: str = "(SELECT 1)") -> Array | None:
    """The single value of a query, flat."""
    (row,) = connection.execute(f"SELECT {expression} FROM {relation}").fetchall()
    return None if row[0] is None else np.asarray(row[0])


def read_column(column: pa.ChunkedArray) -> Array:
    """Numbers, or arrays of one length, as (rows, length)."""
    values = column.combine_chunks()
    while pa.types.is_nested(values.type):
        values = values.flatten()
    flat: Array = values.to_numpy(zero_copy_only=False)
    return flat.reshape(len(column), -1)


def read_rows(connection: Connection, relation: str, call: str = "1") -> tuple[Rows, Array]:
    """Rows without NULL, and what a call gives for each."""
    table = connection.sql(f"SELECT i, u, v, s, {call} AS w FROM {relation}").to_arrow_table()
    i, u, v, s, w = (read_column(table[name]) for name in "iuvsw")
    return Rows(u, v, s[:, 0], i[:, 0]), w


def arguments_of(call: str) -> set[str]:
    """Columns that a call reads; the names inside an expression or a spec are none."""
    return set(re.findall(r"\b[uvsi]\b", re.sub("'[^']*'", "", call)))


def expect_equal(found: Array | None, expected: Array, dtype: str) -> None:
    """Compare flat results up to the rounding of a dtype."""
    assert found is not None
    tolerance = TOLERANCES[dtype]
    np.testing.assert_allclose(found.ravel(), np.ravel(expected), rtol=tolerance, atol=tolerance)


def test_every_function_is_tested_here() -> None:
    called = {re.split(r"\W", call)[0] for call in (*SCALARS, *AGGREGATES)}
    assert called == {function.name for function in functions()}


@pytest.mark.parametrize("dtype", SQL_TYPES)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("call", SCALARS)
def test_scalar_over_rows(connection: Connection, call: str, source: str, dtype: str) -> None:
    rows, results = read_rows(connection, SOURCES[source].format(t=f"rows_{dtype}", type=SQL_TYPES[dtype]), call)
    assert len(rows.i) > 300
    with np.errstate(all="ignore"):
        expect_equal(results, SCALARS[call](rows), dtype)


@pytest.mark.parametrize("dtype", SQL_TYPES)
@pytest.mark.parametrize("call", SCALARS)
def test_null_in_null_out(connection: Connection, call: str, dtype: str) -> None:
    query = f"SELECT n.i, with_nulls, without FROM (SELECT i, {call} AS with_nulls FROM nulls_{dtype}) AS n "
    query += f"JOIN (SELECT i, {call} AS without FROM rows_{dtype}) AS r ON n.i = r.i"
    divisors = [NULL_EVERY[name] for name in arguments_of(call) if name in NULL_EVERY]
    for i, with_nulls, without in connection.execute(query).fetchall():
        is_null = any(i % divisor == 0 for divisor in divisors)
        assert repr(with_nulls) == repr(None if is_null else without)


@pytest.mark.parametrize("dtype", SQL_TYPES)
@pytest.mark.parametrize("operation", ["add", "sub", "mul", "div"])
def test_arrays_of_different_lengths_in_one_chunk(connection: Connection, operation: str, dtype: str) -> None:
    table = f"(SELECT i, u[1:i % 7] AS u, v[1:i % 7] AS v FROM rows_{dtype})"
    found = connection.execute(f"SELECT u, v, tensor_{operation}(u, v) FROM {table}").fetchall()
    combine = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[operation]
    with np.errstate(all="ignore"):
        for u, v, w in found:
            np.testing.assert_array_equal(w, combine(np.array(u, dtype), np.array(v, dtype)))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("tensor_add([1.0, 2.0], [3, 4])", [4.0, 6.0]),
        ("tensor_add([16777217], [1])", [16777218.0]),
        ("tensor_add([9007199254740992::BIGINT], [1::TINYINT])", [9007199254740992.0]),
        ("tensor_mul([0.1], [3])", [0.1 * 3]),
        ("tensor_div([1, 0, -1], [0, 0, 0])", [np.inf, np.nan, -np.inf]),
        ("tensor_scale(2, [1, 2])", [2.0, 4.0]),
        ("tensor_map('sqrt', [4, 2.25])", [2.0, 1.5]),
        ("tensor_fill(2, 7)", [7.0, 7.0]),
        ("tensor_outer([], [1.0])", []),
        ("tensor_matmul([], [], [2, 0, 2])", [0.0, 0.0, 0.0, 0.0]),
        ("tensor_einsum('->', [2.5], [])", [2.5]),
        ("tensor_einsum(',->', [2.5], [2], [])", [5.0]),
        ("tensor_einsum('ii->i', [1, 2, 3, 4], [2])", [1.0, 4.0]),
        ("tensor_einsum('ii->', [1, 2, 3, 4], [2])", [5.0]),
        ("tensor_einsum(' i , j -> j i ', [1, 2], [3, 4], [2, 2])", [3.0, 6.0, 4.0, 8.0]),
        ("tensor_einsum('Ii->I', [1, 2, 3, 4], [2, 2])", [3.0, 7.0]),
        ("tensor_einsum('ij->i', [], [2, 0])", [0.0, 0.0]),
        ("tensor_reduce('max', 'u', 'ij->i', [], [2, 0])", [-np.inf, -np.inf]),
        ("tensor_slice([1, 2, 3], 0, 2, [3])", [3.0]),
        ("tensor_slice([], 1, 0, [0, 2])", []),
        ("tensor_split([], [0], [3, 0])", [[], [], []]),
        ("tensor_split([1, 2], [], [2])", [[1.0, 2.0]]),
        ("tensor_split([1, 2, 3, 4], [1, 0], [2, 2])", [[1.0], [3.0], [2.0], [4.0]]),
        ("tensor_sum([1, 2])", [1.0, 2.0]),
        ("tensor_sum([])", []),
        ("tensor_stack(1, 2, 3, 0)", [0.0, 0.0, 1.0]),
        ("tensor_stack([1, 2], 1, 2, 1, 0.5)", [0.5, 1.0, 0.5, 2.0]),
        ("tensor_stack([], 1, 2, 3, 0.5)", []),
        ("tensor_nnz_along([0, 2, 3], 0, [3])", [0, 1, 1]),
    ],
)
def test_literals(connection: Connection, call: str, expected: list[Any]) -> None:
    (row,) = connection.execute(f"SELECT {call}").fetchall()
    assert repr(row[0]) == repr(expected)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("tensor_dot([1, 2], [3, 4])", 11.0),
        ("tensor_dot([], [])", 0.0),
        ("tensor_norm([])", 0.0),
        ("tensor_norm([3, 4])", 5.0),
        ("tensor_nnz(['nan'::DOUBLE, 0.0, '-0.0'::DOUBLE, 1])", 2),
        ("tensor_is_finite([])", 1),
        ("tensor_is_finite([1, 'inf'::DOUBLE])", 0),
        ("tensor_map('neg(u) ^ 2', 3)", 9.0),
        ("tensor_map('-u ^ 2', 3)", -9.0),
        ("tensor_map('2 ^ -u ^ 2', 3)", 2.0**-9),
        ("tensor_map('2 ^ 3 ^ 2', 1)", 512.0),
        ("tensor_map('8 / 4 / 2 - 1 - 1', 1)", -1.0),
        ("tensor_map('max(neg(u), min(u, -2))', 3)", -2.0),
        ("tensor_map('1e-3 + 1.5e+2 + .5 + 2.', 3)", 152.501),
        ("tensor_map('min(u, inf) + max(-inf, u)', 3)", 6.0),
        ("tensor_map('neg', 3)", -3.0),
        ("tensor_map('u', 3)", 3.0),
    ],
)
def test_literals_to_numbers(connection: Connection, call: str, expected: float) -> None:
    (row,) = connection.execute(f"SELECT {call}").fetchall()
    assert row[0] == expected
    assert type(row[0]) is type(expected)


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("tensor_add([1.5::FLOAT], [2.5::FLOAT])", "FLOAT[]"),
        ("tensor_add([1.5::FLOAT], [2.5])", "FLOAT[]"),
        ("tensor_scale(2, [2.5::FLOAT])", "FLOAT[]"),
        ("tensor_add([1.5::FLOAT], [2.5::DOUBLE])", "DOUBLE[]"),
        ("tensor_sum_scaled(1.5::DOUBLE, [2.5::FLOAT])", "DOUBLE[]"),
        ("tensor_add([1], [2])", "DOUBLE[]"),
        ("tensor_dot([1.0], [2.0])", "DOUBLE"),
        ("tensor_norm([1.0::FLOAT])", "FLOAT"),
        ("tensor_nnz([1.0::FLOAT])", "BIGINT"),
        ("tensor_map('abs', 1::FLOAT)", "FLOAT"),
        ("tensor_split([1.0::FLOAT], [0], [1])", "FLOAT[][]"),
        ("tensor_nnz_along([1.0::FLOAT], 0, [1])", "BIGINT[]"),
    ],
)
def test_result_types(connection: Connection, call: str, kind: str) -> None:
    assert connection.execute(f"SELECT typeof({call})").fetchall() == [(kind,)]


@pytest.mark.parametrize("dtype", SQL_TYPES)
@pytest.mark.parametrize(
    ("call", "oracle"),
    [
        ("tensor_add(u, v)", lambda u, v: u + v),
        ("tensor_scale(3, u)", lambda u, v: 3 * u),
        ("tensor_dot(u, v)", lambda u, v: u @ v),
        ("tensor_norm(u)", lambda u, v: np.linalg.norm(u)),
        ("tensor_nnz(u)", lambda u, v: np.count_nonzero(u)),
        ("tensor_map('sigmoid', u)", lambda u, v: 1 / (1 + np.exp(-u))),
        ("tensor_outer(u[1:400], v[1:300])", lambda u, v: np.outer(u[:400], v[:300])),
        ("tensor_fill(100000, 2.5)", lambda u, v: np.full(100_000, 2.5)),
        ("tensor_matmul(u, v, [100, 1000, 100])", lambda u, v: u.reshape(100, 1000) @ v.reshape(1000, 100)),
        (
            "tensor_einsum('aij,jb->bia', u, v[1:2000], [10, 100, 100, 20])",
            lambda u, v: np.einsum("aij,jb->bia", u.reshape(10, 100, 100), v[:2000].reshape(100, 20)),
        ),
        (
            "tensor_einsum('ijk->kj', u, [10, 100, 100])",
            lambda u, v: np.einsum("ijk->kj", u.reshape(10, 100, 100)),
        ),
        (
            "tensor_reduce('min', 'u + v', 'ij,j->i', u, v[1:1000], [100, 1000])",
            lambda u, v: (u.reshape(100, 1000) + v[:1000]).min(axis=1),
        ),
        ("tensor_slice(u, 1, 7, [10, 100, 100])", lambda u, v: u.reshape(10, 100, 100)[:, 7]),
        ("tensor_split(u, [2, 0], [10, 100, 100])", lambda u, v: u.reshape(10, 100, 100).transpose(2, 0, 1)),
        ("tensor_sum(u)", lambda u, v: u),
        ("tensor_stack(u, 1, 3, 1000, 0)", lambda u, v: stack(u.reshape(1, 100, 1000), np.array([1]), 3, 0)),
        (
            "tensor_nnz_along(u, 1, [10, 100, 100])",
            lambda u, v: np.count_nonzero(u.reshape(10, 100, 100), axis=(0, 2)),
        ),
    ],
)
def test_large_arrays(connection: Connection, call: str, oracle: Callable[[Array, Array], Array], dtype: str) -> None:
    rng = np.random.default_rng(1)
    u, v = (np.array(rng.uniform(0, 1, 100_000) * (rng.random(100_000) < 0.5), dtype) for _ in "uv")
    kind = SQL_TYPES[dtype]
    (row,) = connection.execute(f"SELECT {call} FROM (SELECT $1::{kind}[] AS u, $2::{kind}[] AS v)", [u, v]).fetchall()
    expect_equal(np.asarray(row[0]), oracle(u, v), dtype)


@pytest.mark.parametrize("dtype", SQL_TYPES)
@pytest.mark.parametrize("source", ["table", "filter", "join", "literal", "case", "list functions", "fixed size"])
@pytest.mark.parametrize("call", AGGREGATES)
def test_aggregate_of_all_rows(connection: Connection, call: str, source: str, dtype: str) -> None:
    relation = SOURCES[source].format(t=f"rows_{dtype}", type=SQL_TYPES[dtype])
    rows, _ = read_rows(connection, relation)
    expect_equal(fetch_array(connection, call, relation), AGGREGATES[call](rows), dtype)


@pytest.mark.parametrize("dtype", SQL_TYPES)
@pytest.mark.parametrize("call", AGGREGATES)
def test_aggregate_skips_rows_with_null(connection: Connection, call: str, dtype: str) -> None:
    rows, _ = read_rows(connection, f"rows_{dtype}")
    present = [rows.i % NULL_EVERY[name] > 0 for name in arguments_of(call) if name in NULL_EVERY]
    expected = AGGREGATES[call](rows[np.logical_and.reduce(present)])
    expect_equal(fetch_array(connection, call, f"nulls_{dtype}"), expected, dtype)


@pytest.mark.parametrize("dtype", SQL_TYPES)
@pytest.mark.parametrize("call", AGGREGATES)
def test_aggregate_of_many_groups_on_many_threads(on_four_threads: Connection, call: str, dtype: str) -> None:
    grouped = call.replace(", i, 2501", ", i // 500, 5")
    found = on_four_threads.execute(f"SELECT i % 500, {grouped} FROM rows_{dtype} GROUP BY ALL ORDER BY ALL").fetchall()
    rows, _ = read_rows(on_four_threads, f"rows_{dtype}")
    assert [group for group, _ in found] == list(range(500))
    for group, result in found:
        own = rows[rows.i % 500 == group]
        full = AGGREGATES[call](own)
        if "stack" in call:
            inner = (own.u.reshape(-1, 2, 3) if "(u" in call else own.s[:, None, None])[np.argsort(own.i)]
            full = stack(inner, np.arange(5), 5, -1.5)
        expect_equal(np.asarray(result), full, dtype)


@pytest.mark.parametrize("dtype", SQL_TYPES)
@pytest.mark.parametrize("call", AGGREGATES)
def test_aggregate_over_windows(connection: Connection, call: str, dtype: str) -> None:
    short = call.replace("2501", "300")
    relation = f"(SELECT * FROM rows_{dtype} WHERE i < 300)"
    window = "OVER (ORDER BY i ROWS BETWEEN 40 PRECEDING AND 3 FOLLOWING)"
    found = connection.execute(f"SELECT i, {short} {window} FROM {relation} ORDER BY i").fetchall()
    rows, _ = read_rows(connection, relation)
    rows = rows[np.argsort(rows.i)]
    for i, result in found:
        own = rows[np.arange(max(i - 40, 0), min(i + 4, 300))]
        expected = AGGREGATES[call](own)
        if "stack" in call:
            expected = expected.reshape(expected.shape[0], 2501, -1)[:, :300]
        expect_equal(np.asarray(result), expected, dtype)


@pytest.mark.parametrize("call", AGGREGATES)
def test_aggregate_with_clauses(connection: Connection, call: str) -> None:
    rows, _ = read_rows(connection, "rows_float64")
    filtered = fetch_array(connection, f"{call} FILTER (i % 3 = 0)", "rows_float64")
    expect_equal(filtered, AGGREGATES[call](rows[rows.i % 3 == 0]), "float64")
    everywhere = connection.execute(f"SELECT {call} OVER () FROM rows_float64 LIMIT 2").fetchall()
    for (result,) in everywhere:
        expect_equal(np.asarray(result), AGGREGATES[call](rows), "float64")
    own_group = connection.execute(f"SELECT i, {call} OVER (PARTITION BY i % 2) FROM rows_float64 LIMIT 2").fetchall()
    for i, result in own_group:
        expect_equal(np.asarray(result), AGGREGATES[call](rows[rows.i % 2 == i % 2]), "float64")


@pytest.mark.parametrize("call", AGGREGATES)
def test_aggregate_of_nothing(connection: Connection, call: str) -> None:
    assert fetch_array(connection, call, "(SELECT * FROM rows_float64 WHERE i < 0)") is None
    assert connection.execute(f"SELECT i, {call} FROM rows_float64 WHERE i < 0 GROUP BY i").fetchall() == []
    assert fetch_array(connection, call, "(SELECT * FROM nulls_float64 WHERE i % 105 = 0)") is None
    grouped = f"SELECT i % 105 = 0 AS is_null, {call} IS NULL FROM nulls_float64 GROUP BY ALL ORDER BY ALL"
    assert connection.execute(grouped).fetchall() == [(False, False), (True, True)]


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_distinct(connection: Connection, name: str) -> None:
    relation = "(SELECT [i % 3 + 1, i % 2]::DOUBLE[] AS u FROM range(5000) AS t(i))"
    distinct = np.array([[i, j] for i in (1, 2, 3) for j in (0, 1)], float)
    folded = {"sum": distinct.sum(0), "prod": distinct.prod(0), "max": distinct.max(0), "min": distinct.min(0)}
    expect_equal(fetch_array(connection, f"tensor_{name}(DISTINCT u)", relation), folded[name], "float64")


def test_order_by_says_which_row_a_position_keeps(connection: Connection) -> None:
    relation = "range(10) AS t(i)"
    ascending = fetch_array(connection, "tensor_stack(i, i % 3, 3, 0 ORDER BY i)", relation)
    descending = fetch_array(connection, "tensor_stack(i, i % 3, 3, 0 ORDER BY i DESC)", relation)
    expect_equal(ascending, np.array([9, 7, 8]), "float64")
    expect_equal(descending, np.array([0, 1, 2]), "float64")


@pytest.mark.parametrize("fill", ["nan", "inf", "-0.0", "0.0", "1.0"])
@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
def test_threads_merge_stacks_bit_by_bit(on_four_threads: Connection, kind: str, fill: str) -> None:
    """Whatever the fill, no thread's fill covers another thread's value."""
    values = f"(SELECT i, (CASE i % 3 WHEN 0 THEN '-0.0' WHEN 1 THEN '1.0' ELSE '0.0' END)::{kind} AS x FROM t)"
    tables = "(SELECT * FROM range(0, 300000, 2) UNION ALL SELECT * FROM range(1, 300000, 2)) AS t(i)"
    query = f"WITH t AS (FROM {tables}) SELECT tensor_stack(x, i, 300001, '{fill}'::{kind}) FROM {values}"
    (found,) = on_four_threads.execute(query).fetchall()
    expected = np.append(np.tile([-0.0, 1.0, 0.0], 100_000), float(fill))
    np.testing.assert_array_equal(np.signbit(found[0]), np.signbit(expected))
    np.testing.assert_array_equal(found[0], expected)


@pytest.mark.parametrize("fill", ["nan", "-0.0", "2.0"])
def test_windows_merge_stacks_bit_by_bit(connection: Connection, fill: str) -> None:
    window = "OVER (ORDER BY i ROWS BETWEEN 100 PRECEDING AND CURRENT ROW)"
    query = f"SELECT i, tensor_stack(i, i, 400, '{fill}'::DOUBLE) {window} FROM range(400) AS t(i) ORDER BY i"
    for i, result in connection.execute(query).fetchall():
        expected = np.full(400, float(fill))
        expected[max(i - 100, 0) : i + 1] = np.arange(max(i - 100, 0), i + 1)
        np.testing.assert_array_equal(result, expected)


def test_many_rows_on_many_threads(on_four_threads: Connection) -> None:
    results = "tensor_sum([i, 1]), tensor_max([i]), tensor_min([i, -i]), tensor_sum_scaled(2, [i])"
    (found,) = on_four_threads.execute(f"SELECT {results} FROM range(400000) AS t(i)").fetchall()
    groups = "SELECT tensor_sum([i, 1]) AS w FROM range(400000) AS t(i) GROUP BY i % 100000"
    (grouped,) = on_four_threads.execute(f"SELECT count(*), sum(w[1]), min(w[2]), max(w[2]) FROM ({groups})").fetchall()
    total = 400_000 * 399_999 / 2
    assert found == ([total, 400_000.0], [399_999.0], [0.0, -399_999.0], [2 * total])
    assert grouped == (100_000, total, 4.0, 4.0)


@pytest.mark.parametrize("dtype", SQL_TYPES)
def test_nan_wins_maximum_and_minimum(connection: Connection, dtype: str) -> None:
    relation = f"(VALUES (['nan', '1', '-inf']::{SQL_TYPES[dtype]}[]), ([2.0, 'nan'::DOUBLE, 5.0])) AS t(u)"
    relation = f"(SELECT u::{SQL_TYPES[dtype]}[] AS u FROM {relation})"
    expect_equal(fetch_array(connection, "tensor_max(u)", relation), np.array([np.nan, np.nan, 5.0]), dtype)
    expect_equal(fetch_array(connection, "tensor_min(u)", relation), np.array([np.nan, np.nan, -np.inf]), dtype)


def test_spec_extents_and_expression_may_be_columns(connection: Connection) -> None:
    relation = """(VALUES ('ij->i', 'u + 1', [2, 3]), ('ij->j', '2 * u', [2, 3]), ('ij->ij', 'abs', [3, 2]),
        ('ji->i', '-u', [6, 1]), ('ij->i', 'u + 1', [3, 2])) AS t(spec, expression, extents)"""
    u = np.arange(6.0)
    results = "tensor_einsum(spec, $1, extents), tensor_map(expression, $1)"
    query = f"SELECT spec, expression, extents, {results} FROM {relation}"
    maps = {"u + 1": u + 1, "2 * u": 2 * u, "abs": u, "-u": -u}
    for spec, expression, extents, contracted, mapped in connection.execute(query, [u]).fetchall():
        expect_equal(np.asarray(contracted), np.einsum(spec, u.reshape(extents)), "float64")
        expect_equal(np.asarray(mapped), maps[expression], "float64")
    summed = "tensor_einsum_sum('ij,jk->ik', u, u, extents)"
    rows = "(SELECT $1 AS u, unnest([[2, 3, 2], [2, 3, 2]]) AS extents)"
    (found,) = connection.execute(f"SELECT {summed} FROM {rows}", [u]).fetchall()
    expect_equal(np.asarray(found[0]), 2 * (u.reshape(2, 3) @ u.reshape(3, 2)), "float64")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT tensor_norm(tensor_sum([3.0 * i, 4.0 * i])) FROM range(3) t(i)", [(15.0,)]),
        ("SELECT (tensor_sum([i, 1.0]))[2] + 1 FROM range(5) t(i)", [(6.0,)]),
        ("SELECT unnest(tensor_outer([1, 2], [3, 4]))", [(3.0,), (4.0,), (6.0,), (8.0,)]),
        ("SELECT tensor_sum(p) FROM (SELECT unnest(tensor_split([1, 2, 3, 4], [0], [2, 2])) AS p)", [([4.0, 6.0],)]),
        ("SELECT list_sum(tensor_map('abs', [-1, 2])) + len(tensor_fill(3, 0))", [(6.0,)]),
        ("SELECT i FROM range(5) t(i) ORDER BY tensor_dot([i, 1], [-1, 0]) LIMIT 2", [(4,), (3,)]),
        ("SELECT i % 2 FROM range(5) t(i) GROUP BY 1 HAVING tensor_norm(tensor_sum([i])) > 5", [(0,)]),
        ("SELECT count(*) FROM range(9) t(i) WHERE tensor_nnz([i % 3, i % 2]) = 2", [(3,)]),
        ("SELECT i FROM range(3) t(i) JOIN range(3) s(j) ON tensor_dot([i], [2]) = j", [(0,), (1,)]),
        (
            "WITH a AS (SELECT i, tensor_fill(2, i) AS u FROM range(3) t(i)) "
            "SELECT (SELECT tensor_sum(u) FROM a WHERE a.i <= o.i) FROM a AS o ORDER BY o.i",
            [([0.0, 0.0],), ([1.0, 1.0],), ([3.0, 3.0],)],
        ),
        ("SELECT tensor_add([1], [2]) UNION ALL SELECT tensor_sum([5])", [([3.0],), ([5.0],)]),
        ("SELECT tensor_add([1], [2]) = [3.0], tensor_add([1], [2]) IN ([4.0], [3.0])", [(True, True)]),
        ("SELECT [tensor_map('sqrt', x) FOR x IN [4.0, 9.0]]", [([2.0, 3.0],)]),
        ("SELECT tensor_add(NULL, [1.0]), tensor_fill(NULL, 1.0), tensor_map(NULL, [1.0])", [(None, None, None)]),
    ],
)
def test_results_in_further_sql(connection: Connection, query: str, expected: list[tuple[Any, ...]]) -> None:
    assert connection.execute(query).fetchall() == expected


def test_results_are_stored_and_read_again(connection: Connection, tmp_path: Path) -> None:
    connection.execute("CREATE TABLE stored AS SELECT i, tensor_fill(3, i) AS u FROM range(3000) t(i)")
    connection.execute("UPDATE stored SET u = tensor_scale(2, u) WHERE i % 2 = 0")
    connection.execute("INSERT INTO stored SELECT -1, tensor_sum(u) FROM stored")
    connection.execute("CREATE VIEW doubled AS SELECT i, tensor_scale(2, u) AS u FROM stored")
    connection.execute("CREATE MACRO length_of(u) AS tensor_norm(u)")
    connection.execute(f"COPY doubled TO '{tmp_path}/doubled.parquet'")
    even, odd = 2 * np.arange(0, 3000, 2).sum(), np.arange(1, 3000, 2).sum()
    found = connection.execute(f"SELECT u, length_of(u) FROM '{tmp_path}/doubled.parquet' WHERE i = -1").fetchall()
    assert found == [([2.0 * (even + odd)] * 3, pytest.approx(np.sqrt(3) * 2 * (even + odd)))]
    for kind, name in (("MACRO", "length_of"), ("VIEW", "doubled"), ("TABLE", "stored")):
        connection.execute(f"DROP {kind} {name}")


def test_prepared_statement_runs_again(connection: Connection) -> None:
    connection.execute("PREPARE product AS SELECT tensor_einsum($1, $2::DOUBLE[], $3::DOUBLE[], $4::BIGINT[])")
    first = connection.execute("EXECUTE product('i,i->', [1, 2], [3, 4], [2])").fetchall()
    second = connection.execute("EXECUTE product('i,j->ij', [1, 2], [3], [2, 1])").fetchall()
    assert (first, second) == ([([11.0],)], [([3.0, 6.0],)])


# What the examples of aggregates read, and what they give.
EXAMPLE_ROWS = {
    "tensor_sum(u)": ("(VALUES ([1, 2]), ([3, 4])) AS t(u)", [4.0, 6.0]),
    "tensor_prod(u)": ("(VALUES ([1, 2]), ([3, 4])) AS t(u)", [3.0, 8.0]),
    "tensor_max(u)": ("(VALUES ([1, 5]), ([3, 4])) AS t(u)", [3.0, 5.0]),
    "tensor_min(u)": ("(VALUES ([1, 5]), ([3, 4])) AS t(u)", [1.0, 4.0]),
    "tensor_sum_scaled(w, v)": ("(VALUES (2, [1, 5]), (10, [3, 4])) AS t(w, v)", [32.0, 50.0]),
    "tensor_einsum_sum('i,j->ij', u, v, [2, 3])": (
        "(VALUES ([1, 2], [1, 1, 2]), ([0, 1], [1, 2, 3])) AS t(u, v)",
        [1.0, 1.0, 2.0, 3.0, 4.0, 7.0],
    ),
    "tensor_stack(val, i, 3, 2, 0.0)": (
        "(VALUES ([1, 2, 3, 4], 2), ([5, 6, 7, 8], 0)) AS t(val, i)",
        [5.0, 6.0, 0.0, 0.0, 1.0, 2.0, 7.0, 8.0, 0.0, 0.0, 3.0, 4.0],
    ),
    "tensor_stack(val, i, 3, 0.0)": ("(VALUES (7, 2), (8, 0)) AS t(val, i)", [8.0, 0.0, 7.0]),
    "tensor_nnz_along(u, 0, [2, 2])": ("(VALUES ([1, 0, 0, 0]), ([1, 5, 0, 3])) AS t(u)", [3, 1]),
}


@pytest.mark.parametrize("function", functions(), ids=lambda function: function.example)
def test_examples_run(connection: Connection, function: Function) -> None:
    assert function.example.startswith(f"{function.name}(")
    if function.is_aggregate:
        relation, expected = EXAMPLE_ROWS[function.example]
        assert connection.execute(f"SELECT {function.example} FROM {relation}").fetchall() == [(expected,)]
    else:
        assert connection.execute(f"SELECT {function.example}").fetchall() == [(True,)]


@pytest.mark.parametrize("function", functions(), ids=lambda function: function.example)
def test_descriptions_are_sentences(function: Function) -> None:
    assert re.fullmatch(r"[A-Z1].*\.", function.description)
    named = re.findall(r"`(\w+)`", function.description)
    assert set(named) <= {argument.name for argument in function.arguments}


@pytest.mark.parametrize("function", functions(), ids=lambda function: function.example)
@pytest.mark.parametrize("kind", SQL_TYPES.values())
def test_duckdb_lists_every_function(connection: Connection, function: Function, kind: str) -> None:
    written = {
        ValueType.NUMBER: kind,
        ValueType.TENSOR: f"{kind}[]",
        ValueType.TENSORS: f"{kind}[][]",
        ValueType.INTEGER: "BIGINT",
        ValueType.INTEGERS: "BIGINT[]",
        ValueType.TEXT: "VARCHAR",
    }
    listed = connection.execute(
        "SELECT count(*) FROM duckdb_functions() WHERE function_name = ? AND parameter_types = ?::VARCHAR[] "
        "AND return_type = ? AND function_type = ?",
        [
            function.name,
            [written[argument.type] for argument in function.arguments],
            written[function.returns],
            "aggregate" if function.is_aggregate else "scalar",
        ],
    ).fetchall()
    assert listed == [(1,)]


def test_a_second_connection_has_the_functions(connection: Connection) -> None:
    with duckdb.connect() as other:
        assert other.execute("SELECT tensor_add([1], [2])").fetchall() == [([3.0],)]
    cursor = connection.cursor()
    assert cursor.execute("SELECT tensor_add([1], [2])").fetchall() == [([3.0],)]

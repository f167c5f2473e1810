"""The scalar SQL functions compute what numpy computes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sql_rows import (
    NULL_EVERY,
    SOURCES,
    SQL_TYPES,
    Array,
    Connection,
    Oracle,
    arguments_of,
    create_rows,
    expect_equal,
    flat_tiles,
    read_rows,
    stack,
)

import sparseeinsum as se
from sparseeinsum.operators.random_numbers import threefry

pytestmark = pytest.mark.engines("duckdb", reason="test_postgres_functions.py makes these calls in PostgreSQL")

SCALARS: dict[str, Oracle] = {
    "tensor_add(u, v)": lambda r: r.u + r.v,
    "tensor_sub(u, v)": lambda r: r.u - r.v,
    "tensor_mul(u, v)": lambda r: r.u * r.v,
    "tensor_div(u, v)": lambda r: r.u / r.v,
    "tensor_pow(tensor_map('abs', u), v)": lambda r: np.abs(r.u) ** r.v,
    "tensor_pow(u, 2)": lambda r: r.u**2,
    "tensor_pow(1.5, u)": lambda r: r.u.dtype.type(1.5) ** r.u,
    "tensor_maximum(u, v)": lambda r: np.maximum(r.u, r.v),
    "tensor_minimum(u, s)": lambda r: np.minimum(r.u, r.s[:, None]),
    "tensor_minimum(u, v)": lambda r: np.minimum(r.u, r.v),
    "tensor_threefry(tensor_map('round', u), tensor_map('round', v))": lambda r: threefry(r.u.round(), r.v.round()),
    "tensor_threefry(3, u)": lambda r: threefry(r.u.dtype.type(3), r.u),
    "tensor_add(u, s)": lambda r: r.u + r.s[:, None],
    "tensor_sub(s, u)": lambda r: r.s[:, None] - r.u,
    "tensor_mul(s, u)": lambda r: r.s[:, None] * r.u,
    "tensor_div(u, s)": lambda r: r.u / r.s[:, None],
    "tensor_scale(s, u)": lambda r: r.s[:, None] * r.u,
    "tensor_outer(u, v)": lambda r: np.einsum("ri,rj->rij", r.u, r.v),
    "tensor_dot(u, v)": lambda r: np.einsum("ri,ri->r", r.u, r.v),
    "tensor_norm(u)": lambda r: np.linalg.norm(r.u, axis=1),
    "tensor_nnz(u)": lambda r: np.count_nonzero(r.u, axis=1),
    "tensor_nnz(u, v[1])": lambda r: (r.u != r.v[:, :1]).sum(axis=1),
    "tensor_nnz(u, u[2])": lambda r: (r.u != r.u[:, 1:2]).sum(axis=1),
    "tensor_least(u, 0)": lambda r: np.where(r.u == 0, np.inf, r.u).min(axis=1),
    "tensor_greatest(u, u[2])": lambda r: np.where(r.u == r.u[:, 1:2], -np.inf, r.u).max(axis=1),
    "tensor_finite('W', u, s)": lambda r: r.u,
    "tensor_finite('W', s, 0)": lambda r: r.s,
    "tensor_is_finite(tensor_div(u, v))": lambda r: np.asarray(np.isfinite(r.u / r.v).all(axis=1)),
    "tensor_hash(u) - tensor_hash(tensor_slice(u, 0, 0, [1, 6]))": lambda r: np.zeros(len(r.u)),
    "tensor_map('relu', u)": lambda r: np.maximum(r.u, 0),
    "tensor_map('exp(u) - 2 * u ^ 2', u)": lambda r: np.exp(r.u) - 2 * r.u**2,
    "tensor_map('tanh', s)": lambda r: np.tanh(r.s),
    "tensor_fill(4, s)": lambda r: np.repeat(r.s[:, None], 4, axis=1),
    "tensor_gather_sum(u, [0, 2, 1, 2, 0, 1], v, 2)": lambda r: np.einsum(
        "rk,rkf->rf", r.u, r.v.reshape(-1, 3, 2)[:, [0, 2, 1, 2, 0, 1]]
    ),
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
    "tensor_reduce('sum', 'where(u > 0, v, u)', 'i,i->i', u, v, [6])": lambda r: np.where(r.u > 0, r.v, r.u),
    "tensor_scan('sum', u, 0, [2, 3])": lambda r: np.cumsum(r.u.reshape(-1, 2, 3), axis=1),
    "tensor_scan('min', u, 1, [2, 3])": lambda r: np.minimum.accumulate(r.u.reshape(-1, 2, 3), axis=2),
    "tensor_scan('any', u, 1, [2, 3])": lambda r: np.logical_or.accumulate(r.u.reshape(-1, 2, 3), axis=2) * 1.0,
    "tensor_slice(u, 1, i % 3, [2, 3])": lambda r: np.take_along_axis(
        r.u.reshape(-1, 2, 3), (r.i % 3)[:, None, None], axis=2
    ),
    "tensor_sort(u, 0, [2, 3])": lambda r: np.sort(r.u.reshape(-1, 2, 3), axis=1),
    "tensor_sort(u, i % 2, [2, 3])": lambda r: np.where(
        (r.i % 2 == 0)[:, None, None], *(np.sort(r.u.reshape(-1, 2, 3), axis=axis) for axis in (1, 2))
    ),
    "tensor_largest(u, 1, [2, 3], 2)": lambda r: -np.sort(-r.u.reshape(-1, 2, 3), axis=2)[..., :2],
    "tensor_inverse(tensor_map('3 + tanh(u)', tensor_mul(u, [0, 1, 1, 0, 1, 1])), [6, 1, 1])": lambda r: (
        1 / (3 + np.tanh(r.u * [0, 1, 1, 0, 1, 1])).astype(r.u.dtype)
    ),
    "tensor_split(u, [1], [2, 3])": lambda r: r.u.reshape(-1, 2, 3).transpose(0, 2, 1),
    "tensor_split_tiles(u, [0, 2], [2, 3])": lambda r: flat_tiles(r.u.reshape(-1, 2, 3), [0, 2]),
}

# Calls that return no NULL, or numbers that differ by rounding, where a row has NULL.
OF_ELEMENTS: dict[str, Oracle] = {
    "tensor_reduce('sum', 'u / (3 + v)', 'i,->i', u, [s], [6])": lambda r: r.u / (3 + r.s[:, None]),
    "tensor_reduce('sum', 'u - v', ',ij->ji', [s], v, [2, 3])": lambda r: (
        r.s[:, None, None] - r.v.reshape(-1, 2, 3)
    ).swapaxes(1, 2),
    "tensor_reduce('logsumexp', 'u', 'i->', u, [6])[1]": lambda r: np.log(np.exp(r.u).sum(axis=1)),
    "tensor_reduce('min', 'u * v', 'ij,j->i', u, [3, s, 1], [2, 3])": lambda r: (
        r.u.reshape(-1, 2, 3) * np.stack([0 * r.s + 3, r.s, 0 * r.s + 1], axis=1)[:, None]
    ).min(axis=2),
}


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> Connection:
    """Tables and views of rows."""
    return create_rows(shared_db.connection)


@pytest.mark.parametrize("dtype", SQL_TYPES)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("call", SCALARS | OF_ELEMENTS)
def test_scalar_over_rows(connection: Connection, call: str, source: str, dtype: str) -> None:
    rows, results = read_rows(connection, SOURCES[source].format(t=f"rows_{dtype}", type=SQL_TYPES[dtype]), call)
    assert len(rows.i) > 300
    with np.errstate(all="ignore"):
        expect_equal(results, (SCALARS | OF_ELEMENTS)[call](rows), dtype)


@pytest.mark.parametrize("dtype", SQL_TYPES)
@pytest.mark.parametrize("call", SCALARS)
def test_null_in_null_out(connection: Connection, call: str, dtype: str) -> None:
    query = f"SELECT n.i, with_nulls, without FROM (SELECT i, {call} AS with_nulls FROM nulls_{dtype}) AS n "
    query += f"JOIN (SELECT i, {call} AS without FROM rows_{dtype}) AS r ON n.i = r.i"
    divisors = [NULL_EVERY[name] for name in arguments_of(call) if name in NULL_EVERY]
    for i, with_nulls, without in connection.execute(query).fetchall():
        is_null = any(i % divisor == 0 for divisor in divisors)
        expected = None if is_null else without
        if repr(with_nulls) != repr(expected):  # rows that are computed together may be rounded in another order
            np.testing.assert_array_max_ulp(np.array(with_nulls, dtype), np.array(expected, dtype), maxulp=2)


@pytest.mark.parametrize("dtype", SQL_TYPES)
@pytest.mark.parametrize("operation", ["add", "sub", "mul", "div"])
def test_arrays_of_different_lengths_in_one_chunk(connection: Connection, operation: str, dtype: str) -> None:
    table = f"(SELECT i, u[1:i % 7] AS u, v[1:i % 7] AS v FROM rows_{dtype})"
    records = connection.execute(f"SELECT u, v, tensor_{operation}(u, v) FROM {table}").fetchall()
    combine = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[operation]
    with np.errstate(all="ignore"):
        for u, v, w in records:
            np.testing.assert_array_equal(w, combine(np.array(u, dtype), np.array(v, dtype)))


LITERALS: list[tuple[str, list[Any]]] = [
    ("tensor_add([1.0, 2.0], [3, 4])", [4.0, 6.0]),
    ("tensor_add([16777217], [1])", [16777218]),
    ("tensor_add([9007199254740992::BIGINT], [1::TINYINT])", [9007199254740993]),
    ("tensor_mul([0.1], [3])", [0.1 * 3]),
    ("tensor_div([1, 0, -1], [0, 0, 0])", [np.inf, np.nan, -np.inf]),
    ("tensor_scale(2, [1, 2])", [2, 4]),
    ("tensor_sub([1.5, 2], 1)", [0.5, 1.0]),
    ("tensor_sub(1, [1.5, 2])", [-0.5, -1.0]),
    ("tensor_mul([1, 2], 9007199254740993)", [9007199254740993, 18014398509481986]),
    ("tensor_div(1, [0, 2])", [np.inf, 0.5]),
    ("tensor_pow([2, 3], [10, 0])", [1024, 1]),
    ("tensor_pow([-8, 0], 0.5)", [np.nan, 0.0]),
    ("tensor_pow([2, 0], -1.0)", [0.5, np.inf]),
    ("tensor_maximum([1.5, 2], ['nan', 'inf']::DOUBLE[])", [np.nan, np.inf]),
    ("tensor_minimum(0, [1, -2])", [0, -2]),
    ("tensor_add([], 1.0)", []),
    ("tensor_map('sqrt', [4, 2.25])", [2.0, 1.5]),
    ("tensor_fill(2, 7)", [7, 7]),
    ("tensor_outer([], [1.0])", []),
    ("tensor_gather_sum([], [], [1.0, 2.0], 2)", [0.0, 0.0]),
    ("tensor_gather_sum([2.0], [7], [1.0, 2.0], 0)", []),
    ("tensor_gather_sum([1.0, 2, 3, 4, 5], [1, 0, 1, 1, 0], [1.0, 10, 100, 1000], 2)", [807.0, 8070.0]),
    ("tensor_matmul([], [], [2, 0, 2])", [0, 0, 0, 0]),
    ("tensor_einsum('->', [2.5], [])", [2.5]),
    ("tensor_einsum(',->', [2.5], [2], [])", [5.0]),
    ("tensor_einsum('ii->i', [1, 2, 3, 4], [2])", [1, 4]),
    ("tensor_einsum('ii->', [1, 2, 3, 4], [2])", [5]),
    ("tensor_einsum(' i , j -> j i ', [1, 2], [3, 4], [2, 2])", [3, 6, 4, 8]),
    ("tensor_einsum('Ii->I', [1, 2, 3, 4], [2, 2])", [3, 7]),
    ("tensor_einsum('ij->i', [], [2, 0])", [0, 0]),
    ("tensor_matmul([1.0, 2, 3, 4, 5, 6], [1.0, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1], [1, 6, 2])", [9.0, 12.0]),
    ("tensor_einsum('ij,i->j', [1.0, 0, 0, 1, 1, 0, 0, 1, 1, 0], [1.0, 2, 3, 4, 5], [5, 2])", [9.0, 6.0]),
    ("tensor_einsum('ii,ij->j', [1.0, 0, 0, 2], [1.0, 2, 3, 4], [2, 2])", [7.0, 10.0]),
    ("tensor_einsum('i,j->j', [1.0, 2, 3, 4, 5], [1.0, 2], [5, 2])", [15.0, 30.0]),
    ("tensor_reduce('max', 'u', 'ij->i', []::DOUBLE[], [2, 0])", [-np.inf, -np.inf]),
    ("tensor_slice([1, 2, 3], 0, 2, [3])", [3]),
    ("tensor_slice([], 1, 0, [0, 2])", []),
    ("tensor_scan('sum', [], 0, [0, 2])", []),
    ("tensor_scan('max', [1, 0, 2], 0, [3])", [1, 1, 2]),
    ("tensor_split([], [0], [3, 0])", [[], [], []]),
    ("tensor_split([1, 2], [], [2])", [[1, 2]]),
    ("tensor_split([1, 2, 3, 4], [1, 0], [2, 2])", [[1], [3], [2], [4]]),
    ("tensor_split_tiles([], [2, 0], [3, 0])", [[], []]),
    ("tensor_split_tiles([], [0, 2], [3, 0])", []),
    ("tensor_split_tiles([7], [], [])", [[7]]),
    ("tensor_split_tiles([1, 2, 3], [9223372036854775807], [3])", [[1, 2, 3]]),
    ("tensor_sum([1, 2])", [1, 2]),
    ("tensor_sum([])", []),
    ("tensor_avg([])", []),
    ("tensor_avg([1, 2.5])", [1.0, 2.5]),
    ("tensor_count([])", []),
    ("tensor_stack(1, 2, 3, 0)", [0, 0, 1]),
    ("tensor_stack([1, 2], 1, 2, 1, 0.5)", [0.5, 1.0, 0.5, 2.0]),
    ("tensor_stack([], 1, 2, 3, 0.5)", []),
    ("tensor_place([1, 2], [1], [2], [4], 0.5)", [0.5, 1.0, 2.0, 0.5]),
    ("tensor_place([], [4, 0], [0, 1], [4, 1], 0.5)", [0.5, 0.5, 0.5, 0.5]),
    ("tensor_place([7], [], [], [], 0.5)", [7.0]),
    ("tensor_place(7, [1, 0], [1, 1], [2, 1], 0.5)", [0.5, 7.0]),
    ("tensor_nnz_along([0, 2, 3], 0, [3], 0)", [0, 1, 1]),
    ("tensor_nnz_along(['inf', '-inf', 'nan', '0']::DOUBLE[], 0, [4], 'inf'::DOUBLE)", [0, 1, 1, 1]),
    ("tensor_finite('W', [], 0)", []),
    ("tensor_finite('W', ['inf', '1']::FLOAT[], 'inf'::FLOAT)", [np.inf, 1.0]),
    ("tensor_finite('', [1e300], 0)", [1e300]),
]


@pytest.mark.parametrize(("call", "expected"), LITERALS)
def test_literals(connection: Connection, call: str, expected: list[Any]) -> None:
    (row,) = connection.execute(f"SELECT {call}").fetchall()
    assert repr(row[0]) == repr(expected)


def test_hashes_of_different_arrays_differ(connection: Connection) -> None:
    arrays = {
        "BIGINT": ["", "0", "0, 0", "1, 2", "2, 1", "1, 3", "-1, 2"],
        "FLOAT": ["", "0", "'-0'", "0, 0", "1, 2", "2, 1", "'nan', '1'", "'inf', '1'"],
        "DOUBLE": ["", "0", "'-0'", "0, 0", "1, 2", "2, 1", "1, 2.0000000000000004", "'nan', '1'", "'inf', '1'"],
    }
    for kind, literals in arrays.items():
        calls = ", ".join(f"tensor_hash([{literal}]::{kind}[])" for literal in literals)
        (hashes,) = connection.execute(f"SELECT {calls}").fetchall()
        assert len(set(hashes)) == len(literals)


NUMBER_LITERALS: list[tuple[str, float]] = [
    ("tensor_dot([1, 2], [3, 4])", 11),
    ("tensor_dot([], [])", 0),
    ("tensor_norm([])", 0.0),
    ("tensor_norm([3, 4])", 5.0),
    ("tensor_nnz(['nan'::DOUBLE, 0.0, '-0.0'::DOUBLE, 1])", 2),
    ("tensor_nnz([2, 'nan'::DOUBLE, 0, 2], 2)", 2),
    ("tensor_nnz(['inf', '-inf', 'nan']::DOUBLE[], 'inf'::DOUBLE)", 2),
    ("tensor_least([3, 0, 2], 0)", 2),
    ("tensor_least([3, -1, 2], 0)", -1),
    ("tensor_least([0.0, 0.0], 0)", np.inf),
    ("tensor_least([], 0.0)", np.inf),
    ("tensor_least([1, '-inf'::DOUBLE], '-inf'::DOUBLE)", 1.0),
    ("tensor_greatest([-3, 0, -2], 0)", -2),
    ("tensor_greatest([0.0, 0.0], 0)", -np.inf),
    ("tensor_greatest([]::FLOAT[], 0)", -np.inf),
    ("tensor_greatest([1, 'inf'::DOUBLE], 0)", np.inf),
    ("tensor_finite('W', 'inf'::DOUBLE, 'inf'::DOUBLE)", np.inf),
    ("tensor_is_finite([])", 1),
    ("tensor_is_finite([1, 'inf'::DOUBLE])", 0),
    ("tensor_map('neg(u) ^ 2', 3.0)", 9.0),
    ("tensor_map('-u ^ 2', 3.0)", -9.0),
    ("tensor_map('2 ^ -u ^ 2', 3.0)", 2.0**-9),
    ("tensor_map('2 ^ 3 ^ 2', 1.0)", 512.0),
    ("tensor_map('8 / 4 / 2 - 1 - 1', 1.0)", -1.0),
    ("tensor_map('max(neg(u), min(u, -2))', 3.0)", -2.0),
    ("tensor_map('1e-3 + 1.5e+2 + .5 + 2.', 3.0)", 152.501),
    ("tensor_map('min(u, inf) + max(-inf, u)', 3.0)", 6.0),
    ("tensor_map('neg', 3.0)", -3.0),
    ("tensor_map('u', 3.0)", 3.0),
]


@pytest.mark.parametrize(("call", "expected"), NUMBER_LITERALS)
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
        ("tensor_add([1], [2])", "BIGINT[]"),
        ("tensor_dot([1.0], [2.0])", "DOUBLE"),
        ("tensor_norm([1.0::FLOAT])", "FLOAT"),
        ("tensor_nnz([1.0::FLOAT])", "BIGINT"),
        ("tensor_map('abs', 1::FLOAT)", "FLOAT"),
        ("tensor_split([1.0::FLOAT], [0], [1])", "FLOAT[][]"),
        ("tensor_split_tiles([1.0::FLOAT], [1], [1])", "FLOAT[][]"),
        ("tensor_nnz_along([1.0::FLOAT], 0, [1], 0)", "BIGINT[]"),
        ("tensor_nnz([1.0::FLOAT], 0)", "BIGINT"),
        ("tensor_least([1.0::FLOAT], 0)", "FLOAT"),
        ("tensor_finite('W', [1.0::FLOAT], 0)", "FLOAT[]"),
        ("tensor_finite('W', 1.0::DOUBLE, 0)", "DOUBLE"),
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
        (
            "flatten(tensor_split_tiles(u, [0, 64, 7], [10, 100, 100]))",
            lambda u, v: flat_tiles(u.reshape(1, 10, 100, 100), [0, 64, 7]),
        ),
        (
            "tensor_place(u, [1, 5, 0], [10, 100, 100], [12, 105, 100], 0)",
            lambda u, v: np.pad(u.reshape(10, 100, 100), [(1, 1), (5, 0), (0, 0)]),
        ),
        ("tensor_stack(u, 1, 3, 1000, 0)", lambda u, v: stack(u.reshape(1, 100, 1000), np.array([1]), 3, 0)),
        (
            "tensor_nnz_along(u, 1, [10, 100, 100], 0)",
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
    (row,) = connection.execute(f"SELECT {summed} FROM {rows}", [u]).fetchall()
    expect_equal(np.asarray(row[0]), 2 * (u.reshape(2, 3) @ u.reshape(3, 2)), "float64")


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
    records = connection.execute(f"SELECT u, length_of(u) FROM '{tmp_path}/doubled.parquet' WHERE i = -1").fetchall()
    assert records == [([2.0 * (even + odd)] * 3, pytest.approx(np.sqrt(3) * 2 * (even + odd)))]
    for kind, name in (("MACRO", "length_of"), ("VIEW", "doubled"), ("TABLE", "stored")):
        connection.execute(f"DROP {kind} {name}")


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
@pytest.mark.parametrize("function", ["least", "greatest"])
@pytest.mark.parametrize("values", [["nan", "0"], ["1", "nan", "0"], ["nan", "inf", "-inf"]])
def test_nan_wins_least_and_greatest(connection: Connection, function: str, values: list[str], kind: str) -> None:
    query = f"SELECT isnan(tensor_{function}($1::{kind}[], 0))"
    assert connection.execute(query, [values]).fetchall() == [(True,)]


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT"])
def test_finite_returns_its_argument(connection: Connection, kind: str) -> None:
    """Vectors of every kind equal the same vectors without the check."""
    table = f"(SELECT i, CASE WHEN i % 7 > 0 THEN [i, -i]::{kind}[] END AS u FROM range(9000) AS t(i))"
    checked = "tensor_finite('W', u, 0) AS a, tensor_finite('W', tensor_scale(2, u), 0) AS b"
    checked += ", tensor_finite('W', i, 0) AS c, tensor_finite(CASE WHEN i % 5 > 0 THEN 'W' END, u, 0) AS d"
    plain = "u, tensor_scale(2, u), i, CASE WHEN i % 5 > 0 THEN u END"
    query = "SELECT {} FROM {} WHERE i % 3 > 0 ORDER BY i DESC"
    records = connection.execute(query.format(checked, table)).fetchall()
    assert records == connection.execute(query.format(plain, table)).fetchall()
    assert len(records) == 6000


def test_prepared_statement_runs_again(connection: Connection) -> None:
    connection.execute("PREPARE product AS SELECT tensor_einsum($1, $2::DOUBLE[], $3::DOUBLE[], $4::BIGINT[])")
    first = connection.execute("EXECUTE product('i,i->', [1, 2], [3, 4], [2])").fetchall()
    second = connection.execute("EXECUTE product('i,j->ij', [1, 2], [3], [2, 1])").fetchall()
    assert (first, second) == ([([11.0],)], [([3.0, 6.0],)])

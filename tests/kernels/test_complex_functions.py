"""The SQL functions for complex128 and complex64 compute what numpy computes."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sql_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from random_runs import examples
from sql_errors import expect_error
from sql_rows import ROWS, Array, Connection, Oracle, Rows, create_table, flat_tiles, stack

import sparseeinsum as se
from sparseeinsum.kernels.array_functions import array_functions

pytestmark = pytest.mark.engines("duckdb", reason="test_postgres_functions.py makes these calls in PostgreSQL")

SQL_TYPES = {"complex128": "DOUBLE", "complex64": "FLOAT"}
TOLERANCES = {"complex128": 1e-12, "complex64": 1e-4}
COMPLEX_FUNCTIONS = [function for function in array_functions() if "c128" in function.dtypes]

SCALARS: dict[str, Oracle] = {
    "tensor_complex_add(u, v)": lambda r: r.u + r.v,
    "tensor_complex_sub(u, v)": lambda r: r.u - r.v,
    "tensor_complex_mul(u, v)": lambda r: r.u * r.v,
    "tensor_complex_div(u, v)": lambda r: r.u / r.v,
    "tensor_complex_scale(s, u)": lambda r: r.s[:, None] * r.u,
    "tensor_complex_outer(u, v)": lambda r: np.einsum("ri,rj->rij", r.u, r.v),
    "tensor_complex_dot(u, v)": lambda r: np.einsum("ri,ri->r", r.u, r.v),
    "tensor_complex_nnz(u)": lambda r: np.count_nonzero(r.u, axis=1),
    "tensor_complex_nnz(u, [0, 0])": lambda r: np.count_nonzero(r.u, axis=1),
    "tensor_complex_nnz(u, u[3:4])": lambda r: (r.u != r.u[:, 1:2]).sum(axis=1),
    "tensor_complex_is_finite(tensor_complex_div(u, tensor_complex_from([1, 0, 1, 1, 1, 1])))": lambda r: np.zeros(
        len(r.u), int
    ),
    "tensor_complex_finite('u', u, [0, 0])": lambda r: r.u,
    "tensor_complex_map('exp(u) - 2j * u ^ 2 / conj(u + 3)', u)": lambda r: (
        np.exp(r.u) - 2j * r.u**2 / np.conj(r.u + 3)
    ),
    "tensor_complex_map('abs', u)": lambda r: np.abs(r.u) + 0j,
    "tensor_complex_fill(4, s)": lambda r: np.repeat(r.s[:, None], 4, axis=1),
    "tensor_complex_matmul(u, v, [2, 3, 2])": lambda r: r.u.reshape(-1, 2, 3) @ r.v.reshape(-1, 3, 2),
    "tensor_complex_einsum('ij,kj->ki', u, v, [2, 3, 2])": lambda r: np.einsum(
        "rij,rkj->rki", r.u.reshape(-1, 2, 3), r.v.reshape(-1, 2, 3)
    ),
    "tensor_complex_einsum('i,i->i', u, v, [6])": lambda r: r.u * r.v,
    "tensor_complex_einsum('ij->j', u, [2, 3])": lambda r: r.u.reshape(-1, 2, 3).sum(axis=1),
    "tensor_complex_reduce('sum', 'u / (v + 1j)', 'ij,ik->jk', u, v, [2, 3, 3])": lambda r: (
        r.u.reshape(-1, 2, 3, 1) / (r.v.reshape(-1, 2, 1, 3) + 1j)
    ).sum(axis=1),
    "tensor_complex_reduce('prod', '1 + u', 'ij->i', u, [2, 3])": lambda r: (1 + r.u.reshape(-1, 2, 3)).prod(axis=2),
    "tensor_complex_reduce('all', 'u', 'ij->i', u, [2, 3])": lambda r: np.asarray(
        r.u.reshape(-1, 2, 3).all(axis=2) + 0j
    ),
    "tensor_complex_scan('prod', u, 0, [2, 3])": lambda r: np.cumprod(r.u.reshape(-1, 2, 3), axis=1),
    "tensor_complex_slice(u, 1, i % 3, [2, 3])": lambda r: np.take_along_axis(
        r.u.reshape(-1, 2, 3), (r.i % 3)[:, None, None], axis=2
    ),
    "tensor_complex_split(u, [1], [2, 3])": lambda r: r.u.reshape(-1, 2, 3).transpose(0, 2, 1),
    "tensor_complex_split_tiles(u, [0, 2], [2, 3])": lambda r: flat_tiles(r.u.reshape(-1, 2, 3), [0, 2]),
    "tensor_complex_from(tensor_complex_imag(u))": lambda r: r.u.imag + 0j,
    "tensor_complex_real(u)": lambda r: r.u.real,
    "tensor_complex_imag(u)": lambda r: r.u.imag,
}

AGGREGATES: dict[str, Oracle] = {
    "tensor_complex_sum(u)": lambda r: r.u.sum(axis=0),
    "tensor_complex_prod(tensor_complex_map('1 + u / 1000', u))": lambda r: (1 + r.u / 1000).prod(axis=0),
    "tensor_complex_any(u)": lambda r: np.asarray(r.u.any(axis=0) + 0j),
    "tensor_complex_all(u)": lambda r: np.asarray(r.u.all(axis=0) + 0j),
    "tensor_complex_sum_scaled(s, v)": lambda r: r.s @ r.v,
    "tensor_complex_einsum_sum('ij,jk->ik', u, v, [2, 3, 2])": lambda r: np.einsum(
        "rij,rjk->ik", r.u.reshape(-1, 2, 3), r.v.reshape(-1, 3, 2)
    ),
    "tensor_complex_einsum_sum('i,j->ij', u, v, [6, 6])": lambda r: np.einsum("ri,rj->ij", r.u, r.v),
    "tensor_complex_stack(u, i, 2501, 3, [-1.5, 1])": lambda r: stack(r.u.reshape(-1, 2, 3), r.i, 2501, -1.5 + 1j),
    "tensor_complex_place(u, [0, i, 0], [2, 1, 3], [2, 2501, 3], [-1.5, 1])": lambda r: stack(
        r.u.reshape(-1, 2, 3), r.i, 2501, -1.5 + 1j
    ),
    "tensor_complex_nnz_along(u, 1, [2, 3], [0, 0])": lambda r: np.count_nonzero(r.u.reshape(-1, 2, 3), axis=(0, 1)),
}

# Relations of rows; {t} is the table and {type} the type of real and imaginary parts.
SOURCES = {
    **{name: sql_rows.SOURCES[name] for name in ("table", "filter", "join")},
    "at odd places": "(SELECT i, ([9.0] || u)[2:] AS u, ([9.0] || v)[2:] AS v, s FROM {t})",
    "constants": "(SELECT i, (SELECT u FROM {t} WHERE i = 5) AS u, v, [2.5, 1]::{type}[] AS s FROM {t})",
}


def interleave(array: Array) -> list[Any]:
    """Complex numbers (..., n) as lists of re, im, ..."""
    return np.ascontiguousarray(array).view(array.real.dtype).tolist()


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> Connection:
    """Tables rows_complex128 and rows_complex64, some of their numbers 0."""
    opened = shared_db.connection
    rng = np.random.default_rng(0)
    for dtype, kind in SQL_TYPES.items():
        values = (rng.uniform(-2, 2, (ROWS, 13)) + 1j * rng.uniform(-2, 2, (ROWS, 13))) * (rng.random((ROWS, 13)) < 0.9)
        columns = [interleave(values[:, :6]), interleave(values[:, 6:12]), interleave(values[:, 12:])]
        create_table(opened, f"rows_{dtype}", kind, columns, scalar=f"{kind}[]")
    return opened


def flat(value: object) -> list[float]:
    """Numbers of nested lists, in order."""
    return [number for element in value for number in flat(element)] if isinstance(value, list) else [float(value)]  # type: ignore[arg-type]  # a number


def as_oracle_gives(result: object, expected: Array) -> Array:
    """The result of a query as complex numbers, if the oracle's are complex."""
    numbers = np.array(flat(result))
    return numbers.view(np.complex128) if np.iscomplexobj(expected) else numbers


def expect_equal(result: object, expected: Array, dtype: str) -> None:
    tolerance = TOLERANCES[dtype]
    np.testing.assert_allclose(as_oracle_gives(result, expected), expected.ravel(), rtol=tolerance, atol=tolerance)


def read_rows(connection: Connection, relation: str, dtype: str, call: str) -> tuple[Rows, list[object]]:
    records = connection.execute(f"SELECT i, u, v, s, {call} FROM {relation} ORDER BY i").fetchall()
    i, u, v, s, w = zip(*records, strict=True)
    part = {"complex128": np.float64, "complex64": np.float32}[dtype]
    arrays = [np.array(column, part).view(dtype) for column in (u, v, s)]
    return Rows(arrays[0], arrays[1], arrays[2][:, 0], np.array(i)), list(w)


def test_every_function_is_tested_here() -> None:
    called = {re.split(r"\W", call)[0] for call in (*SCALARS, *AGGREGATES)}
    assert called == {function.name for function in COMPLEX_FUNCTIONS}


@pytest.mark.parametrize("dtype", SQL_TYPES)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("call", SCALARS)
def test_scalar_over_rows(connection: Connection, call: str, source: str, dtype: str) -> None:
    relation = SOURCES[source].format(t=f"rows_{dtype}", type=SQL_TYPES[dtype])
    rows, results = read_rows(connection, relation, dtype, call)
    assert len(rows.i) > 300
    with np.errstate(all="ignore"):
        expect_equal(results, SCALARS[call](rows), dtype)


@pytest.mark.parametrize("dtype", SQL_TYPES)
@pytest.mark.parametrize("call", AGGREGATES)
def test_aggregate(on_four_threads: Connection, call: str, dtype: str) -> None:
    rows, _ = read_rows(on_four_threads, f"rows_{dtype}", dtype, "1")
    ((result,),) = on_four_threads.execute(f"SELECT {call} FROM rows_{dtype}").fetchall()
    expect_equal(result, AGGREGATES[call](rows), dtype)
    if "2501" not in call:
        for group, value in on_four_threads.execute(f"SELECT i % 300, {call} FROM rows_{dtype} GROUP BY 1").fetchall():
            expect_equal(value, AGGREGATES[call](rows[rows.i % 300 == group]), dtype)


def test_aggregates_of_many_rows_on_threads(on_four_threads: Connection) -> None:
    results = "tensor_complex_sum([i, 1]), tensor_complex_sum_scaled([0, 1], [i, 2])"
    (row,) = on_four_threads.execute(f"SELECT {results} FROM range(400000) AS t(i)").fetchall()
    total = 400_000 * 399_999 / 2
    assert row == ([total, 400_000.0], [-800_000.0, total])


def test_stack_on_threads_keeps_numbers_that_share_a_part_with_the_fill(on_four_threads: Connection) -> None:
    """States merge entries that differ from the fill; a number may share its real or imaginary part."""
    fill = "[1.0, 2.0]"
    values = "CASE i % 3 WHEN 0 THEN [1.0, 5.0] WHEN 1 THEN [5.0, 2.0] ELSE [1.0, 2.0] END"
    query = f"SELECT tensor_complex_stack({values}, i, 300001, 1, {fill}) FROM range(300000) AS t(i)"
    ((result,),) = on_four_threads.execute(query).fetchall()
    expected = [*np.tile([1.0, 5.0, 5.0, 2.0, 1.0, 2.0], 100_000).tolist(), 1.0, 2.0]
    assert result == expected


@pytest.mark.parametrize("dtype", SQL_TYPES)
def test_large_matrices(connection: Connection, dtype: str) -> None:
    """Products by BLAS, which adds up in another order."""
    rng = np.random.default_rng(1)
    u, v = (rng.normal(size=shape) + 1j * rng.normal(size=shape) for shape in ((60, 50), (50, 70)))
    kind = SQL_TYPES[dtype]
    call = f"SELECT tensor_complex_matmul($1::{kind}[], $2::{kind}[], [60, 50, 70])"
    ((result,),) = connection.execute(call, [interleave(u.ravel()), interleave(v.ravel())]).fetchall()
    expect_equal(result, u @ v, "complex64" if dtype == "complex64" else "complex128")
    call = f"SELECT tensor_complex_einsum('ij,kj->ki', $1::{kind}[], $2::{kind}[], [60, 50, 70])"
    ((result,),) = connection.execute(call, [interleave(u.ravel()), interleave(v.T.ravel())]).fetchall()
    expect_equal(result, (u @ v).T, "complex64" if dtype == "complex64" else "complex128")


PARTS = (0.0, 1.0, -1.0, 0.5, -2.5, 1e-8, 3e5, 600.0)
FINITE = [complex(a, b) for a in PARTS for b in PARTS]
ENDS = [complex(a, b) for a in (0.0, 1.0, -3.0, np.inf, -np.inf, np.nan) for b in (0.0, 2.0, np.inf, -np.inf, np.nan)]
UNARY: dict[str, Callable[[Array], Array]] = {
    "-u": np.negative,
    "conj(u)": np.conj,
    "abs(u)": np.abs,
    "exp(u)": np.exp,
    "log(u)": np.log,
    "sqrt(u)": np.sqrt,
    "tanh(u)": np.tanh,
    "sign(u)": np.sign,
    "sigmoid(u)": lambda u: np.asarray(1 / (1 + np.exp(-u))),
    "not u": np.logical_not,
    "u ^ 2": np.square,
    "u ^ 3": lambda u: u * (u * u),
    "u ^ 0": lambda u: u**0,
    "u ^ -2": lambda u: u**-2.0,
    "u ^ 0.5": lambda u: u**0.5,
    "u ^ 2.5": lambda u: u**2.5,
    "u ^ (0.5 + 1j)": lambda u: u ** (0.5 + 1j),
    "u + 2j": lambda u: u + 2j,
    "u * (1.0 + 2.0j)": lambda u: u * (1 + 2j),
    "1 / u": lambda u: np.asarray(1 / u),
    "u == 1j": lambda u: np.asarray(u == 1j),
    "u != 0.5": lambda u: np.asarray(u != 0.5),
    "u and u - 1": lambda u: np.logical_and(u, u - 1),
    "u or 0j": lambda u: np.logical_or(u, 0j),
    "where(u == 1, 2, -u)": lambda u: np.where(u == 1, 2, -u),
    "-2 ^ 2 + 9007199254740992 * true - u": lambda u: -4 + 9007199254740992 - u,
}


@pytest.mark.parametrize("expression", UNARY)
@pytest.mark.parametrize("dtype", SQL_TYPES)
def test_expressions_of_one_operand(connection: Connection, expression: str, dtype: str) -> None:
    values = np.array(FINITE, dtype)
    values = values[(np.abs(values) < 1e3) | (dtype == "complex128")]
    with np.errstate(all="ignore"):
        expected = UNARY[expression](values).astype(dtype)
    call = f"SELECT tensor_complex_map($1, $2::{SQL_TYPES[dtype]}[])"
    ((result,),) = connection.execute(call, [expression, interleave(values)]).fetchall()
    numbers = np.array(result).view(np.complex128)
    finite = np.isfinite(expected)
    assert not np.isfinite(numbers[~finite]).any()
    numbers, expected = numbers[finite], expected[finite]
    assert (np.abs(numbers - expected) <= TOLERANCES[dtype] * np.abs(expected)).all()


@pytest.mark.parametrize("expression", ["exp(u)", "log(u)", "sqrt(u)", "tanh(u)", "sign(u)", "conj(u)", "u + 2j", "-u"])
def test_values_that_are_not_finite(connection: Connection, expression: str) -> None:
    values = np.array(ENDS)
    with np.errstate(all="ignore"):
        expected = UNARY[expression](values)
    ((result,),) = connection.execute(
        "SELECT tensor_complex_map($1, $2::DOUBLE[])", [expression, interleave(values)]
    ).fetchall()
    np.testing.assert_allclose(np.array(result), expected.view(float), rtol=1e-14)


def test_numbers_at_the_ends_of_the_range(connection: Connection) -> None:
    values = np.array([1e308 + 1e308j, -1e308j, 3e-320 + 4e-320j, 1e200 + 1e-200j, 1e-300j, 1 + 1e-9j, 709.9 + 1.5j])
    for expression in ("log(u)", "sqrt(u)", "exp(u / 1e4)", "tanh(u)", "sign(u)"):
        function = {"log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "sign": np.sign}.get(expression[:-3])
        with np.errstate(all="ignore"):
            expected = function(values) if function else np.exp(values / 1e4)
        call = "SELECT tensor_complex_map($1, $2::DOUBLE[])"
        ((result,),) = connection.execute(call, [expression, interleave(values)]).fetchall()
        is_finite = np.isfinite(expected)
        np.testing.assert_allclose(np.array(result).view(complex)[is_finite], expected[is_finite], rtol=1e-13)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("tensor_complex_div([1, 0, 1, 1], [0, 0, 0, 0])", [np.inf, np.nan, np.inf, np.inf]),
        ("tensor_complex_div([1e200, 1e200], [1e200, 1e200])", [1.0, 0.0]),
        ("tensor_complex_mul([], [])", []),
        ("tensor_complex_dot([], [])", [0.0, 0.0]),
        ("tensor_complex_map('sqrt', [-4, 0])", [0.0, 2.0]),
        ("tensor_complex_map('u * 2j', [1, 0])", [0.0, 2.0]),
        ("tensor_complex_map('exp', [])", []),
        ("tensor_complex_reduce('sum', 'u', 'ij->i', [], [2, 0])", [0.0, 0.0, 0.0, 0.0]),
        ("tensor_complex_reduce('prod', 'u', 'ij->i', [], [1, 0])", [1.0, 0.0]),
        ("tensor_complex_reduce('all', 'u', 'ij->i', [], [1, 0])", [1.0, 0.0]),
        ("tensor_complex_matmul([], [], [1, 0, 2])", [0.0, 0.0, 0.0, 0.0]),
        ("tensor_complex_split([], [0], [3, 0])", [[], [], []]),
        ("tensor_complex_slice([1, 2, 3, 4], 0, 1, [2])", [3.0, 4.0]),
        ("tensor_complex_sum([])", []),
        (
            "tensor_complex_place([1, 2, 3, 4], [0, 1], [2, 1], [2, 2], [0.5, 1])",
            [0.5, 1.0, 1.0, 2.0, 0.5, 1.0, 3.0, 4.0],
        ),
        ("tensor_complex_stack([1, 2], 1, 2, 1, [0.5, 1])", [0.5, 1.0, 1.0, 2.0]),
        ("tensor_complex_nnz([0, 0, 0, 1, 'nan'::DOUBLE, 0])", 2),
        ("tensor_complex_is_finite([0, 'inf'::DOUBLE])", 0),
        ("tensor_complex_is_finite([1e308, 1e308])", 1),
        ("tensor_complex_finite('A', [1e308, 1e308], [0, 0])", [1e308, 1e308]),
        ("tensor_complex_finite('A', ['inf'::DOUBLE, 0], ['inf'::DOUBLE, 0])", [np.inf, 0.0]),
        ("tensor_complex_from([])", []),
        ("tensor_complex_add(NULL, [1.0, 2.0])", None),
    ],
)
def test_literals(connection: Connection, call: str, expected: object) -> None:
    ((result,),) = connection.execute(f"SELECT {call}").fetchall()
    assert repr(result) == repr(expected)


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("tensor_complex_add([1::FLOAT, 2::FLOAT], [2::FLOAT, 1::FLOAT])", "FLOAT[]"),
        ("tensor_complex_add([1, 2], [2, 3])", "DOUBLE[]"),
        ("tensor_complex_add([1::FLOAT, 2::FLOAT], [2::DOUBLE, 1])", "DOUBLE[]"),
        ("tensor_complex_scale([1, 0.5], [2::FLOAT, 1::FLOAT])", "FLOAT[]"),
        ("tensor_complex_from([1])", "DOUBLE[]"),
        ("tensor_complex_from([1::FLOAT])", "FLOAT[]"),
        ("tensor_complex_real([1::FLOAT, 2::FLOAT])", "FLOAT[]"),
        ("tensor_complex_split([1::FLOAT, 2::FLOAT], [0], [1])", "FLOAT[][]"),
        ("tensor_complex_split_tiles([1::FLOAT, 2::FLOAT], [0], [1])", "FLOAT[][]"),
        ("tensor_complex_nnz([1::FLOAT, 2::FLOAT])", "BIGINT"),
    ],
)
def test_result_types(connection: Connection, call: str, kind: str) -> None:
    assert connection.execute(f"SELECT typeof({call})").fetchall() == [(kind,)]


MALFORMED = [
    ("tensor_complex_add([1, 2, 3], [1, 2, 3])", ("argument 1 has 3 elements, an odd number",)),
    ("tensor_complex_add([1, 2], [1])", ("argument 2 has 1 elements, an odd number",)),
    ("tensor_complex_add([1, 2], [1, 2, 3, 4])", ("u has 1 elements, v has 2",)),
    ("tensor_complex_add([1, NULL], [1, 2])", ("argument 1", "NULL")),
    ("tensor_complex_scale([1], [1, 2])", ("argument 1 has 1 elements", "[re, im]")),
    ("tensor_complex_scale([1, 2, 3, 4], [1, 2])", ("argument 1 has 4 elements", "[re, im]")),
    ("tensor_complex_fill(2, [])", ("argument 2 has 0 elements", "[re, im]")),
    ("tensor_complex_stack([1, 2], 0, 1, 1, [0])", ("argument 5 has 1 elements",)),
    ("tensor_complex_nnz([1, 2], [0, 0, 0])", ("argument 2 has 3 elements",)),
    ("tensor_complex_matmul([1, 2], [3, 4], [1, 2, 1])", ("operand 1 has 1 elements", "2")),
    ("tensor_complex_einsum('i->', [1, 2, 3, 4], [4])", ("operand 1 has 2 elements", "4")),
    ("tensor_complex_scan('max', [1, 2], 0, [1])", ("no order",)),
    ("tensor_complex_slice([1, 2, 3, 4], 0, 2, [2])", ("position 2 is outside an axis of 2",)),
    ("tensor_complex_sum([1])", ("argument 1 has 1 elements, an odd number",)),
    ("tensor_complex_map('u < 2', [1, 2])", ("no order", "tensor_complex_real")),
    ("tensor_complex_map('relu', [1, 2])", ("no order",)),
    ("tensor_complex_map('max(u, 1)', [1, 2])", ("no order",)),
    ("tensor_complex_map('min(u, 1)', [])", ("no order",)),
    ("tensor_complex_map('2jj', [1, 2])", ("expression cannot be read",)),
    ("tensor_complex_map('2 j', [1, 2])", ("expression cannot be read",)),
    ("tensor_complex_map('j', [1, 2])", ("unknown function",)),
    ("tensor_complex_reduce('max', 'u', 'i->', [1, 2], [1])", ("no order",)),
    ("tensor_complex_reduce('logsumexp', 'u', 'i->', [1, 2], [1])", ("no order",)),
    ("tensor_complex_reduce('sum', 'u >= v', 'i,i->', [1, 2], [1, 2], [1])", ("no order",)),
    ("tensor_complex_finite('A', [1, 'inf'::DOUBLE], [0, 0])", ("A turned NaN or infinite",)),
    ("tensor_map('u * 2j', [1.0])", ("imaginary literal", "tensor_complex_map")),
    ("tensor_reduce('sum', '1j', 'i->', [1.0], [1])", ("imaginary literal",)),
]


@pytest.mark.parametrize(("call", "words"), MALFORMED, ids=[call for call, _ in MALFORMED])
def test_errors(connection: Connection, call: str, words: tuple[str, ...]) -> None:
    expect_error(connection, f"SELECT {call}", call.split("(")[0], *words)


def test_an_error_in_one_of_many_rows(connection: Connection) -> None:
    odd = "(SELECT CASE WHEN i = 4321 THEN [1.0] ELSE [1.0, i] END AS u FROM range(6000) AS t(i))"
    for call in ("tensor_complex_add(u, u)", "tensor_complex_sum(u)", "tensor_complex_split(u, [0], [1])"):
        expect_error(connection, f"SELECT {call} FROM {odd}", "argument 1 has 1 elements, an odd number")


ARITHMETIC: dict[str, Callable[..., Array]] = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
COMPARISONS: dict[str, Callable[..., Array]] = {
    "==": np.equal,
    "!=": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
}
SMOOTH: dict[str, Callable[..., Array]] = {"conj": np.conj, "abs": np.abs, "exp": np.exp, "tanh": np.tanh}
JUMPS: dict[str, Callable[..., Array]] = {"sqrt": np.sqrt, "sign": np.sign, "not": np.logical_not, "log": np.log}


@settings(max_examples=examples(150))
@given(data=st.data())
def test_random_expressions(connection: Connection, data: st.DataObject) -> None:
    """Expressions as trees of text and numpy's values, over numbers that stay in range."""
    numbers = st.sampled_from([0, 1, -1, 2, 0.5, -1.5])
    size = data.draw(st.sampled_from([1, 3, 300]))
    seed = np.random.default_rng(data.draw(st.integers(0, 99)))
    u, v = (np.round(seed.uniform(-2, 2, size) + 1j * seed.uniform(-2, 2, size), 2) for _ in "uv")

    def draw_leaf() -> tuple[str, Array]:
        real, imaginary = data.draw(numbers), data.draw(numbers)
        literal = (f"({real} + {imaginary}j)", np.asarray(complex(real, imaginary)))
        return (("u", u), ("v", v), literal)[data.draw(st.integers(0, 2))]

    def draw(depth: int) -> tuple[str, Array]:
        """Functions that jump get exact numbers, since rounded ones may lie on either side."""
        kind = data.draw(st.sampled_from(["leaf"] if depth == 0 else ["binary", "unary", "where", "jump", "compare"]))
        if kind == "leaf":
            return draw_leaf()
        if kind in ("jump", "compare"):
            (text, value), (other_text, other) = draw_leaf(), draw_leaf()
            name = data.draw(st.sampled_from(list(JUMPS if kind == "jump" else COMPARISONS)))
            if kind == "jump":
                return f"({name}({text}))", np.asarray(JUMPS[name](value), complex)
            return f"({text} {name} {other_text})", COMPARISONS[name](value, other).astype(complex)
        text, value = draw(depth - 1)
        if kind == "unary":
            name = data.draw(st.sampled_from(list(SMOOTH)))
            return f"{name}({text})", np.asarray(SMOOTH[name](value), complex)
        other_text, other = draw(depth - 1)
        if kind == "where":
            return f"where(u == v or v == 1, {text}, {other_text})", np.where((u == v) | (v == 1), value, other)
        symbol = data.draw(st.sampled_from(list(ARITHMETIC)))
        return f"({text} {symbol} {other_text})", np.asarray(ARITHMETIC[symbol](value, other), complex)

    with np.errstate(all="ignore"):
        text, value = draw(3)
        expected = np.broadcast_to(value, (size,))
    call = "SELECT tensor_complex_reduce('sum', $1, 'i,i->i', $2::DOUBLE[], $3::DOUBLE[], $4::BIGINT[])"
    ((result,),) = connection.execute(call, [text, interleave(u), interleave(v), [size]]).fetchall()
    is_compared = np.isfinite(expected) & (np.abs(expected) < 1e6)
    np.testing.assert_allclose(np.array(result).view(complex)[is_compared], expected[is_compared], rtol=1e-8, atol=1e-8)

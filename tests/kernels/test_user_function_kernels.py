"""Users' Python functions compile into SQL expressions, or are refused where they could fail."""

import math
import random
import re
from collections.abc import Callable
from functools import cache

import duckdb
import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray
from sql_rows import SQL_TYPES

import sparseeinsum as se
from sparseeinsum.errors import SemanticsError
from sparseeinsum.kernels import descriptors
from sparseeinsum.kernels.user_function_table import compile_function

pytestmark = pytest.mark.engines("duckdb", reason="PostgreSQL has no functions of Python's")

Array = NDArray[np.float64]
Function = Callable[..., object]

NUMBERS = np.array([-np.inf, -2.5, -1.0, -0.0, 0.0, 0.5, 1.0, 3.0, np.inf, np.nan])


@njit  # type: ignore[untyped-decorator]  # numba has no stubs
def doubled(x: float) -> float:
    return x * 2


@njit  # type: ignore[untyped-decorator]  # numba has no stubs
def divides(x: float) -> float:
    return 1 / x


def gelu(x: float) -> float:
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


def halvings(x: float) -> int:
    count = 0
    while 1 < x < math.inf:
        x, count = x / 2, count + 1
    return count


def huber(x: float, width: float) -> float:
    if abs(x) <= width:
        return x * x / 2
    return width * (abs(x) - width / 2)


# Functions, and their values for arrays.
FUNCTIONS: dict[str, tuple[Function, Callable[..., Array]]] = {
    "gelu": (gelu, lambda x: 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))),
    "halvings": (halvings, lambda x: np.where((x > 1) & (x < np.inf), np.ceil(np.log2(np.where(x > 1, x, 1))), 0)),
    "is_small": (lambda x: abs(x) < 1, lambda x: np.abs(x) < 1),
    "of_compiled": (lambda x: doubled(x) + 1, lambda x: 2 * x + 1),
    "compiled": (doubled, lambda x: 2 * x),
    "of_divided": (lambda x: 1 - divides(x), lambda x: 1 - 1 / x),
    "inverse": (lambda x: 1 / x, lambda x: 1 / x),
    "log1p_": (lambda x: math.log1p(x) if x > -1 else math.nan, lambda x: np.where(x > -1, np.log1p(x), np.nan)),
    "hypotenuse": (lambda x, y: math.hypot(x, y), np.hypot),
    "huber": (
        huber,
        lambda x, w: np.where(np.abs(x) <= w, x * x / 2, w * (np.abs(x) - w / 2)),
    ),
    "modulo": (lambda x, y: x % y, lambda x, y: x % y),
    "fused": (lambda x, y, z: x * y + z, lambda x, y, z: x * y + z),
    "bounded": (
        lambda x, least, greatest: max(least, min(x, greatest)),
        lambda x, least, greatest: np.maximum(least, np.minimum(x, greatest)),
    ),
}


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    """A database that was open before any function was compiled."""
    return se.connect().connection


def compile_named(*names: str) -> None:
    for name in names:
        _compile_once(name)


@cache
def _compile_once(name: str) -> None:
    compile_function(name, FUNCTIONS[name][0])


def compute(connection: duckdb.DuckDBPyConnection, text: str, u: Array, v: Array) -> Array:
    kind = SQL_TYPES[str(u.dtype)]
    query = f"SELECT tensor_reduce('sum', $1, 'i,i->i', $2::{kind}[], $3::{kind}[], [$4::BIGINT])"
    ((result,),) = connection.execute(query, [text, u, v, u.size]).fetchall()
    return np.asarray(result)


def arguments_of(name: str) -> int:
    function = FUNCTIONS[name][0]
    return int(getattr(function, "py_func", function).__code__.co_argcount)


@pytest.mark.parametrize("dtype", SQL_TYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(connection: duckdb.DuckDBPyConnection, name: str, dtype: str) -> None:
    compile_named(name)
    u, v = (grid.ravel().astype(dtype) for grid in np.meshgrid(NUMBERS, NUMBERS))
    operands = (u, v, np.full(u.size, 2.0))[: arguments_of(name)]
    call = f"{name}({', '.join(('u', 'v', '2')[: len(operands)])})"
    keep = ~np.isnan(operands).any(axis=0)  # Python's min and max of NaN depend on the order
    result = compute(connection, call, u, v)
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name][1](*(operand.astype(float) for operand in operands))
    np.testing.assert_allclose(result[keep], expected[keep].astype(dtype), rtol=1e-15 if dtype == "float64" else 1e-6)


@pytest.mark.parametrize("size", [0, 1, 256, 257, 5000])
def test_inside_expressions_of_any_length(connection: duckdb.DuckDBPyConnection, size: int) -> None:
    compile_named("fused", "gelu", "hypotenuse")
    u, v = np.random.default_rng(size).normal(size=(2, size))
    result = compute(
        connection, "1 + fused(gelu(u - v), 2 * v, where(u < v, fused(u, u, u), v)) * hypotenuse(u, v)", u, v
    )
    inner = np.where(u < v, u * u + u, v)
    expected = 1 + (FUNCTIONS["gelu"][1](u - v) * 2 * v + inner) * np.hypot(u, v) if size else u
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_arrays_and_numbers_on_many_threads(on_four_threads: duckdb.DuckDBPyConnection) -> None:
    compile_named("inverse")
    query = "SELECT sum(tensor_map('inverse', x)), sum(list_sum(tensor_map('inverse(2 * u)', [x, x])))"
    (row,) = on_four_threads.execute(f"{query} FROM (SELECT i::DOUBLE AS x FROM range(1, 300001) AS t(i))").fetchall()
    assert row == (pytest.approx(np.sum(1 / np.arange(1, 300_001))),) * 2


def test_a_name_alone_is_applied_to_u(connection: duckdb.DuckDBPyConnection) -> None:
    compile_named("compiled", "fused", "gelu")
    assert connection.execute("SELECT tensor_map('compiled', [1.5, 2])").fetchall() == [([3.0, 4.0],)]
    for call in ("tensor_map('fused', 1.0)", "tensor_map('gelu(u, u)', 1.0)", "tensor_map('fused(u, u)', 1.0)"):
        with pytest.raises(duckdb.Error, match="the expression cannot be read"):
            connection.execute(f"SELECT {call}")


def test_every_database_knows_them(connection: duckdb.DuckDBPyConnection) -> None:
    compile_named("compiled")
    query = "SELECT tensor_map('compiled', 4.0)"
    assert se.connect().connection.execute(query).fetchall() == [(8.0,)]
    assert duckdb.connect().execute(query).fetchall() == connection.cursor().execute(query).fetchall() == [(8.0,)]


def test_a_new_function_replaces_the_old(connection: duckdb.DuckDBPyConnection) -> None:
    assert compile_function("changing", lambda x: x + 1) == 1
    assert connection.execute("SELECT tensor_map('changing(u)', 4.0)").fetchall() == [(5.0,)]
    assert compile_function("changing", lambda x, y, z: x + y + z) == 3
    assert connection.execute("SELECT tensor_map('changing(u, u, 1)', 4.0)").fetchall() == [(9.0,)]
    with pytest.raises(duckdb.Error, match="the expression cannot be read"):
        connection.execute("SELECT tensor_map('changing(u)', 4.0)")


def raises(x: float) -> float:
    if x > 3:
        raise ValueError("too large")
    return x


def sometimes(x: float) -> float | None:
    return x if x > 0 else None


@njit  # type: ignore[untyped-decorator]  # numba has no stubs
def fibonacci(x: float) -> float:
    return x if x < 2 else fibonacci(x - 1) + fibonacci(x - 2)


PRIMES, LARGE = np.array([2, 3, 5, 7]), np.zeros(1_000_000)


@njit  # type: ignore[untyped-decorator]  # numba has no stubs
def prime(x: float) -> float:
    return float(PRIMES[int(x)])


# Functions that cannot be compiled, and the message.
REFUSED: list[tuple[Function, str]] = [
    (raises, "may raise an exception"),
    (lambda x: prime(x) + 1, "reads an array"),
    (lambda x: LARGE[int(x)], "reads an array|may raise an exception|cannot be compiled"),
    (lambda x: prime(x + LARGE.size), "reads an array"),
    (lambda x: PRIMES[int(x)], "reads an array"),
    (lambda x: (1.0, 2.0)[int(x)], "may raise an exception"),
    (lambda x: [x, x][int(x)], "it needs NRT_"),
    (lambda x: np.zeros(3).sum() + x, "it needs NRT_"),
    (lambda x: random.random() + x, "it needs numba_get_py_random_state"),
    (lambda x: float(str(x)), "cannot be compiled|it needs"),
    (lambda x: unknown(x), "cannot be compiled: .*'unknown' is not defined"),  # type: ignore[name-defined]  # noqa: F821
    (lambda x: None, "returns none, but must return a real number"),
    (sometimes, r"returns OptionalType\(float64\), but must return a real number"),
    (lambda x: x * 1j, "returns complex128, but must return a real number"),
    (lambda x: (x, x), "must return a real number"),
    (fibonacci, "calls itself|cannot be compiled"),
    (math.sin, "must be written in Python"),
    (np.sin, "must be written in Python"),
    (lambda: 1.0, r"takes \(\); it must take one, two or three numbers"),
    (lambda a, b, c, d: a, r"takes \(a, b, c, d\); it must take"),
    (lambda *a: 1.0, r"takes \(\*a\); it must take"),
    (lambda a, *, b: a, r"takes \(a, b\); it must take"),
]


@pytest.mark.parametrize(("function", "words"), REFUSED)
def test_refused(connection: duckdb.DuckDBPyConnection, function: Function, words: str) -> None:
    with pytest.raises(SemanticsError, match=f"function refused .*({words})"):
        compile_function("refused", function)
    with pytest.raises(duckdb.Error, match="unknown function"):
        connection.execute("SELECT tensor_map('refused(u)', 1.0)")


@pytest.mark.parametrize("name", ["", "2x", "a b", "wärme", "a-b", "x" * 65, "a(u)"])
def test_invalid_names(name: str) -> None:
    with pytest.raises(SemanticsError, match=re.escape(repr(name))):
        compile_function(name, gelu)


@pytest.mark.parametrize("name", ["u", "v", "exp", "and", "not", "lt", "where", "true", "nan"])
def test_names_that_are_taken(name: str) -> None:
    with pytest.raises(SemanticsError, match=f"the name {name} is taken"):
        compile_function(name, gelu)


def test_longest_name(connection: duckdb.DuckDBPyConnection) -> None:
    compile_function("_" * 63 + "9", lambda x: x + 9)
    assert connection.execute("SELECT tensor_map(repeat('_', 63) || '9(u)', 1.0)").fetchall() == [(10.0,)]
    with pytest.raises(duckdb.Error, match="unknown function"):
        connection.execute("SELECT tensor_map(repeat('_', 63) || '(u)', 1.0)")


def test_one_function_too_many(connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_function("last_one", lambda x: x)
    monkeypatch.setattr(descriptors, "MAX_USER_FUNCTIONS", 1)
    with pytest.raises(SemanticsError, match="the most there may be; one_too_many is one too many"):
        compile_function("one_too_many", lambda x: x)
    compile_function("last_one", lambda x: x + 3)
    assert connection.execute("SELECT tensor_map('last_one(u)', 1.0)").fetchall() == [(4.0,)]

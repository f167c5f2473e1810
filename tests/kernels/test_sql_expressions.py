"""`tensor_map` and `tensor_reduce` evaluate scalar expressions as numpy does, and refuse malformed ones."""

import re
from collections.abc import Callable

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_runs import examples
from sql_errors import expect_error
from sql_rows import SQL_TYPES, Array, Connection

import sparseeinsum as se
from sparseeinsum.language.scalar import evaluate, write
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar

pytestmark = pytest.mark.engines("duckdb", reason="calls in DuckDB's SQL, of kernels that PostgreSQL has, too")

NUMBERS = (-np.inf, -2.5, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, np.inf, np.nan)


@pytest.fixture(scope="module")
def connection(shared_db: se.Database) -> Connection:
    """One connection for all expressions of this module."""
    return shared_db.connection


def compute(connection: Connection, text: str, u: Array, v: Array) -> Array:
    """The value of an expression of arrays of equal length, by tensor_reduce."""
    kind = SQL_TYPES[str(u.dtype)]
    query = f"SELECT tensor_reduce('sum', $1, 'i,i->i', $2::{kind}[], $3::{kind}[], [$4::BIGINT])"
    ((result,),) = connection.execute(query, [text, u, v, u.size]).fetchall()
    return np.asarray(result, u.dtype)


EXPRESSIONS: dict[str, Callable[[Array, Array], Array]] = {
    "u < v": np.less,
    "u<=v": np.less_equal,
    "u > v": np.greater,
    "u>= v": np.greater_equal,
    "u ==v": np.equal,
    "u != v": np.not_equal,
    "u and v": np.logical_and,
    "u or v": np.logical_or,
    "not u": lambda u, v: np.logical_not(u),
    "not not v": lambda u, v: v != 0,
    "where(u, v, 7)": lambda u, v: np.where(u, v, 7),
    "where(u < v, u, where(v, -1, -2))": lambda u, v: np.where(u < v, u, np.where(v, -1, -2)),
    "conj(u) + conj(v)": lambda u, v: u + v,
    "true": lambda u, v: np.ones_like(u),
    "false or u": lambda u, v: u != 0,
    "u == nan or v == inf": lambda u, v: v == np.inf,
    "not u == v": lambda u, v: u != v,
    "not u and v or u": lambda u, v: (np.logical_not(u) & (v != 0)) | (u != 0),
    "u and v or not u < 1": lambda u, v: ((u != 0) & (v != 0)) | np.logical_not(u < 1),
    "u + 1 < 2 * v": lambda u, v: u + 1 < 2 * v,
    "-u < v ^ 2 - 1": lambda u, v: -u < v**2 - 1,
    "(u < v) == (v < 1)": lambda u, v: (u < v) == (v < 1),
    "1e-05 * u >= 2.0e0 * 0": lambda u, v: u >= 0,
    "pow(u, 2) - neg(v)": lambda u, v: u**2 + v,
}


@pytest.mark.parametrize("dtype", SQL_TYPES)
@pytest.mark.parametrize("text", EXPRESSIONS)
def test_all_pairs_of_special_numbers(connection: Connection, text: str, dtype: str) -> None:
    u, v = (grid.ravel() for grid in np.meshgrid(np.array(NUMBERS, dtype), np.array(NUMBERS, dtype)))
    with np.errstate(all="ignore"):
        expected = EXPRESSIONS[text](u, v)
    np.testing.assert_array_equal(compute(connection, text, u, v), expected)


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 1000])
def test_arrays_of_several_blocks(connection: Connection, size: int) -> None:
    u, v = np.random.default_rng(size).normal(size=(2, size))
    result = compute(connection, "where(u < v and not v > 1, u * v, max(u, v) - 1)", u, v)
    np.testing.assert_array_equal(result, np.where((u < v) & (v <= 1), u * v, np.maximum(u, v) - 1))


@pytest.mark.parametrize("dtype", SQL_TYPES)
@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregates_of_reduce(connection: Connection, name: str, dtype: str) -> None:
    """Along lines that end in one element, over adjacent elements, and over elements with a stride."""
    rows = [
        (1.0, 2.5, -3.0),
        (0.0, -0.0, 0.0),
        (np.inf, 1, np.inf),
        (-np.inf,) * 3,
        (2, np.nan, 3),
        (np.inf, -np.inf, 0),
    ]
    values = np.array(rows, dtype)
    kind = SQL_TYPES[dtype]
    for spec, axis in (("ij->i", 1), ("ij->j", 0)):
        query = f"SELECT tensor_reduce($1, 'u', $2, $3::{kind}[], [6, 3])"
        ((result,),) = connection.execute(query, [name, spec, values.ravel()]).fetchall()
        with np.errstate(all="ignore"):
            expected = AGGREGATES[name].numpy(values, axis=(axis,)).astype(dtype)
        np.testing.assert_allclose(result, expected, rtol=1e-6)
    ((result,),) = connection.execute(
        f"SELECT tensor_reduce($1, 'u', 'ij->i', []::{kind}[], [2, 0])", [name]
    ).fetchall()
    assert result == [AGGREGATES[name].identity(dtype)] * 2


OPERANDS = st.sampled_from((Operand(0), Operand(1)))
LITERALS = st.sampled_from((0.0, 0.5, 1.0, 2.0, -1.5, 1e-05, 1e22, np.inf, -np.inf, np.nan)).map(Literal)
INTEGERS = st.sampled_from((0, 1, 2, -3)).map(Literal)


def calls(names: str, *arguments: st.SearchStrategy[Scalar]) -> st.SearchStrategy[Scalar]:
    """Calls of one of several functions."""
    return st.builds(Call, st.sampled_from(names.split()), st.tuples(*arguments))


def numbers(depth: int) -> st.SearchStrategy[Scalar]:
    """Expressions whose values IEEE 754 determines; divisors are not zeros of min and max."""
    leaves = OPERANDS | LITERALS | calls("add sub mul", OPERANDS, INTEGERS)
    if depth == 0:
        return leaves
    part = numbers(depth - 1)
    return (
        leaves
        | calls("add sub mul min max", part, part)
        | calls("div", part, OPERANDS | LITERALS)
        | calls("pow", part, st.sampled_from((1.0, 2.0)).map(Literal))
        | calls("neg abs sqrt sign relu conj", part)
        | calls("where", conditions(depth - 1), part, part)
    )


def conditions(depth: int) -> st.SearchStrategy[Scalar]:
    """Boolean expressions."""
    part = numbers(depth)
    compared = calls("lt le gt ge eq ne", part, part) | st.booleans().map(Literal) | calls("and or", part, part)
    if depth == 0:
        return compared
    smaller = conditions(depth - 1)
    return compared | calls("and or eq ne", smaller, smaller) | calls("not", smaller)


def curves(depth: int) -> st.SearchStrategy[Scalar]:
    """Expressions whose rounding differs slightly between libraries."""
    curve = calls("exp log sigmoid tanh", numbers(depth))
    return curve | calls("mul", curve, curve) | calls("neg abs sqrt", curve)


@settings(max_examples=examples(500))
@given(numbers(3) | conditions(3))
def test_random_expressions_of_the_language(connection: Connection, expression: Scalar) -> None:
    u, v = (grid.ravel() for grid in np.meshgrid(NUMBERS, NUMBERS))
    result = compute(connection, write(expression), u, v)
    np.testing.assert_array_equal(result, np.broadcast_to(evaluate(expression, (u, v)), u.shape))


@settings(max_examples=examples(200))
@given(curves(2))
def test_random_curves_of_the_language(connection: Connection, expression: Scalar) -> None:
    u, v = (grid.ravel() for grid in np.meshgrid(NUMBERS, NUMBERS))
    result = compute(connection, write(expression), u, v)
    expected = np.broadcast_to(evaluate(expression, (u, v)), u.shape)
    np.testing.assert_allclose(result, expected, rtol=1e-13, atol=1e-300)


# Calls, and words that their message contains besides the function's name.
MALFORMED: list[tuple[str, tuple[object, ...]]] = [
    ("tensor_map('sine', [1])", ("unknown function", "tanh")),
    ("tensor_map('exp2(u)', [1])", ("unknown function",)),
    ("tensor_map('u * v', [1])", ("names v",)),
    ("tensor_map('uu', [1])", ("unknown function",)),
    ("tensor_map('', 1)", ("expression",)),
    ("tensor_map(' ', 1)", ("expression",)),
    ("tensor_map('u +', 1)", ("expression",)),
    ("tensor_map('(u', 1)", ("expression",)),
    ("tensor_map('u)', 1)", ("expression",)),
    ("tensor_map('u u', 1)", ("expression",)),
    ("tensor_map('abs u', 1)", ("expression",)),
    ("tensor_map('max', 1)", ("expression",)),
    ("tensor_map('max(u)', 1)", ("expression",)),
    ("tensor_map('max(u, u, u)', 1)", ("expression",)),
    ("tensor_map('max((u, u))', 1)", ("expression",)),
    ("tensor_map('max(abs(u, u))', 1)", ("expression",)),
    ("tensor_map('(u, u)', 1)", ("expression",)),
    ("tensor_map('1.2.3', 1)", ("expression",)),
    ("tensor_map('. + u', 1)", ("expression",)),
    ("tensor_map('1e', 1)", ("expression",)),
    ("tensor_map('2u', 1)", ("expression",)),
    ("tensor_map('u ** 2', 1)", ("expression",)),
    ("tensor_map('ü', 1)", ("expression",)),
    ("tensor_map(repeat('(', 600), 1)", ("too long",)),
    ("tensor_map('u' || repeat(' + u', 600), 1)", ("too long",)),
    ("tensor_map('u' || repeat(' + 1', 300), 1)", ("too long",)),
    ("tensor_map('(u + ' || repeat('(u + ', 15) || 'u' || repeat(')', 16), 1)", ("nested too deeply",)),
    ("tensor_map('u + ' || repeat('1', 41), 1)", ("too long",)),
    ("tensor_map(repeat('u', 4097), 1)", (4097, 4096)),
    ("tensor_map('u < 2 < 3', 1)", ("expression",)),
    ("tensor_map('u == 2 != u', 1)", ("expression",)),
    ("tensor_map('u = 2', 1)", ("expression",)),
    ("tensor_map('u ! 2', 1)", ("expression",)),
    ("tensor_map('u < = 2', 1)", ("expression",)),
    ("tensor_map('u <', 1)", ("expression",)),
    ("tensor_map('u not 2', 1)", ("expression",)),
    ("tensor_map('u + not u', 1)", ("expression",)),
    ("tensor_map('- not u', 1)", ("expression",)),
    ("tensor_map('u < not u', 1)", ("expression",)),
    ("tensor_map('and', 1)", ("expression",)),
    ("tensor_map('u and', 1)", ("expression",)),
    ("tensor_map('or(u, u)', 1)", ("expression",)),
    ("tensor_map('lt(u)', 1)", ("expression",)),
    ("tensor_map('uand u', 1)", ("unknown function",)),
    ("tensor_map('where(u, 1)', 1)", ("expression",)),
    ("tensor_map('where(u, 1, 2, 3)', 1)", ("expression",)),
    ("tensor_map('where(u, (1, 2))', 1)", ("expression",)),
    ("tensor_map('where', 1)", ("expression",)),
    ("tensor_map('True', 1)", ("unknown function",)),
    ("tensor_map('bound(j)', 1)", ("unknown function",)),
    ("tensor_map('_', 1)", ("unknown function",)),
    ("tensor_map('u1', 1)", ("unknown function",)),
    ("tensor_reduce('sum', 'u + w', 'i->', [1], [1])", ("unknown function",)),
    ("tensor_reduce('sum', 'u + v', 'i->', [1], [1])", ("names v",)),
]


@pytest.mark.parametrize(("call", "words"), MALFORMED, ids=[call for call, _ in MALFORMED])
def test_message(connection: Connection, call: str, words: tuple[object, ...]) -> None:
    expect_error(connection, f"SELECT {call}", call.split("(")[0], *words)


TOKENS = [
    "u",
    "2",
    ".5",
    "1e1",
    "+",
    "-",
    "*",
    "/",
    "^",
    "(",
    ")",
    ",",
    "max(",
    "min(",
    "abs(",
    "neg(",
    "sqrt(",
    "relu",
    "where(",
    "nan",
    " ",
]
PYTHON = {
    "max": np.maximum,
    "min": np.minimum,
    "abs": np.abs,
    "neg": np.negative,
    "sqrt": np.sqrt,
    "where": np.where,
    "nan": np.nan,
    "f": np.float64,
}


@settings(max_examples=examples(600))
@given(st.lists(st.sampled_from(TOKENS), max_size=9).map("".join))
def test_random_text(connection: Connection, text: str) -> None:
    """Text that is accepted as an expression has the value that Python gives it."""
    try:
        ((result,),) = connection.execute("SELECT tensor_map($1, 3.0)", [text]).fetchall()
    except duckdb.Error as error:
        assert "tensor_map: the expression" in str(error)
    else:
        assert result == pytest.approx(value_by_python(text), nan_ok=True)


def value_by_python(text: str) -> float:
    """The value of an expression of u = 3 by Python with numpy's numbers."""
    if text == "relu":
        return 3.0
    numbers = re.sub(r"(\d+\.?\d*|\.\d+)(e\d+)?", r"f('\g<0>')", text.strip())
    with np.errstate(all="ignore"):
        return float(eval(numbers.replace("^", "**"), {"__builtins__": {}}, {**PYTHON, "u": np.float64(3)}))

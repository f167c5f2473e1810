"""The SQL of fully relational plans computes as numpy does, special values included."""

import itertools
import re
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from random_runs import examples
from reading import engine_of
from sqlglot import exp

import sparseeinsum as se
from sparseeinsum.kernels.array_functions import array_functions
from sparseeinsum.language.scalar import evaluate, operands_of, write
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.render.dialects import DUCKDB, POSTGRESQL, Dialect, write_sql
from sparseeinsum.render.number_expressions import number_expression
from sparseeinsum.semantics.dense import evaluate_program
from sparseeinsum.statistics.number_literals import number

Array = NDArray[Any]

pytestmark = pytest.mark.engines("duckdb", "postgresql")

DTYPES = ("float64", "float32")
SQL_TYPES = {
    "duckdb": {"float64": "DOUBLE", "float32": "FLOAT", "int64": "BIGINT"},
    "postgresql": {"float64": "float8", "float32": "real", "int64": "bigint"},
}
ORDERS = ("lt", "le", "gt", "ge", "eq", "ne")
COMPARING = (*ORDERS, "and", "or", "not", "where", "min", "max", "relu", "abs")
PLAIN = {DUCKDB: ("add", "sub", "mul", "neg", *COMPARING), POSTGRESQL: ("neg", *COMPARING)}  # arithmetic of engines
EXACT = (
    "add",
    "sub",
    "mul",
    "neg",
    "div",
    "abs",
    "sqrt",
    "sign",
    "relu",
    "min",
    "max",
)  # IEEE 754 leaves no choice of the last bit

NUMBERS = {
    "float64": [0.0, 1.0, 2.0, 3.0, 0.5, 7.0, 0.1, np.pi, 17.25, 745.2, 1e16, 5e-324, 2.2e-308, 1e308, 1.7e308, np.inf],
    "float32": [0.0, 1.0, 2.0, 3.0, 0.5, 7.0, 0.1, np.pi, 17.25, 88.8, 16777217.0, 1e-45, 1.2e-38, 3e38, np.inf],
}
SPECIAL = {
    dtype: np.array([*values, *(-value for value in values), np.nan], dtype) for dtype, values in NUMBERS.items()
}


def pairs(dtype: str) -> tuple[Array, Array]:
    """All pairs of special values, as two columns."""
    first, second = zip(*itertools.product(SPECIAL[dtype], repeat=2), strict=True)
    return np.array(first, dtype), np.array(second, dtype)


def expect_equal(result: Array, expected: Array, *, is_exact: bool) -> None:
    """Equal in every bit except the sign of 0, which tensors do not store; or up to two units in the last place."""
    assert result.dtype == expected.dtype
    if is_exact:
        np.testing.assert_array_equal(result, expected)
    else:
        tiny = np.finfo(expected.dtype).smallest_subnormal
        np.testing.assert_allclose(result, expected, rtol=2 * np.finfo(expected.dtype).eps, atol=tiny)


def compute(db: se.Database, expression: Scalar, operands: tuple[Array, ...]) -> Array:
    """The SQL value of a scalar expression for every row of the operands."""
    dtype, engine = str(operands[0].dtype), engine_of(db)
    value = number_expression(expression, [exp.column(name) for name in "uv"], dtype, engine.dialect, ())
    return by_query(db, f"SELECT {write_sql(value, engine.dialect)} AS w FROM rows ORDER BY place", operands)


def by_query(db: se.Database, query: str, operands: tuple[Array, ...]) -> Array:
    """The column w of a query that may read the operands as columns u and v of rows, and their place."""
    dtype, engine = str(operands[0].dtype), engine_of(db)
    kind = SQL_TYPES[engine.dialect_name][dtype]
    columns = {"place": np.arange(len(operands[0])), **dict(zip("uv", operands, strict=False))}
    with engine.registered(pa.table(columns), "given"):
        typed = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name in columns if name != "place")
        column = engine.arrow(f"SELECT * FROM (WITH rows AS (SELECT place, {typed} FROM given) {query}) AS t")["w"]
    return np.asarray(column.to_numpy())


def check_program(db: se.Database, text: str, inputs: dict[str, Array], *, is_exact: bool = False) -> None:
    """Run a program whose tensors are stored with one number a row."""
    for name, array in inputs.items():
        db.tensor(name, array, promoted=[f"dim_{axis}" for axis in range(array.ndim)])
    plan = db.plan(text, optimizer="relational", nonfinite="allow")
    assert all(labels == labels.upper() for line in plan.notation() for labels in re.findall(r"\[.*?\]", line))
    result = db.run(plan)["W"].to_numpy()
    with np.errstate(all="ignore"):
        expect_equal(result, evaluate_program(se.program(text), inputs)["W"].astype(result.dtype), is_exact=is_exact)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_of_special_values(shared_db: se.Database, name: str, dtype: str) -> None:
    arguments = (Operand(0), Operand(1), Operand(0))[: FUNCTIONS[name].operands]
    operands = pairs(dtype)[: len(operands_of(Call(name, arguments)))]
    result = compute(shared_db, Call(name, arguments), operands)
    expected = evaluate(Call(name, arguments), operands)  # booleans are 0 or 1 in the database
    expect_equal(result, expected.astype(result.dtype), is_exact=name in EXACT or expected.dtype == bool)


@pytest.mark.parametrize("dialect", PLAIN, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_which_functions_are_plain_sql(name: str, dialect: Dialect) -> None:
    arguments = (Operand(0), Operand(1), Operand(0))[: FUNCTIONS[name].operands]
    sql = number_expression(Call(name, arguments), [exp.column("u"), exp.column("v")], "float64", dialect, ())
    called = {str(call.this) for call in sql.find_all(exp.Anonymous)}
    assert called <= {function.name for function in array_functions()}
    assert (not called) == (name in PLAIN[dialect])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "value", [0.1, -0.0, 1 / 3, 1e-20, 1e300, -2.0, 123456789.0, 0.000123456789, np.inf, -np.inf, np.nan, 2**53 + 2.0]
)
@pytest.mark.parametrize("name", ["add", "mul", "div", "max"])
def test_literal_beside_a_column(shared_db: se.Database, name: str, value: float, dtype: str) -> None:
    """The result has the column's dtype, and the literal is rounded to it once."""
    with np.errstate(over="ignore"):
        rounded = np.full_like(SPECIAL[dtype], value)
    for arguments, operands in (
        ((Operand(0), Literal(value)), (SPECIAL[dtype], rounded)),
        ((Literal(value), Operand(0)), (rounded, SPECIAL[dtype])),
    ):
        result = compute(shared_db, Call(name, arguments), (SPECIAL[dtype],))
        expect_equal(result, evaluate(Call(name, (Operand(0), Operand(1))), operands), is_exact=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_are_read_as_they_were_written(shared_db: se.Database, dtype: str) -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate([
        rng.standard_normal(300) * 10.0 ** rng.integers(-30, 30, 300),
        rng.integers(-(10**9), 10**9, 300) / 10.0 ** rng.integers(0, 9, 300),
        [0.0, 5e-324, 1.7e308, 0.1, 1e15, 1e16, 1e17, 1e22, 123456789012345.6],
    ])  # fmt: skip
    dialect = engine_of(shared_db).dialect
    written = ", ".join(write_sql(number(float(value), dtype), dialect) for value in values)
    (row,) = shared_db.connection.execute(f"SELECT {written}").fetchall()
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_array_equal(np.array(row, dtype), values.astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "expression",
    [
        "A[i] + B[i]",
        "A[i] - B[i]",
        "A[i] * B[i]",
        "A[i] / B[i]",
        "-A[i] * 0.1 + B[i] * 3",
        "A[i] * 0 + B[i]",
        "A[i] - A[i]",
        "(A[i] + 1) * (B[i] - 1e300)",
        "2 ^ 3 * A[i] + (1 - 2 / 4)",
        "max(A[i], B[i])",
        "min(A[i], 0.5)",
        "relu(A[i]) + abs(B[i])",
        "A[i] * (1 / 0)",
        "sign(A[i]) / B[i]",
        "sqrt(A[i] ^ 2)",
        "where(A[i] < B[i], A[i], B[i] + 1)",
        "where(A[i] * 2 >= B[i] and not B[i] or A[i] != A[i], 0.5, 0.25)",
        "where(A[i] == B[i] or A[i] + 1 > 3, B[i], A[i])",
    ],
)
def test_plans_of_special_values(shared_db: se.Database, expression: str, dtype: str) -> None:
    first, second = pairs(dtype)
    inputs = {"A": first + 0, "B": second + 0}  # without -0: absent entries are 0
    check_program(shared_db, f"W[i] = {expression}", inputs, is_exact=dtype == "float64")


# Groups of values to aggregate; single partial results stay in the range of a float32.
GROUPS = [
    [1.0, np.nan, 2.0],
    [np.nan, np.nan, np.nan],
    [np.inf, 1.0, -1.0],
    [-np.inf, 1.0, np.inf],
    [-np.inf, -np.inf, -1.0],
    [np.nan, np.inf, -np.inf],
    [3e38, 3e38, 3e38],
    [-3e38, -3e38, 1.0],
    [1e-30, 1e-30, 1e-30],
    [1e-45, 1e-45, 1.0],
    [0.0, 0.0, 0.0],
    [0.0, np.inf, 1.0],
    [0.0, np.nan, 1.0],
    [0.0, -1.0, -2.0],
    [-0.0, 5.0, 3.0],
    [0.5, 0.25, 2.0],
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("aggregate", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("body", ["A[i, j]", "A[i, j] * B[j]", "A[i, j] + 1", "-A[i, j]"])
def test_aggregates_of_special_values(shared_db: se.Database, body: str, aggregate: str, dtype: str) -> None:
    inputs = {"A": np.array(GROUPS, dtype), "B": np.array([1.0, 2.0, 0.5], dtype)}
    check_program(shared_db, f"W[i] = {aggregate}({body})", inputs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("aggregate", ["sum", "prod", "max", "min"])
def test_aggregates_without_groups(shared_db: se.Database, aggregate: str, dtype: str) -> None:
    for group in GROUPS[::2]:
        check_program(shared_db, f"W[] = {aggregate}(A[i])", {"A": np.array(group, dtype)})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("aggregate", ["sum", "prod", "max", "min"])
def test_aggregates_of_many_rows(shared_db: se.Database, aggregate: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    array = rng.uniform(0.99, 1.01, (3, 5000)).astype(dtype)
    array[1, 4000] = np.nan
    shared_db.tensor("A", array, promoted=["dim_0", "dim_1"])
    result = shared_db.run(f"W[i] = {aggregate}(A[i, j])", optimizer="relational")["W"].to_numpy()
    wide = array.astype(float)
    expected = {"sum": wide.sum(1), "prod": wide.prod(1), "max": wide.max(1), "min": wide.min(1)}[aggregate]
    assert result.dtype == dtype
    np.testing.assert_allclose(result, expected, rtol={"float64": 1e-12, "float32": 1e-7}[dtype])


class Words(NamedTuple):
    """Parts of random expressions."""

    leaves: tuple[Scalar, ...]
    unary: tuple[str, ...]
    binary: tuple[str, ...]


# Every step of these is defined to the last bit; without quotients, which tell -0 from 0, as the minimum of the two in
# numpy does not. Those of whole numbers stay among the numbers given.
OPERANDS = (Operand(0), Operand(1))
OF_FLOATS = Words(
    OPERANDS,
    tuple(name for name in EXACT if FUNCTIONS[name].operands == 1),
    tuple(name for name in EXACT if FUNCTIONS[name].operands == 2 and name != "div"),
)
LITERALS = tuple(Literal(value) for value in (0.0, 1.0, 2.0, 0.1, 1e-3, 1e17, 12345.678))
WITH_LITERALS = OF_FLOATS._replace(leaves=(*OPERANDS, *LITERALS))
OF_WHOLES = Words((*OPERANDS, *(Literal(value) for value in (0, -3, 1 << 60))), ("relu", "sign"), ("min", "max"))
DEEPEST = 3


@st.composite
def expressions(draw: st.DrawFn, words: Words) -> Scalar:
    """Random expressions."""
    return draw_number(draw, words, DEEPEST)


@st.composite
def conditions(draw: st.DrawFn, words: Words) -> Scalar:
    """Random comparisons and their conjunctions, which are booleans in numpy."""
    return draw_condition(draw, words, DEEPEST)


def draw_number(draw: st.DrawFn, words: Words, depth: int) -> Scalar:
    kind = draw(st.sampled_from(["leaf", "unary", "binary", "where"])) if depth else "leaf"
    if kind == "leaf":
        return draw(st.sampled_from(words.leaves))
    first = draw_number(draw, words, depth - 1)
    if kind == "unary":
        return Call(draw(st.sampled_from(words.unary)), (first,))
    second = draw_number(draw, words, depth - 1)
    if kind == "binary":
        return Call(draw(st.sampled_from(words.binary)), (first, second))
    return Call("where", (draw_condition(draw, words, depth - 1), first, second))


def draw_condition(draw: st.DrawFn, words: Words, depth: int) -> Scalar:
    kind = draw(st.sampled_from(["order", "number", "not", "and", "or"])) if depth else "order"
    if kind == "order":
        sides = [draw_number(draw, words, max(depth - 1, 0)) for _ in range(2)]
        return Call(draw(st.sampled_from(ORDERS)), tuple(sides))
    if kind == "number":  # as booleans
        return Call("not", (Call("not", (draw_number(draw, words, depth - 1),)),))
    parts = [draw_condition(draw, words, depth - 1) for _ in range(FUNCTIONS[kind].operands)]
    return Call(kind, tuple(parts))


@settings(max_examples=examples(150))
@given((expressions(OF_WHOLES) | conditions(OF_WHOLES)).filter(operands_of))
def test_random_comparisons_in_int64(shared_db: se.Database, expression: Scalar) -> None:
    numbers = [-(1 << 63), (1 << 63) - 1, -(1 << 53) - 1, 1 << 53, *range(-4, 4)]
    operands = tuple(np.array(side) for side in zip(*itertools.product(numbers, repeat=2), strict=True))
    expected = np.broadcast_to(evaluate(expression, operands), operands[0].shape).astype("int64")
    expect_equal(compute(shared_db, expression, operands), expected, is_exact=True)


@settings(max_examples=examples(150))
@given(conditions(WITH_LITERALS).filter(operands_of))
def test_random_conditions_in_float64(shared_db: se.Database, expression: Scalar) -> None:
    operands = pairs("float64")
    expected = np.broadcast_to(evaluate(expression, operands), operands[0].shape)
    expect_equal(compute(shared_db, expression, operands), expected.astype("float64"), is_exact=True)


@settings(max_examples=examples(150))
@given(conditions(OF_FLOATS))
def test_random_conditions_in_float32(shared_db: se.Database, expression: Scalar) -> None:
    operands = pairs("float32")
    expected = evaluate(expression, operands).astype("float32")
    expect_equal(compute(shared_db, expression, operands), expected, is_exact=True)


@settings(max_examples=examples(150))
@given(expressions(WITH_LITERALS).filter(operands_of))
def test_random_expressions_in_float64(shared_db: se.Database, expression: Scalar) -> None:
    operands = pairs("float64")
    expected = np.broadcast_to(evaluate(expression, operands), operands[0].shape)
    expect_equal(compute(shared_db, expression, operands), expected, is_exact=True)


@settings(max_examples=examples(150))
@given(expressions(OF_FLOATS))
def test_random_expressions_in_float32(shared_db: se.Database, expression: Scalar) -> None:
    operands = pairs("float32")
    expect_equal(compute(shared_db, expression, operands), evaluate(expression, operands), is_exact=True)


@settings(max_examples=examples(150))
@given(expressions(WITH_LITERALS).filter(operands_of))
def test_random_expressions_in_arrays(shared_db: se.Database, expression: Scalar) -> None:
    """The same expressions, evaluated by tensor_reduce."""
    u, v = pairs("float64")
    spelled = exp.Literal.string(write(expression)).sql()
    arrays = "array_agg(u ORDER BY place), array_agg(v ORDER BY place), ARRAY[COUNT(*)]"
    query = f"SELECT unnest(tensor_reduce('prod', {spelled}, 'i,i->i', {arrays})) AS w FROM rows"
    expected = np.broadcast_to(evaluate(expression, (u, v)), u.shape)
    expect_equal(by_query(shared_db, query, (u, v)), expected, is_exact=True)

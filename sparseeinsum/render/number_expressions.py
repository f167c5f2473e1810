"""Render: scalar expressions of numbers, and aggregates of numbers, as SQL.

They are plain SQL where that is proven equal to numpy (tests/render/test_engine_arithmetic.py): comparisons; for floats
ABS, MAX, MIN with a test for NaN, and + - *, division by a number other than 0, SUM and PRODUCT where the engine
computes on with infinities and does not raise errors; for int64 + - *, MAX, MIN, and SUM, where the engine raises an
error on overflow. Everything else calls the functions of udfs/functions.toml, as do relu, max and min of a function of
one operand where an engine computes many rows at once.
"""

import math
from collections.abc import Callable, Sequence

from sqlglot import exp

from sparseeinsum.errors import PlanError
from sparseeinsum.language.scalar import evaluate, operands_of, write
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.operators.expressions import Call, Operand, Scalar, U
from sparseeinsum.operators.ranges import Range, exact_range, finite_range
from sparseeinsum.render.calls import call, constant, first_element, in_parentheses, integers, text
from sparseeinsum.render.conditions import ScalarWriter, comparison_expression, extreme_of_many_rows
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.render.plain_sql.plain_numbers import PlainNumbers
from sparseeinsum.statistics.columns import number_type
from sparseeinsum.statistics.number_literals import number

_ARITHMETIC = {"add": exp.Add, "sub": exp.Sub, "mul": exp.Mul}
_TIMES = Range(1, 1 << 62)  # how often a contribution is repeated
_BY_FUNCTION = (*_ARITHMETIC, "div", "threefry")  # each has a function of two numbers


def number_expression(
    join: Scalar, values: Sequence[exp.Expr], dtype: str, dialect: Dialect, ranges: Sequence[Range]
) -> exp.Expr:
    """The SQL of a scalar expression of numbers: plain as far as that is exact, else by functions of this package.

    Args:
        join: The scalar expression.
        values: The SQL of its operands, of the type of `dtype`.
        dtype: The dtype of the operands: float64, float32 or int64.
        dialect: The dialect of the engine.
        ranges: The ranges of the operands; only an engine without functions of this package needs them.
    """
    if dialect.plain is not None:
        return PlainNumbers(dtype, dialect.name, dialect.plain).expression(join, values, ranges)
    return _own_expression(join, values, dtype, dialect)


def _own_expression(join: Scalar, values: Sequence[exp.Expr], dtype: str, dialect: Dialect) -> exp.Expr:
    """The same for an engine that has the functions of this package."""
    is_plain = dtype == "int64" or not dialect.raises_out_of_range

    def write(part: Scalar) -> exp.Expr:
        return _own_expression(part, values, dtype, dialect)

    match join:
        case Operand(index):
            return values[index].copy()
        case _ if _is_constant(join):
            return number(_constant(join), dtype)
        case Call(name, (first, second)) if name in _ARITHMETIC and is_plain:
            return _ARITHMETIC[name](this=in_parentheses(write(first)), expression=in_parentheses(write(second)))
        case Call("div", (first, second)) if is_plain and _is_constant(second) and _constant(second) != 0:
            # A setting decides what x / 0 is.
            return exp.Div(this=in_parentheses(write(first)), expression=number(_constant(second), dtype))
        case Call("neg", (argument,)):
            return exp.Neg(this=in_parentheses(write(argument)))
        case Call("abs", (argument,)) if dtype != "int64":  # the engine raises an error for the least int64
            return exp.Abs(this=write(argument))
        case _ if (compared := _plain_function(join, write, dtype, dialect)) is not None:
            return compared
        case Call(name, arguments) if name in _BY_FUNCTION and len(operands_of(join)) > 1:
            return call(f"tensor_{name}", *map(write, arguments))
        case _:
            return _by_kernel(join, values, write)


def _is_constant(expression: Scalar) -> bool:
    return not operands_of(expression)


def _plain_function(join: Scalar, write: ScalarWriter, dtype: str, dialect: Dialect) -> exp.Expr | None:
    """The SQL of a function that compares numbers; None where a kernel is faster, or gives numpy's results alone."""
    match join:
        case Call("relu" | "max" | "min") if dialect.vector_rows > 1:
            return extreme_of_many_rows(join, write, dtype)
        case _:
            return comparison_expression(join, write, dtype)


def _constant(expression: Scalar) -> Number:
    """The number that a constant expression gives; numpy computes it, since SQL would use decimals."""
    value: Number = evaluate(expression, ()).item()
    return value


def _by_kernel(join: Scalar, values: Sequence[exp.Expr], write_part: ScalarWriter) -> exp.Expr:
    """The SQL of an expression by a kernel: of one number, or of two numbers as arrays of one element."""
    used = sorted(operands_of(join))
    match join:
        case Call(name, (argument,)) if len(used) > 1 or isinstance(argument, Operand):
            return call("tensor_map", text(name), write_part(argument))
        case Call() if len(used) == 1:
            return call("tensor_map", text(write(_renamed(join, used))), values[used[0]].copy())
        case Call() if len(used) == 2:
            arrays = [exp.array(values[index].copy()) for index in used]
            spelled = text(write(_renamed(join, used)))
            return first_element(call("tensor_reduce", text("sum"), spelled, text(",->"), *arrays, integers(())))
        case _:
            raise PlanError(f"no SQL for {join}")


def _renamed(expression: Scalar, used: Sequence[int]) -> Scalar:
    """The expression with its operands numbered from 0."""
    match expression:
        case Operand(index):
            return Operand(used.index(index))
        case Call(function, arguments):
            return Call(function, tuple(_renamed(argument, used) for argument in arguments))
        case _:
            return expression


def aggregate_expression(
    aggregate: str, value: exp.Expr, dtype: str, dialect: Dialect, terms: Range, times: int
) -> exp.Expr:
    """The SQL of an aggregate of numbers over a group.

    Args:
        aggregate: The name of the aggregate.
        value: The SQL of the numbers.
        dtype: The dtype of the numbers: float64, float32 or int64.
        dialect: The dialect of the engine.
        terms: The range of the numbers.
        times: The most numbers of a group.
    """
    if dialect.plain is not None:
        return PlainNumbers(dtype, dialect.name, dialect.plain).aggregate(aggregate, value, terms, times)
    if aggregate == "sum" and dtype != "int64" and dialect.raises_out_of_range:
        return _rounded(call("tensor_sum", _as_double(value, dtype)), dtype)
    record = AGGREGATES[aggregate]
    if record.sql:
        is_truth = record.returns_bool and record.sql == "MIN"
        return exp.Min(this=value) if is_truth else _PLAIN_AGGREGATES[record.sql](value, dtype)
    if aggregate == "prod" and dtype != "int64":
        return _rounded(exp.func("product", _as_double(value, dtype)), dtype)
    return first_element(call(f"tensor_{aggregate}", exp.array(value)))


def _sum(value: exp.Expr, dtype: str) -> exp.Expr:
    if dtype == "int64":  # SUM returns a wider type; the cast raises an error on overflow
        return exp.cast(exp.Sum(this=value), number_type(dtype))
    return _rounded(exp.Sum(this=_as_double(value, dtype)), dtype)


def _as_double(value: exp.Expr, dtype: str) -> exp.Expr:
    """A number to aggregate as a DOUBLE: float32 would lose too many digits."""
    return exp.cast(value, "double") if dtype == "float32" else value


def _minimum(value: exp.Expr, dtype: str) -> exp.Expr:
    """MIN, but NaN if any value is NaN, as in numpy: to SQL, NaN is the greatest number."""
    if dtype == "int64":
        return exp.Min(this=value)
    has_nan = exp.func("bool_or", exp.func("isnan", value.copy()))
    return exp.case().when(has_nan, number(math.nan, dtype)).else_(exp.Min(this=value))


def _rounded(folded: exp.Expr, dtype: str) -> exp.Expr:
    """A DOUBLE cast to a dtype; infinite if it is too large, as in numpy, where SQL's cast would raise an error."""
    if dtype == "float64":
        return folded
    infinite = exp.Mul(this=folded.copy(), expression=number(math.inf, "float64"))
    kind = number_type(dtype)
    return exp.func("coalesce", exp.TryCast(this=folded, to=exp.DataType.build(kind)), exp.cast(infinite, kind))


_PLAIN_AGGREGATES: dict[str, Callable[[exp.Expr, str], exp.Expr]] = {
    "SUM": _sum,
    "MAX": lambda value, _: exp.Max(this=value),
    "MIN": _minimum,
}


def repeated_contribution(
    aggregate: str, contribution: Number, missing: exp.Expr, dtype: str, dialect: Dialect
) -> exp.Expr:
    """The SQL of folding a number `missing` times, which is at least once.

    Args:
        aggregate: The name of the aggregate.
        contribution: The number.
        missing: The SQL of how often.
        dtype: The dtype of the number.
        dialect: The dialect of the engine.
    """
    number_sql, repeated = constant(contribution, dtype), AGGREGATES[aggregate].repeat_expression
    if aggregate == "sum" and dtype == "int64" and dialect.plain is None:
        return exp.Mul(this=in_parentheses(missing), expression=number_sql)
    if repeated == U:
        return number_sql
    ranges = (exact_range(contribution), _TIMES)
    return number_expression(repeated, [number_sql, exp.cast(missing, number_type(dtype))], dtype, dialect, ranges)


def range_of_folds(terms: Range, times: int, dtype: str) -> Range:
    """The range of sums of at most `times` finite terms, which is wide enough for other aggregates in SQL, too."""
    finite = finite_range(dtype)
    largest = min(finite.high, terms.magnitude * times) if dtype == "int64" else finite.high
    return Range(-largest, largest)

"""Render: scalar expressions of numbers, and aggregates of numbers, as SQL.

Plain SQL where that is proven equal to numpy (tests/render/test_engine_arithmetic.py): what compares numbers; for
floats ABS, MAX, MIN beside a test for NaN, and + - *, division by a number other than 0, SUM and PRODUCT where the
engine goes on with infinities and 0 out of range; for int64 + - *, MAX, MIN, and SUM, where the engine makes overflow
an error. All else goes through the functions of udfs/functions.toml.
"""

import math
from collections.abc import Callable, Sequence

from sqlglot import exp

from sparseeinsum.errors import PlanError
from sparseeinsum.language.scalar import evaluate, operands_of, write
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.dtypes import Number
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar, U
from sparseeinsum.render.calls import call, constant, first_element, in_parentheses, integers, text
from sparseeinsum.render.conditions import comparing_number
from sparseeinsum.render.dialects import Dialect
from sparseeinsum.statistics.columns import number_type
from sparseeinsum.statistics.numbers import number

_ARITHMETIC = {"add": exp.Add, "sub": exp.Sub, "mul": exp.Mul}
_BY_FUNCTION = (*_ARITHMETIC, "div")  # there is one of two floating-point numbers for each


def number_expression(join: Scalar, values: Sequence[exp.Expr], dtype: str, dialect: Dialect) -> exp.Expr:
    """A scalar expression of numbers: plain SQL as far as that is exact, our functions for all else.

    Args:
        join: The expression.
        values: SQL of its operands, of the dtype's type.
        dtype: float64, float32 or int64.
        dialect: Of the engine.
    """
    is_plain = dtype == "int64" or not dialect.raises_out_of_range

    def written(part: Scalar) -> exp.Expr:
        return number_expression(part, values, dtype, dialect)

    match join:
        case Operand(index):
            return values[index].copy()
        case _ if not operands_of(join):  # by numpy, once: SQL would compute with decimals
            return number(evaluate(join, ()).item(), dtype)
        case Call(name, (first, second)) if name in _ARITHMETIC and is_plain:
            return _ARITHMETIC[name](this=in_parentheses(written(first)), expression=in_parentheses(written(second)))
        case Call("div", (first, Literal(divisor))) if divisor != 0 and is_plain:  # by 0 an engine's setting decides
            return exp.Div(this=in_parentheses(written(first)), expression=number(divisor, dtype))
        case Call("neg", (argument,)):
            return exp.Neg(this=in_parentheses(written(argument)))
        case Call("abs", (argument,)) if dtype != "int64":  # that of the least int64 is an error of the engine's own
            return exp.Abs(this=written(argument))
        case _ if (compared := comparing_number(join, written, dtype)) is not None:
            return compared
        case Call(name, both) if name in _BY_FUNCTION and dtype != "int64" and len(operands_of(join)) > 1:
            return call(f"tensor_{name}", *map(written, both))
        case _:
            return _by_kernel(join, values, dtype, dialect)


def _by_kernel(join: Scalar, values: Sequence[exp.Expr], dtype: str, dialect: Dialect) -> exp.Expr:
    """An expression that plain SQL does not compute as numpy does: of one number, or of two as arrays of one."""
    used = sorted(operands_of(join))
    match join:
        case Call(name, (argument,)) if len(used) > 1 or isinstance(argument, Operand):
            return call("tensor_map", text(name), number_expression(argument, values, dtype, dialect))
        case Call() if len(used) == 1:
            return call("tensor_map", text(write(_renamed(join, used))), values[used[0]].copy())
        case Call() if len(used) == 2:
            arrays = [exp.array(values[index].copy()) for index in used]
            spelled = text(write(_renamed(join, used)))
            return first_element(call("tensor_reduce", text("sum"), spelled, text(",->"), *arrays, integers(())))
        case _:
            raise PlanError(f"no SQL for {join}")


def _renamed(expression: Scalar, used: Sequence[int]) -> Scalar:
    """The expression with its operands counted from 0."""
    match expression:
        case Operand(index):
            return Operand(used.index(index))
        case Call(function, arguments):
            return Call(function, tuple(_renamed(argument, used) for argument in arguments))
        case _:
            return expression


def aggregated_number(aggregate: str, value: exp.Expr, dtype: str, dialect: Dialect) -> exp.Expr:
    """An aggregate of numbers over a group."""
    if aggregate == "sum" and dtype != "int64" and dialect.raises_out_of_range:
        return _rounded(call("tensor_sum", _as_double(value, dtype)), dtype)
    record = AGGREGATES[aggregate]
    if record.sql:
        is_truth = record.gives_truth and record.sql == "MIN"
        return exp.Min(this=value) if is_truth else _OWN[record.sql](value, dtype)
    if aggregate == "prod" and dtype != "int64":
        return _rounded(exp.func("product", _as_double(value, dtype)), dtype)
    return first_element(call(f"tensor_{aggregate}", exp.array(value)))


def _sum(value: exp.Expr, dtype: str) -> exp.Expr:
    if dtype == "int64":  # SUM is wider; what BIGINT cannot hold is an error
        return exp.cast(exp.Sum(this=value), number_type(dtype))
    return _rounded(exp.Sum(this=_as_double(value, dtype)), dtype)


def _as_double(value: exp.Expr, dtype: str) -> exp.Expr:
    """A number to fold, of which float32 would keep too few digits."""
    return exp.cast(value, "double") if dtype == "float32" else value


def _minimum(value: exp.Expr, dtype: str) -> exp.Expr:
    """MIN, but NaN where any value is NaN, as in numpy: SQL holds NaN for the largest number."""
    if dtype == "int64":
        return exp.Min(this=value)
    has_nan = exp.func("bool_or", exp.func("isnan", value.copy()))
    return exp.case().when(has_nan, number(math.nan, dtype)).else_(exp.Min(this=value))


def _rounded(folded: exp.Expr, dtype: str) -> exp.Expr:
    """A DOUBLE in another dtype; infinite where it is beyond that, as in numpy, where a cast would be an error."""
    if dtype == "float64":
        return folded
    infinite = exp.Mul(this=folded.copy(), expression=number(math.inf, "float64"))
    kind = number_type(dtype)
    return exp.func("coalesce", exp.TryCast(this=folded, to=exp.DataType.build(kind)), exp.cast(infinite, kind))


_OWN: dict[str, Callable[[exp.Expr, str], exp.Expr]] = {
    "SUM": _sum,
    "MAX": lambda value, _: exp.Max(this=value),
    "MIN": _minimum,
}


def compensating_number(
    aggregate: str, contribution: Number, missing: exp.Expr, dtype: str, dialect: Dialect
) -> exp.Expr:
    """What folding a number as often as some SQL says gives, at least once; `contribution` is that of one time."""
    one, repeated = constant(contribution, dtype), AGGREGATES[aggregate].repeated
    if aggregate == "sum" and dtype == "int64":
        return exp.Mul(this=in_parentheses(missing), expression=one)
    if repeated == U:
        return one
    return number_expression(repeated, [one, exp.cast(missing, number_type(dtype))], dtype, dialect)

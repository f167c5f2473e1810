"""Render: scalar expressions of numbers, and aggregates of numbers, as SQL.

Plain SQL where that is proven equal to numpy (tests/test_engine_arithmetic.py): for floats + - *, division by a
number other than 0, SUM, PRODUCT, MAX, and MIN beside a test for NaN; for int64 + - *, comparisons, MAX, MIN, and SUM,
where the engine makes overflow an error. All else goes through the functions of udfs/functions.toml.
"""

import math
from collections.abc import Callable, Sequence

from sqlglot import exp

from sparseeinsum.errors import PlanError
from sparseeinsum.language.dtypes import Number
from sparseeinsum.language.scalar import Call, Literal, Operand, Scalar, evaluate, operands_of, write
from sparseeinsum.render.calls import call, constant, first_element, in_parentheses, integers, text
from sparseeinsum.statistics.columns import number_type
from sparseeinsum.statistics.numbers import number

_ARITHMETIC = {"add": exp.Add, "sub": exp.Sub, "mul": exp.Mul}
_COMPARISONS = {"lt": exp.LT, "le": exp.LTE, "gt": exp.GT, "ge": exp.GTE, "eq": exp.EQ, "ne": exp.NEQ}


def number_expression(join: Scalar, values: Sequence[exp.Expr], dtype: str) -> exp.Expr:
    """A scalar expression of numbers: plain SQL as far as that is exact, our functions for all else.

    Args:
        join: The expression.
        values: SQL of its operands, of the dtype's type.
        dtype: float64, float32 or int64.
    """
    match join:
        case Operand(index):
            return values[index].copy()
        case _ if not operands_of(join):  # by numpy, once: SQL would compute with decimals
            return number(evaluate(join, ()).item(), dtype)
        case Call(name, (first, second)) if name in _ARITHMETIC:
            sides = [in_parentheses(number_expression(side, values, dtype)) for side in (first, second)]
            return _ARITHMETIC[name](this=sides[0], expression=sides[1])
        case Call("div", (first, Literal(divisor))) if divisor != 0:  # by 0 it depends on a setting of the engine
            divided = in_parentheses(number_expression(first, values, dtype))
            return exp.Div(this=divided, expression=number(divisor, dtype))
        case Call("neg", (argument,)):
            return exp.Neg(this=in_parentheses(number_expression(argument, values, dtype)))
        case Call(name, (first, second)) if name in _COMPARISONS and dtype == "int64":
            sides = [in_parentheses(number_expression(side, values, dtype)) for side in (first, second)]
            return exp.cast(exp.Paren(this=_COMPARISONS[name](this=sides[0], expression=sides[1])), number_type(dtype))
        case _:
            return _by_kernel(join, values, dtype)


def _by_kernel(join: Scalar, values: Sequence[exp.Expr], dtype: str) -> exp.Expr:
    """An expression that plain SQL does not compute as numpy does: of one number, or of two as arrays of one."""
    used = sorted(operands_of(join))
    match join:
        case Call(name, (argument,)) if len(used) > 1 or isinstance(argument, Operand):
            return call("tensor_map", text(name), number_expression(argument, values, dtype))
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


def aggregated_number(aggregate: str, value: exp.Expr, dtype: str) -> exp.Expr:
    """An aggregate of numbers over a group."""
    if aggregate in ("prod", "logsumexp") and (dtype == "int64" or aggregate == "logsumexp"):
        return first_element(call(f"tensor_{aggregate}", exp.array(value)))
    return _AGGREGATES[aggregate](value, dtype)


def _sum(value: exp.Expr, dtype: str) -> exp.Expr:
    if dtype == "int64":  # SUM is wider; what BIGINT cannot hold is an error
        return exp.cast(exp.Sum(this=value), number_type(dtype))
    return _rounded(exp.Sum(this=exp.cast(value, "double") if dtype == "float32" else value), dtype)


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


# Truth is 0 or 1 here, so that the greatest says whether any is true.
_AGGREGATES: dict[str, Callable[[exp.Expr, str], exp.Expr]] = {
    "sum": _sum,
    "prod": lambda value, dtype: _rounded(exp.func("product", value), dtype),
    "max": lambda value, _: exp.Max(this=value),
    "min": _minimum,
    "any": lambda value, _: exp.Max(this=value),
    "all": lambda value, _: exp.Min(this=value),
}


def compensating_number(aggregate: str, contribution: Number, missing: exp.Expr, dtype: str) -> exp.Expr:
    """What folding a number as often as some SQL says gives, at least once; `contribution` is that of one time."""
    one = constant(contribution, dtype)
    match aggregate:
        case "sum":
            times = in_parentheses(missing) if dtype == "int64" else exp.cast(missing, number_type(dtype))
            return exp.Mul(this=times, expression=one)
        case "prod":
            times = exp.cast(missing, number_type(dtype))
            return number_expression(Call("pow", (Operand(0), Operand(1))), [one, times], dtype)
        case "logsumexp":
            times = exp.cast(missing, number_type(dtype))
            logarithm = call("tensor_map", text("log"), times)
            return exp.Add(this=one, expression=logarithm)
        case _:
            return one


_BOTH = (Operand(0), Operand(1))
_APART = Call("neg", (Call("abs", (Call("sub", _BOTH),)),))
_DIFFERENCE = Call("where", (Call("eq", _BOTH), Literal(0.0), _APART))  # also of two infinities
# How two folded values become one.
COMBINED: dict[str, Scalar] = {
    "sum": Call("add", _BOTH),
    "prod": Call("mul", _BOTH),
    "max": Call("max", _BOTH),
    "min": Call("min", _BOTH),
    "any": Call("or", _BOTH),
    "all": Call("and", _BOTH),
    "logsumexp": Call(
        "add", (Call("max", _BOTH), Call("log", (Call("add", (Literal(1.0), Call("exp", (_DIFFERENCE,)))),)))
    ),
}

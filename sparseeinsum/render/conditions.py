"""Render: comparisons and conditions of numbers, as plain SQL that gives the same results as numpy.

To SQL, NaN equals itself and is the greatest number; to numpy, it is not equal to, below or above any. So one side of a
comparison must be known not to be NaN: a literal is not, and an operand is tested with ISNAN. An expression would have
to be computed twice for such a test. In an inequality it is negated instead where needed, so that its NaN stands on the
side on which SQL's comparison fails, too.
"""

import math
from collections.abc import Callable

from sqlglot import exp

from sparseeinsum.language.scalar import evaluate, operands_of
from sparseeinsum.operators.expressions import Call, Operand, Scalar
from sparseeinsum.render.calls import in_parentheses, integer
from sparseeinsum.statistics.columns import IS_TRUTH, number_type

ScalarWriter = Callable[[Scalar], exp.Expr]  # returns the SQL of a scalar expression

_ORDERS = {"lt": exp.LT, "le": exp.LTE, "gt": exp.GT, "ge": exp.GTE}
_COMPARISONS = {**_ORDERS, "eq": exp.EQ, "ne": exp.NEQ}
_CONDITIONS = frozenset({*_COMPARISONS, "and", "or", "not"})  # functions that this module writes as SQL conditions
_REVERSED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def comparison_expression(join: Scalar, write: ScalarWriter, dtype: str) -> exp.Expr | None:
    """The SQL of a function that compares numbers, or None where plain SQL would differ from numpy.

    Args:
        join: The scalar expression.
        write: Returns the SQL of its operands.
        dtype: The dtype of the operands: float64, float32 or int64.
    """
    match join:
        case Call("relu" | "max" | "min"):
            return _greatest_or_least(join.function, *_sides(join, write), dtype)
        case Call("where", (test, first, second)):
            condition = _condition(test, write, is_integer=dtype == "int64")
            return None if condition is None else _choice(condition, write(first), write(second), dtype)
        case Call(name, _) if name in _CONDITIONS:
            condition = _condition(join, write, is_integer=dtype == "int64")
            return None if condition is None else condition_as_number(condition, dtype)
        case _:
            return None


def condition_as_number(condition: exp.Expr, dtype: str) -> exp.Expr:
    """The SQL of a condition as the number 0 or 1."""
    cast = exp.cast(exp.Paren(this=condition), number_type(dtype))
    cast.meta[IS_TRUTH] = True
    return cast


def extreme_of_many_rows(join: Call, write: ScalarWriter, dtype: str) -> exp.Expr | None:
    """The SQL of relu, max or min in DuckDB, which takes up to ten times as long for GREATEST as for others.

    Two names are compared by a CASE. For a function of one operand it is None: a kernel is faster.
    """
    first, second = _sides(join, write)
    if _is_short(first) and _is_short(second):
        condition = _decides_for_first(join.function, first.copy(), second.copy(), dtype)
        return exp.case().when(condition, first).else_(second)
    if len(join.arguments) == 1 or len(operands_of(join)) == 1:
        return None
    return _greatest_or_least(join.function, first, second, dtype)


def _sides(join: Call, write: ScalarWriter) -> tuple[exp.Expr, exp.Expr]:
    return write(join.arguments[0]), integer(0) if join.function == "relu" else write(join.arguments[1])


def _greatest_or_least(function: str, first: exp.Expr, second: exp.Expr, dtype: str) -> exp.Expr:
    if function != "min":
        return _greatest(first, second)
    if dtype == "int64":
        return exp.Least(this=first, expressions=[second], ignore_nulls=True)  # there are no NULLs
    return exp.Neg(this=_greatest(_negated(first), _negated(second)))  # to SQL, the least of -1 and NaN is -1


def _decides_for_first(function: str, first: exp.Expr, second: exp.Expr, dtype: str) -> exp.Expr:
    """The SQL of whether the first number is the greater or the lesser one, or NaN, which is greatest to SQL."""
    if function != "min":
        return exp.GT(this=first, expression=second)
    if dtype == "int64":  # the least int64 has no negative one
        return exp.LT(this=first, expression=second)
    return exp.GT(this=_negated(first), expression=_negated(second))


def _greatest(first: exp.Expr, second: exp.Expr) -> exp.Expr:
    return exp.Greatest(this=first, expressions=[second], ignore_nulls=True)  # there are no NULLs


def _is_short(value: exp.Expr) -> bool:
    """Whether a number takes nothing to read twice: a column or a literal, also cast or negated."""
    while isinstance(value, exp.Neg | exp.Cast):
        value = value.this
    return isinstance(value, exp.Column | exp.Literal)


def _choice(condition: exp.Expr, if_true: exp.Expr, if_false: exp.Expr, dtype: str) -> exp.Expr:
    """The SQL of one of two numbers; literals are cast to the dtype."""
    is_literal = isinstance(if_true, exp.Literal | exp.Neg) and isinstance(if_false, exp.Literal | exp.Neg)
    return exp.case().when(condition, exp.cast(if_true, number_type(dtype)) if is_literal else if_true).else_(if_false)


def _condition(part: Scalar, write: ScalarWriter, *, is_integer: bool) -> exp.Expr | None:
    """The SQL of whether a scalar expression is true, as every number but 0 is, or None; integers are never NaN."""

    def condition(inner: Scalar) -> exp.Expr | None:
        return _condition(inner, write, is_integer=is_integer)

    match part:
        case _ if not operands_of(part):
            return exp.Boolean(this=bool(evaluate(part, ())))
        case Call("and" | "or" as name, (first, second)):
            return _joined(name, condition(first), condition(second))
        case Call("not", (argument,)):
            negated = condition(argument)
            return None if negated is None else exp.not_(negated)
        case Call(name, (first, second)) if name in _COMPARISONS and is_integer:
            return _compared(name, write(first), write(second))
        case Call(name, (first, second)) if name in _ORDERS:
            return _order(name, first, second, write)
        case Call(name, (first, second)) if name in _COMPARISONS:
            return _equality(name, first, second, write)
        case _:
            return exp.NEQ(this=in_parentheses(write(part)), expression=integer(0))


def _joined(name: str, first: exp.Expr | None, second: exp.Expr | None) -> exp.Expr | None:
    """The SQL of two conditions joined by `and` or `or`; a constant one decides or vanishes."""
    if first is None or second is None:
        return None
    for constant, other in ((first, second), (second, first)):
        if isinstance(constant, exp.Boolean):
            return other if constant.this == (name == "and") else constant
    return exp.and_(first, second) if name == "and" else exp.or_(first, second)


def _compared(name: str, first: exp.Expr, second: exp.Expr) -> exp.Expr:
    return _COMPARISONS[name](this=in_parentheses(first), expression=in_parentheses(second))


def _order(name: str, first: Scalar, second: Scalar, write: ScalarWriter) -> exp.Expr | None:
    greater, lesser = (second, first) if name in ("lt", "le") else (first, second)
    if _is_testable(greater):  # if that is not NaN and the comparison holds, the lesser one is not NaN either
        comparison, tested = _compared(name, write(first), write(second)), greater
    elif _is_testable(lesser):
        comparison, tested = _compared(_REVERSED[name], *(_negated(write(side)) for side in (first, second))), lesser
    else:
        return None
    return exp.and_(comparison, exp.not_(_is_nan(tested, write))) if isinstance(tested, Operand) else comparison


def _equality(name: str, first: Scalar, second: Scalar, write: ScalarWriter) -> exp.Expr | None:
    testable = [side for side in (first, second) if _is_testable(side)]
    if not testable:
        return None
    if first == second:
        is_nan = _is_nan(first, write)
        return is_nan if name == "ne" else exp.not_(is_nan)
    comparison = _compared(name, write(first), write(second))
    if not all(isinstance(side, Operand) for side in testable):  # one side is a literal
        return comparison
    is_nan = _is_nan(testable[0], write)
    return exp.and_(comparison, exp.not_(is_nan)) if name == "eq" else exp.or_(comparison, is_nan)


def _is_testable(side: Scalar) -> bool:
    """Whether it costs nothing to know that a side is not NaN: for an operand, and for a literal that is not NaN."""
    return isinstance(side, Operand) if operands_of(side) else not math.isnan(evaluate(side, ()).real)


def _is_nan(side: Scalar, write: ScalarWriter) -> exp.Expr:
    return exp.IsNan(this=write(side))


def _negated(value: exp.Expr) -> exp.Expr:
    return exp.Neg(this=in_parentheses(value))

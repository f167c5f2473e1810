"""Render: what compares numbers, as plain SQL that finds what numpy finds.

SQL holds NaN for equal to itself and for the greatest number; numpy compares it with nothing. So one side of a
comparison must not be NaN: a literal is known not to be, and an operand is asked. What would be computed twice to
be asked, the other side of an inequality, is turned round by its sign, so that its NaN stands where the comparison
fails.
"""

import math
from collections.abc import Callable

from sqlglot import exp

from sparseeinsum.language.scalar import evaluate, operands_of
from sparseeinsum.operators.expressions import Call, Operand, Scalar
from sparseeinsum.render.calls import in_parentheses, integer
from sparseeinsum.statistics.columns import IS_TRUTH, number_type

Written = Callable[[Scalar], exp.Expr]  # a scalar expression of numbers as SQL

_ORDERS = {"lt": exp.LT, "le": exp.LTE, "gt": exp.GT, "ge": exp.GTE}
_COMPARISONS = {**_ORDERS, "eq": exp.EQ, "ne": exp.NEQ}
_CONDITIONS = frozenset({*_COMPARISONS, "and", "or", "not"})  # what is written as SQL below
_REVERSED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def comparing_number(join: Scalar, written: Written, dtype: str) -> exp.Expr | None:
    """A number that comparing others gives; None where plain SQL does not tell as numpy does.

    Args:
        join: The expression.
        written: Numbers as SQL.
        dtype: float64, float32 or int64.
    """
    match join:
        case Call("relu", (argument,)):
            return _greatest(written(argument), integer(0))
        case Call("max", (first, second)):
            return _greatest(written(first), written(second))
        case Call("min", (first, second)) if dtype == "int64":
            return exp.Least(this=written(first), expressions=[written(second)], ignore_nulls=True)
        case Call("min", (first, second)):  # the least of -1 and NaN is -1 to SQL
            return exp.Neg(this=_greatest(_negated(written(first)), _negated(written(second))))
        case Call("where", (asked, first, second)):
            found = _condition(asked, written, is_whole=dtype == "int64")
            return None if found is None else _choice(found, written(first), written(second), dtype)
        case Call(name, _) if name in _CONDITIONS:
            found = _condition(join, written, is_whole=dtype == "int64")
            return None if found is None else truth_as_number(found, dtype)
        case _:
            return None


def truth_as_number(found: exp.Expr, dtype: str) -> exp.Expr:
    """A condition as 0 or 1."""
    cast = exp.cast(exp.Paren(this=found), number_type(dtype))
    cast.meta[IS_TRUTH] = True
    return cast


def _greatest(first: exp.Expr, second: exp.Expr) -> exp.Expr:
    return exp.Greatest(this=first, expressions=[second], ignore_nulls=True)  # there are none


def _choice(wanted: exp.Expr, yes: exp.Expr, no: exp.Expr, dtype: str) -> exp.Expr:
    """One of two numbers; of the dtype also where both are literals."""
    is_literal = isinstance(yes, exp.Literal | exp.Neg) and isinstance(no, exp.Literal | exp.Neg)
    return exp.case().when(wanted, exp.cast(yes, number_type(dtype)) if is_literal else yes).else_(no)


def _condition(part: Scalar, written: Written, *, is_whole: bool) -> exp.Expr | None:
    """Whether a number is true, which all but 0 is; whole ones are never NaN."""

    def condition(inner: Scalar) -> exp.Expr | None:
        return _condition(inner, written, is_whole=is_whole)

    match part:
        case _ if not operands_of(part):
            return exp.Boolean(this=bool(evaluate(part, ())))
        case Call("and" | "or" as name, (first, second)):
            return _joined(name, condition(first), condition(second))
        case Call("not", (argument,)):
            denied = condition(argument)
            return None if denied is None else exp.not_(denied)
        case Call(name, (first, second)) if name in _COMPARISONS and is_whole:
            return _compared(name, written(first), written(second))
        case Call(name, (first, second)) if name in _ORDERS:
            return _order(name, first, second, written)
        case Call(name, (first, second)) if name in _COMPARISONS:
            return _equality(name, first, second, written)
        case _:
            return exp.NEQ(this=in_parentheses(written(part)), expression=integer(0))


def _joined(name: str, first: exp.Expr | None, second: exp.Expr | None) -> exp.Expr | None:
    """Two conditions as one; what is known, of literals, decides or goes."""
    if first is None or second is None:
        return None
    for known, other in ((first, second), (second, first)):
        if isinstance(known, exp.Boolean):
            return other if known.this == (name == "and") else known
    return exp.and_(first, second) if name == "and" else exp.or_(first, second)


def _compared(name: str, first: exp.Expr, second: exp.Expr) -> exp.Expr:
    return _COMPARISONS[name](this=in_parentheses(first), expression=in_parentheses(second))


def _order(name: str, first: Scalar, second: Scalar, written: Written) -> exp.Expr | None:
    greater, lesser = (second, first) if name in ("lt", "le") else (first, second)
    if _is_asked(greater):  # if that is no NaN, the lesser is none
        found, asked = _compared(name, written(first), written(second)), greater
    elif _is_asked(lesser):
        found, asked = _compared(_REVERSED[name], *(_negated(written(side)) for side in (first, second))), lesser
    else:
        return None
    return exp.and_(found, exp.not_(_is_nan(asked, written))) if isinstance(asked, Operand) else found


def _equality(name: str, first: Scalar, second: Scalar, written: Written) -> exp.Expr | None:
    asked = [side for side in (first, second) if _is_asked(side)]
    if not asked:
        return None
    if first == second:
        is_nan = _is_nan(first, written)
        return is_nan if name == "ne" else exp.not_(is_nan)
    found = _compared(name, written(first), written(second))
    if not all(isinstance(side, Operand) for side in asked):  # one is a literal
        return found
    is_nan = _is_nan(asked[0], written)
    return exp.and_(found, exp.not_(is_nan)) if name == "eq" else exp.or_(found, is_nan)


def _is_asked(side: Scalar) -> bool:
    """Whether it costs nothing to know whether a side is NaN, and a literal is none."""
    return isinstance(side, Operand) if operands_of(side) else not math.isnan(evaluate(side, ()).real)


def _is_nan(side: Scalar, written: Written) -> exp.Expr:
    return exp.IsNan(this=written(side))


def _negated(value: exp.Expr) -> exp.Expr:
    return exp.Neg(this=in_parentheses(value))

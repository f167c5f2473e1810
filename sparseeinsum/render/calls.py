"""Render: the small SQL expressions of which all others consist: constants, casts and function calls."""

import math
from collections.abc import Sequence

from sqlglot import exp

from sparseeinsum.operators.dtypes import Number, is_complex
from sparseeinsum.statistics.columns import number_type
from sparseeinsum.statistics.number_literals import number


def integer(value: int) -> exp.Expr:
    """The SQL of an integer."""
    return exp.Literal.number(value)


def integers(values: Sequence[int | exp.Expr]) -> exp.Expr:
    """The SQL of an array of integers."""
    if not values:
        return exp.cast(exp.array(), exp.DataType.build("BIGINT[]", dialect="duckdb"))
    return exp.array(*[integer(value) if isinstance(value, int) else value.copy() for value in values], copy=False)


def text(value: str) -> exp.Expr:
    """The SQL of a string."""
    return exp.Literal.string(value)


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """The call of a function, whose name is written as it is."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def function_named(operation: str, dtype: str) -> str:
    """The name of the function for an operation on arrays of a dtype."""
    return f"tensor_complex_{operation}" if is_complex(dtype) else f"tensor_{operation}"


def constant(value: Number, dtype: str) -> exp.Expr:
    """The SQL of a number, of exactly the type that a dtype is computed with: it selects among overloaded functions."""
    if is_complex(dtype) or dtype == "int64":
        return number(value, dtype)
    real = float(value.real)
    is_short = real.is_integer() and abs(real) < 1e6 and not (real == 0 and math.copysign(1, real) < 0)
    return exp.cast(integer(int(real)) if is_short else number(real, dtype), number_type(dtype), copy=False)


def converted(value: exp.Expr, kind: exp.DataType) -> exp.Expr:
    """A cast, also from one array type to another, which sqlglot's own function would omit as the same type."""
    return exp.Cast(this=value, to=kind)


def first_element(array: exp.Expr) -> exp.Expr:
    """The number in an array of one element."""
    return exp.Bracket(this=array, expressions=[integer(1)], offset=1)


def in_parentheses(expression: exp.Expr) -> exp.Expr:
    """The expression as an operand of another one: in parentheses if an operator could take only a part of it."""
    return exp.Paren(this=expression) if isinstance(expression, (exp.Binary, exp.Neg)) else expression

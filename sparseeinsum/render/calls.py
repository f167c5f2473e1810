"""Render: the small SQL expressions that all others are made of: constants, and calls of the vocabulary."""

from collections.abc import Sequence

from sqlglot import exp

from sparseeinsum.operators.dtypes import Number, is_complex
from sparseeinsum.statistics.columns import number_type
from sparseeinsum.statistics.numbers import number


def integer(value: int) -> exp.Expr:
    """A whole number as SQL."""
    return exp.Literal.number(value)


def integers(values: Sequence[int | exp.Expr]) -> exp.Expr:
    """An array of whole numbers as SQL."""
    if not values:
        return exp.cast(exp.array(), exp.DataType.build("BIGINT[]", dialect="duckdb"))
    return exp.array(*[integer(value) if isinstance(value, int) else value.copy() for value in values])


def text(value: str) -> exp.Expr:
    """A text as SQL."""
    return exp.Literal.string(value)


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """A function of the vocabulary, its name as it is."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def function_named(operation: str, dtype: str) -> str:
    """The function that does an operation on arrays of a dtype."""
    return f"tensor_complex_{operation}" if is_complex(dtype) else f"tensor_{operation}"


def constant(value: Number, dtype: str) -> exp.Expr:
    """A number of exactly the type that a dtype is computed with, to choose among functions of one name."""
    if is_complex(dtype) or dtype == "int64":
        return number(value, dtype)
    real = float(value.real)
    is_short = real.is_integer() and abs(real) < 1e6
    return exp.cast(integer(int(real)) if is_short else number(real, dtype), number_type(dtype))


def converted(value: exp.Expr, kind: exp.DataType) -> exp.Expr:
    """A cast, also of what is cast to an array of another type already, which sqlglot takes for the same."""
    return exp.Cast(this=value, to=kind)


def first_element(array: exp.Expr) -> exp.Expr:
    """The number in an array of one."""
    return exp.Bracket(this=array, expressions=[integer(1)], offset=1)


def in_parentheses(expression: exp.Expr) -> exp.Expr:
    """An expression as an operand of another: in parentheses where operators could take part of it."""
    return exp.Paren(this=expression) if isinstance(expression, (exp.Binary, exp.Neg)) else expression

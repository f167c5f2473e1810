"""Semantics: where the values of scalar expressions lie, from where their operands do."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparseeinsum.language.scalar import write
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.ranges import ANYTHING, NOTHING, Range, exactly, rounded


def range_of(expression: Scalar, operands: Sequence[Range], dtype: str) -> Range:
    """Where the values of an expression lie.

    Args:
        expression: Of operands.
        operands: Where their values lie.
        dtype: That the expression is computed in.
    """
    match expression:
        case Operand(index):
            return operands[index]
        case Literal(value):
            return exactly(value)
        case Call(function, arguments):
            return _applied(function, [range_of(argument, operands, dtype) for argument in arguments], dtype)
        case _:
            raise ValueError(f"{write(expression)} is not known yet")


def _applied(function: str, arguments: list[Range], dtype: str) -> Range:
    if NOTHING in arguments and function != "where":
        return NOTHING
    if all(argument.exact is not None for argument in arguments):
        return _computed(function, [argument.exact for argument in arguments])
    record = FUNCTIONS[function]
    rule = record.complex_range if is_complex(dtype) else record.range
    if rule is None:
        return ANYTHING
    found = rule(*arguments)
    is_one_value = found.low == found.high and not found.may_be_nan and not is_complex(dtype)
    return exactly(found.low) if is_one_value and found.exact is None else rounded(found, dtype)


def _computed(function: str, values: Sequence[Any]) -> Range:
    """What a function makes of numbers, by numpy; truth is 0 and 1, as it is to kernels."""
    numbers = [int(value) if isinstance(value, bool) else value for value in values]
    with np.errstate(all="ignore"):
        try:
            value = FUNCTIONS[function].numpy(*numbers)
        except (ArithmeticError, TypeError, ValueError):
            return ANYTHING
    return exactly(np.asarray(value).item())

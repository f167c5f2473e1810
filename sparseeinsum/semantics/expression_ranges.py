"""Semantics: the range of a scalar expression, for the ranges of its operands."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparseeinsum.language.scalar import write
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.ranges import ANY_VALUE, EMPTY_RANGE, Range, exact_range, with_rounding


def range_of(expression: Scalar, operands: Sequence[Range], dtype: str) -> Range:
    """The range of the values of an expression.

    Args:
        expression: The expression.
        operands: The ranges of its operands.
        dtype: The dtype of the arithmetic.
    """
    match expression:
        case Operand(index):
            return operands[index]
        case Literal(value):
            return exact_range(value)
        case Call(function, arguments):
            return _range_of_call(function, [range_of(argument, operands, dtype) for argument in arguments], dtype)
        case _:
            raise ValueError(f"{write(expression)} is not known yet")


def _range_of_call(function: str, arguments: list[Range], dtype: str) -> Range:
    """The range of a function for the ranges of its arguments, computed in `dtype`."""
    if EMPTY_RANGE in arguments and function != "where":
        return EMPTY_RANGE
    if all(argument.exact is not None for argument in arguments):
        return _range_of_numbers(function, [argument.exact for argument in arguments])
    record = FUNCTIONS[function]
    rule = record.complex_range if is_complex(dtype) else record.range
    if rule is None:
        return ANY_VALUE
    result = rule(*arguments)
    is_one_value = result.low == result.high and not result.may_be_nan and not is_complex(dtype)
    return exact_range(result.low) if is_one_value and result.exact is None else with_rounding(result, dtype)


def _range_of_numbers(function: str, values: Sequence[Any]) -> Range:
    """The range of a function of known numbers, by numpy; bools count as 0 and 1, as in kernels."""
    numbers = [int(value) if isinstance(value, bool) else value for value in values]
    with np.errstate(all="ignore"):
        try:
            value = FUNCTIONS[function].numpy(*numbers)
        except (ArithmeticError, TypeError, ValueError):
            return ANY_VALUE
    return exact_range(np.asarray(value).item())

"""Semantics: whether an expression turns NaN or infinite where one of its operands is."""

import math
from collections.abc import Sequence
from functools import partial
from itertools import chain

import numpy as np

from sparseeinsum.language.scalar import operands_of
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.ranges import exact_range, finite_range
from sparseeinsum.operators.records import NONFINITE


def stays_nonfinite(expression: Scalar, position: int, values: Sequence[float]) -> bool:
    """Whether an expression is NaN or infinite wherever an operand has one of these values, and the others are finite.

    Args:
        expression: The expression.
        position: The number of the operand.
        values: NaN, inf and -inf, or some of them.
    """
    return all(_results(expression, position, value) for value in values)


def _results(expression: Scalar, position: int, value: float) -> tuple[float, ...]:
    """The values that the expression may have there; none if one of them may be finite."""
    match expression:
        case Operand(index) if index == position:
            return (value,)
        case Call(function, arguments) if FUNCTIONS[function].python is None:
            reading = [number for number, argument in enumerate(arguments) if position in operands_of(argument)]
            inner = _results(arguments[reading[0]], position, value) if len(reading) == 1 else ()
            results = [_results_of_call(function, arguments, reading[0], argument) for argument in inner]
            return tuple(chain.from_iterable(results)) if all(results) else ()
        case _:
            return ()


def _results_of_call(function: str, arguments: Sequence[Scalar], number: int, value: float) -> tuple[float, ...]:
    """The values of a function with this value of one argument; none if one of them may be finite."""
    others = [argument for index, argument in enumerate(arguments) if index != number]
    if all(isinstance(other, Literal) for other in others):
        result = _value(function, [getattr(argument, "value", value) for argument in arguments])
        return () if math.isfinite(result) else (result,)
    record = FUNCTIONS[function]
    if not record.nonfinite_from or not any(map(partial(_is_same, value), record.nonfinite_from[number])):
        return ()
    if math.isnan(value) or record.range is None:
        return NONFINITE
    # An infinity plus finite values stays; plus the infinities to which the others may overflow, it may be NaN.
    ranges = [exact_range(value) if index == number else finite_range("float64") for index in range(len(arguments))]
    exact = record.range(*ranges).exact
    return NONFINITE if exact is None else (float(np.real(exact)), math.nan)


def _is_same(value: float, other: float) -> bool:
    return value == other or (math.isnan(value) and math.isnan(other))


def _value(function: str, arguments: Sequence[float]) -> float:
    with np.errstate(all="ignore"):
        return float(FUNCTIONS[function].numpy(*arguments))

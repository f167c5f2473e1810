"""Semantics: whether an expression turns NaN or infinite where one of its operands is."""

import math
from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np

from sparseeinsum.language.scalar import operands_of
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.operators.functions import FUNCTIONS

# Finite values at which functions do what they do nowhere else: inf * 0, 1 ^ inf, mod(-1, inf).
_SAMPLES = (-1e300, -2.5, -1.0, -0.5, -1e-300, 0.0, 1e-300, 0.5, 1.0, 2.5, 1e300)


def stays_nonfinite(expression: Scalar, position: int, values: Sequence[float]) -> bool:
    """Whether an expression is NaN or infinite wherever an operand has one of these values, and the others are finite.

    Functions are tried out at a few finite values of their other arguments.

    Args:
        expression: The expression.
        position: The number of the operand.
        values: NaN, inf and -inf, or some of them.
    """
    return _results(expression, position, tuple(values)) is not None


def _results(expression: Scalar, position: int, values: tuple[float, ...]) -> tuple[float, ...] | None:
    """The values of the expression there; None if some may be finite."""
    match expression:
        case Operand(index) if index == position:
            return values
        case Call(function, arguments) if FUNCTIONS[function].python is None:
            reading = [number for number, argument in enumerate(arguments) if position in operands_of(argument)]
            if len(reading) != 1:
                return None
            inner = _results(arguments[reading[0]], position, values)
            if inner is None:
                return None
            choices = [inner if number == reading[0] else _finite(other) for number, other in enumerate(arguments)]
            results = _distinct(_value(function, chosen) for chosen in product(*choices))
            return None if any(map(math.isfinite, results)) else results
        case _:
            return None


def _finite(expression: Scalar) -> tuple[float, ...]:
    return (float(np.real(expression.value)),) if isinstance(expression, Literal) else _SAMPLES


def _value(function: str, arguments: Sequence[float]) -> float:
    with np.errstate(all="ignore"):
        return float(FUNCTIONS[function].numpy(*arguments))


def _distinct(values: Iterable[float]) -> tuple[float, ...]:
    return tuple({repr(value): value for value in values}.values())  # NaN is not equal to itself

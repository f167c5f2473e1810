"""Rewriting: evaluates expressions partially, and simplifies them as far as is exact for finite operands."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from sparseeinsum.language.scalar import evaluate, evaluated_dtype, operands_of
from sparseeinsum.operators.dtypes import Array, Number
from sparseeinsum.operators.expressions import Call, Literal, Scalar
from sparseeinsum.operators.ranges import Range
from sparseeinsum.semantics.expression_ranges import range_of


def evaluate_partially(expression: Scalar, values: Mapping[int, Number], dtypes: Sequence[str]) -> Scalar:
    """An expression with some operands set to numbers, simplified as far as is exact for finite operands.

    Args:
        expression: An expression of operands of `dtypes`.
        values: Numbers by operand.
        dtypes: Dtypes of all operands; no simplification changes the dtype of the result.

    Raises:
        ValueError: A part that these numbers alone decide has no value in its dtype.

    >>> from sparseeinsum.language.scalar import write
    >>> from sparseeinsum.operators.expressions import U, V
    >>> write(evaluate_partially(Call("mul", (Call("sub", (U, V)), V)), {0: 0.0}, ["float64", "float64"]))
    '-v * v'
    """
    if operands_of(expression) <= values.keys():
        return Literal(constant_value(expression, values, dtypes))
    if not isinstance(expression, Call):
        return expression
    arguments = tuple(evaluate_partially(argument, values, dtypes) for argument in expression.arguments)
    call = Call(expression.function, arguments)
    if not operands_of(call):
        return Literal(constant_value(call, {}, dtypes))
    shorter = _simplified(call)
    return (
        shorter
        if isinstance(shorter, Literal) or _is_of_dtype(shorter, evaluated_dtype(call, dtypes), dtypes)
        else call
    )


def _is_of_dtype(expression: Scalar, dtype: str, dtypes: Sequence[str]) -> bool:
    try:
        return evaluated_dtype(expression, dtypes) == dtype
    except TypeError:  # numpy cannot negate bools
        return False


def constant_value(expression: Scalar, values: Mapping[int, Number], dtypes: Sequence[str]) -> Number:
    """The value of an expression whose operands are all in `values`, rounded as their dtypes are.

    Raises:
        ValueError: The result is beyond int64.
    """
    operands: list[Array | Number] = [0] * len(dtypes)
    for index, value in values.items():
        operands[index] = np.asarray(value, dtypes[index])[()]
    result: Number = evaluate(expression, operands).item()
    if isinstance(result, int):
        # The same in float64 shows whether int64 has overflowed.
        inexact = [complex(operand).real for operand in operands]
        if not math.isclose(result, evaluate(expression, inexact).item(), rel_tol=1e-9, abs_tol=1e-9):
            raise ValueError("the value is beyond int64")
    return result


def _simplified(call: Call) -> Scalar:
    """The expression that a call equals for all finite operands; the call itself if none is known."""
    match call.function, call.arguments:
        case "mul", (Literal(value), other) | (other, Literal(value)):
            return _product(value, other, call)
        case "add", (Literal(value), other) | (other, Literal(value)) if value == 0:
            return other
        case "sub", (other, Literal(value)) if value == 0:
            return other
        case "sub", (Literal(value), other) if value == 0:
            return Call("neg", (other,))
        case "sub", (first, second) if first == second and _keeps_finite(first):
            return Literal(0)
        case "div", (other, Literal(value)) if value == 1:
            return other
        case "and", (Literal(value), _) | (_, Literal(value)) if not value:
            return Literal(False)
        case "or", (Literal(value), _) | (_, Literal(value)) if value:
            return Literal(True)
        case "where", (Literal(value), first, second):
            return first if value else second
        case _:
            return call


def _product(value: Number, other: Scalar, call: Call) -> Scalar:
    if value == 0 and _keeps_finite(other):
        return Literal(0)
    return other if value == 1 else call


_MODERATE = Range(-1e3, 1e3)  # callers check separately that larger values stay finite


def _keeps_finite(expression: Scalar) -> bool:
    """Whether an expression of moderate values is finite."""
    operands = [_MODERATE] * (max(operands_of(expression), default=0) + 1)
    return range_of(expression, operands, "float64").is_finite

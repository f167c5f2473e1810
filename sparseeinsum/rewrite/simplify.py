"""Rewriting: expressions in, the same for finite operands with fewer operations out."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from sparseeinsum.language.scalar import evaluate, operands_of
from sparseeinsum.operators.dtypes import Array, Number
from sparseeinsum.operators.expressions import Call, Literal, Scalar
from sparseeinsum.operators.ranges import Range
from sparseeinsum.rewrite.chains import dtype_of
from sparseeinsum.semantics.ranges import range_of


def with_operands_set(expression: Scalar, values: Mapping[int, Number], dtypes: Sequence[str]) -> Scalar:
    """An expression with some operands set to numbers, simplified as far as is exact for finite operands.

    Args:
        expression: Of operands of these dtypes.
        values: Numbers by operand.
        dtypes: Dtypes of all operands; no simplification changes the dtype of the result.

    Raises:
        ValueError: A part that these numbers alone decide has no value in its dtype.

    >>> from sparseeinsum.language.scalar import write
    >>> from sparseeinsum.operators.expressions import U, V
    >>> write(with_operands_set(Call("mul", (Call("sub", (U, V)), V)), {0: 0.0}, ["float64", "float64"]))
    '-v * v'
    """
    if operands_of(expression) <= values.keys():
        return Literal(number_of(expression, values, dtypes))
    if not isinstance(expression, Call):
        return expression
    arguments = tuple(with_operands_set(argument, values, dtypes) for argument in expression.arguments)
    call = Call(expression.function, arguments)
    if not operands_of(call):
        return Literal(number_of(call, {}, dtypes))
    shorter = _shorter(call)
    return shorter if isinstance(shorter, Literal) or _is_of_dtype(shorter, dtype_of(call, dtypes), dtypes) else call


def _is_of_dtype(expression: Scalar, dtype: str, dtypes: Sequence[str]) -> bool:
    try:
        return dtype_of(expression, dtypes) == dtype
    except TypeError:  # numpy has no minus before truth
        return False


def number_of(expression: Scalar, values: Mapping[int, Number], dtypes: Sequence[str]) -> Number:
    """The value of an expression of numbers of some dtypes, rounded as those are.

    Raises:
        ValueError: int64 has no such number.
    """
    operands: list[Array | Number] = [0] * len(dtypes)
    for index, value in values.items():
        operands[index] = np.asarray(value, dtypes[index])[()]
    found: Number = evaluate(expression, operands).item()
    if isinstance(found, int):
        inexact = [complex(operand).real for operand in operands]
        if not math.isclose(found, evaluate(expression, inexact).item(), rel_tol=1e-9, abs_tol=1e-9):
            raise ValueError("the value is beyond int64")
    return found


def _shorter(call: Call) -> Scalar:
    """What a call is whatever the finite values of its operands; itself if that is not known."""
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


_MODERATE = Range(-1e3, 1e3)  # what users of these expressions prove of values is their business


def _keeps_finite(expression: Scalar) -> bool:
    """Whether an expression of moderate values is finite."""
    operands = [_MODERATE] * (max(operands_of(expression), default=0) + 1)
    return range_of(expression, operands, "float64").is_finite

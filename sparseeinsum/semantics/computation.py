"""Semantics: the dtype that an EinSum's kernels compute in, and whether that is exact.

A kernel computes a whole expression in one dtype, where numpy may change it from operation to operation. Whole numbers
inside an expression of floating point are exact as long as they stay below 2^53, which their ranges must prove.
"""

import math
from collections.abc import Iterator, Mapping

import numpy as np

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.language.inference import bounds_of, dtype_of, join_dtype
from sparseeinsum.language.scalar import evaluate, functions_of, operands_of, write
from sparseeinsum.language.tensors import Tensor
from sparseeinsum.operators.aggregates import aggregated_dtype, has_aggregate
from sparseeinsum.operators.dtypes import promoted
from sparseeinsum.operators.expressions import Call, Operand, Scalar
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.ranges import Range
from sparseeinsum.semantics.ranges import range_of

_EXACT = 1 << 53  # every whole number up to here is a float64


def computing_dtype(einsum: EinSum, tensors: Mapping[str, Tensor], ranges: list[Range]) -> str:
    """The dtype that an EinSum is computed in: float64, float32, int64, complex128 or complex64.

    Raises:
        SemanticsError: Whole numbers in an expression of floating point may be too large to be exact.
    """
    dtypes = [tensors[operand.tensor].dtype for operand in einsum.operands]
    found = {dtype_of(part, dtypes, einsum) for part in (*_parts(einsum.join), *_compared(einsum.join))}
    dtype = promoted(sorted(found))
    if dtype == "bool":
        dtype = "float32" if aggregated_dtype(einsum.base_aggregate, dtype) == "bool" else "float64"
    elif dtype == "float32" and join_dtype(einsum, tensors) == "bool" and _counts(einsum.base_aggregate):
        dtype = "float64"  # counts more than float32 can
    if dtype == "int64" and not (_has_integers(einsum.base_aggregate) and not _calls_functions_of_users(einsum.join)):
        dtype = "float64"
    if dtype != "int64" and "int64" in found:
        _check_whole(einsum, tensors, dtypes, ranges, dtype)
    if dtype != "int64" and einsum.aggregate == "sum" and join_dtype(einsum, tensors) == "bool":
        _check_count(einsum, tensors)
    return dtype


def _counts(aggregate: str | None) -> bool:
    """Whether an aggregate of truth is a whole number."""
    return aggregated_dtype(aggregate, "bool") == "int64"


def _has_integers(aggregate: str | None) -> bool:
    """Whether int64 has an aggregate."""
    return aggregate is None or has_aggregate(aggregate, "integer")


def _calls_functions_of_users(join: Scalar) -> bool:
    return any(FUNCTIONS[name].python is not None for name in functions_of(join))


def _parts(expression: Scalar) -> Iterator[Scalar]:
    """All sub-expressions that have operands: literals take the dtype of what is beside them."""
    match expression:
        case Operand():
            yield expression
        case Call(_, arguments) if operands_of(expression):
            yield expression
            for argument in arguments:
                yield from _parts(argument)


def _compared(expression: Scalar) -> Iterator[Scalar]:
    """Expressions of the dtype that two values are compared in, of which the truth that comes out says nothing."""
    for part in _parts(expression):
        if isinstance(part, Call) and len(part.arguments) == 2 and FUNCTIONS[part.function].gives_truth:
            yield Call("add", part.arguments)


def _check_whole(
    einsum: EinSum, tensors: Mapping[str, Tensor], dtypes: list[str], ranges: list[Range], dtype: str
) -> None:
    """Refuse operations on whole numbers that floating point might round."""
    for part in _parts(einsum.join):
        if not isinstance(part, Call):
            continue
        whole = [each for each in part.arguments if _is_whole(each, dtypes, einsum)]
        if dtype_of(part, dtypes, einsum) == "int64":
            whole.append(part)
        elif len(whole) < len(part.arguments):
            continue  # numpy, too, rounds a whole number beside a float
        lie = [range_of(argument, ranges, "int64") for argument in part.arguments]
        if part in whole and FUNCTIONS[part.function].floats_differ(*lie):
            raise SemanticsError(
                f"{einsum.output.tensor}: {write(part, [operand.tensor for operand in einsum.operands])} may differ "
                f"between whole numbers and {dtype}; give the whole-number part a statement of its own"
            )
        for each in whole:
            if range_of(each, ranges, "int64").magnitude > _EXACT:
                names = [operand.tensor for operand in einsum.operands]
                raise SemanticsError(
                    f"{einsum.output.tensor}: {write(each, names)} may be beyond 2^53, where {dtype} rounds whole "
                    "numbers; give the whole-number part a statement of its own"
                )


def _check_count(einsum: EinSum, tensors: Mapping[str, Tensor]) -> None:
    """Refuse to count truth values that float64 might round.

    Those of tuples are never so many; those of what is absent are, where fills make the expression true.
    """
    bounds = bounds_of(einsum, tensors)
    times = math.prod(bounds[label] for label in einsum.aggregated)
    fills = [np.asarray(tensors[operand.tensor].fill, tensors[operand.tensor].dtype)[()] for operand in einsum.operands]
    if times > _EXACT and evaluate(einsum.join, fills):
        names = [operand.tensor for operand in einsum.operands]
        raise SemanticsError(
            f"{einsum.output.tensor}: {write(einsum.join, names)} may be true {times:,} times, and float64 "
            "counts to 2^53; sum over some of the labels in a statement of its own"
        )


def _is_whole(expression: Scalar, dtypes: list[str], einsum: EinSum) -> bool:
    return bool(operands_of(expression)) and dtype_of(expression, dtypes, einsum) == "int64"

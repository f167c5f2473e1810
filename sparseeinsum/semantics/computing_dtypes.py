"""Semantics: the dtype in which the kernels of an EinSum compute, and whether that is exact.

A kernel computes a whole expression in one dtype, where numpy may change the dtype from operation to operation.
Integers inside an expression of floating point are exact as long as they stay below 2^53, which their ranges must
prove.
"""

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache

from sparseeinsum.errors import SemanticsError
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.language.inference import bounds_of, dtype_of, join_dtype, value_at_fills
from sparseeinsum.language.scalar import functions_of, key_of, operands_of, write
from sparseeinsum.language.tensors import Tensor
from sparseeinsum.operators.aggregates import aggregated_dtype, has_aggregate
from sparseeinsum.operators.dtypes import result_dtype
from sparseeinsum.operators.expressions import Call, Operand, Scalar
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.ranges import Range
from sparseeinsum.semantics.expression_ranges import range_of

_EXACT = 1 << 53  # every integer up to here is a float64


def computing_dtype(einsum: EinSum, tensors: Mapping[str, Tensor], ranges: list[Range]) -> str:
    """The dtype in which an EinSum is computed: float64, float32, int64, complex128 or complex64.

    Args:
        einsum: The EinSum.
        tensors: Its operands and its result, by name.
        ranges: The range of values of each operand.

    Raises:
        SemanticsError: Integers in an expression of floating point may be too large to be exact.
    """
    dtypes = [tensors[operand.tensor].dtype for operand in einsum.operands]
    computed = _computed_subexpressions(einsum.join, key_of(einsum.join))
    dtypes_inside = {dtype_of(subexpression, dtypes, einsum) for subexpression in computed}
    dtype = result_dtype(sorted(dtypes_inside))
    if dtype == "bool":
        dtype = "float32" if aggregated_dtype(einsum.base_aggregate, dtype) == "bool" else "float64"
    elif dtype == "float32" and join_dtype(einsum, tensors) == "bool" and _counts_bools(einsum.base_aggregate):
        dtype = "float64"  # float32 cannot hold large counts
    if dtype == "int64" and not (_has_integers(einsum.base_aggregate) and not _calls_functions_of_users(einsum.join)):
        dtype = "float64"
    if dtype != "int64" and "int64" in dtypes_inside:
        _check_integers(einsum, dtypes, ranges, dtype)
    if dtype != "int64" and einsum.aggregate == "sum" and join_dtype(einsum, tensors) == "bool":
        _check_count(einsum, tensors)
    return dtype


def _counts_bools(aggregate: str | None) -> bool:
    """Whether an aggregate of bools is an integer."""
    return aggregated_dtype(aggregate, "bool") == "int64"


def _has_integers(aggregate: str | None) -> bool:
    """Whether int64 has the aggregate."""
    return aggregate is None or has_aggregate(aggregate, "integer")


def _calls_functions_of_users(join: Scalar) -> bool:
    return any(FUNCTIONS[name].python is not None for name in functions_of(join))


def _subexpressions(expression: Scalar) -> Iterator[Scalar]:
    """All subexpressions that have operands; literals take the dtype of the other arguments."""
    match expression:
        case Operand():
            yield expression
        case Call(_, arguments) if operands_of(expression):
            yield expression
            for argument in arguments:
                yield from _subexpressions(argument)


@lru_cache(maxsize=1024)  # most joins are products
def _computed_subexpressions(expression: Scalar, key: tuple[object, ...]) -> tuple[Scalar, ...]:
    """Everything in whose dtype a part of an expression is computed; `key` is its `key_of`."""
    del key
    return (*_subexpressions(expression), *_comparison_sums(expression))


def _comparison_sums(expression: Scalar) -> Iterator[Scalar]:
    """For each comparison, a sum of its arguments, whose dtype is the one in which they are compared."""
    for subexpression in _subexpressions(expression):
        if (
            isinstance(subexpression, Call)
            and len(subexpression.arguments) == 2
            and FUNCTIONS[subexpression.function].returns_bool
        ):
            yield Call("add", subexpression.arguments)


def _check_integers(einsum: EinSum, dtypes: list[str], ranges: list[Range], dtype: str) -> None:
    """Raise a SemanticsError if floating point might round integers in an expression.

    Args:
        einsum: The EinSum of the expression.
        dtypes: Dtypes of its operands.
        ranges: Ranges of its operands.
        dtype: The floating-point dtype in which kernels compute.
    """
    names = [operand.tensor for operand in einsum.operands]
    for subexpression in _subexpressions(einsum.join):
        if not isinstance(subexpression, Call):
            continue
        integers = [integer for integer in subexpression.arguments if _is_integer(integer, dtypes, einsum)]
        if dtype_of(subexpression, dtypes, einsum) == "int64":
            integers.append(subexpression)
        elif len(integers) < len(subexpression.arguments):
            continue  # numpy also rounds an integer that meets a float
        argument_ranges = [range_of(argument, ranges, "int64") for argument in subexpression.arguments]
        if subexpression in integers and FUNCTIONS[subexpression.function].floats_differ(*argument_ranges):
            raise SemanticsError(
                f"{einsum.output.tensor}: {write(subexpression, names)} may differ between whole numbers and "
                f"{dtype}; give the whole-number part a statement of its own"
            )
        for integer in integers:
            if range_of(integer, ranges, "int64").magnitude > _EXACT:
                raise SemanticsError(
                    f"{einsum.output.tensor}: {write(integer, names)} may be beyond 2^53, where {dtype} rounds whole "
                    "numbers; give the whole-number part a statement of its own"
                )


def _check_count(einsum: EinSum, tensors: Mapping[str, Tensor]) -> None:
    """Raise a SemanticsError if float64 might round a count of bools.

    Stored tuples are never so many. But absent indices may be, where the fills make the expression true.
    """
    bounds = bounds_of(einsum, tensors)
    times = math.prod(bounds[label] for label in einsum.aggregated)
    operands = [tensors[operand.tensor] for operand in einsum.operands]
    if times > _EXACT and value_at_fills(einsum.join, operands):
        names = [operand.tensor for operand in einsum.operands]
        raise SemanticsError(
            f"{einsum.output.tensor}: {write(einsum.join, names)} may be true {times:,} times, and float64 "
            "counts to 2^53; sum over some of the labels in a statement of its own"
        )


def _is_integer(expression: Scalar, dtypes: list[str], einsum: EinSum) -> bool:
    return bool(operands_of(expression)) and dtype_of(expression, dtypes, einsum) == "int64"

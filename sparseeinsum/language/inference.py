"""Language: infers the shape, dtype and fill of the result of an EinSum from its operands.

The rules are numpy's: dtypes are found by evaluating on empty arrays, and fills by evaluating on the fills.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from sparseeinsum.errors import SemanticsError, ShapeError
from sparseeinsum.language.eingraph import EinSum, Reference, write_reference
from sparseeinsum.language.scalar import evaluate, evaluated_dtype, gives_infinity, key_of, write
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.operators.aggregates import AGGREGATES, aggregated_dtype
from sparseeinsum.operators.dtypes import ITEM_BYTES, Array, Number, as_number
from sparseeinsum.operators.expressions import Bound, Call, Literal, Scalar
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES

ZEROS = {dtype: as_number(0, dtype) for dtype in ITEM_BYTES}
"""The number 0 of every dtype."""


def bounds_of(einsum: EinSum, tensors: Mapping[str, Tensor]) -> dict[str, int]:
    """The bound of every label of an EinSum's operands.

    Raises:
        ShapeError: An operand has more or fewer labels than its tensor has axes, or a label has two bounds.
    """
    return {label: axis.bound for label, axis in _axes_of_labels(einsum, tensors).items()}


def _axes_of_labels(einsum: EinSum, tensors: Mapping[str, Tensor]) -> dict[str, Axis]:
    """The axis of every label of an EinSum's operands, named as the label.

    Raises:
        ShapeError: As for `bounds_of`; or a label has two dictionaries, or a dictionary in one operand only.
    """
    axes: dict[str, tuple[Axis, str]] = {}
    for operand in einsum.operands:
        tensor = tensors[operand.tensor]
        _check_rank(operand, tensor)
        for label, axis in zip(operand.labels, tensor.axes, strict=True):
            earlier, tensor_name = axes.setdefault(label, (axis, tensor.name))
            if earlier.dictionary != axis.dictionary:
                keys = f"{_describe_keys(earlier, tensor_name)}, but {_describe_keys(axis, tensor.name)}"
                raise ShapeError(f"label {label} of {einsum.output.tensor} has {keys}; {_ONE_DICTIONARY}")
            if earlier.bound != axis.bound:
                raise ShapeError(
                    f"label {label} of {einsum.output.tensor} has two bounds: {earlier.bound} in {tensor_name}, "
                    f"{axis.bound} in {tensor.name} (axis {axis.name})"
                )
    return {label: Axis(label, axis.bound, axis.dictionary) for label, (axis, _) in axes.items()}


_ONE_DICTIONARY = "give both axes one dictionary with keys={axis: dictionary}, where the tensors are loaded or declared"


def _describe_keys(axis: Axis, tensor: str) -> str:
    place = f"in {tensor} (axis {axis.name})"
    if axis.dictionary is None:
        return f"plain indices {place}"
    return f"keys of the dictionary {axis.dictionary.name}, of type {axis.dictionary.key_type}, {place}"


def _check_rank(operand: Reference, tensor: Tensor) -> None:
    if len(operand.labels) != len(tensor.axes):
        labels = "1 label" if len(operand.labels) == 1 else f"{len(operand.labels)} labels"
        axes = "1 axis" if len(tensor.axes) == 1 else f"{len(tensor.axes)} axes"
        raise ShapeError(
            f"{write_reference(operand)} has {labels}, but tensor {tensor.name} has {axes}: "
            f"{', '.join(axis.name for axis in tensor.axes)}"
        )


def result_tensor(einsum: EinSum, tensors: Mapping[str, Tensor]) -> Tensor:
    """The tensor that an EinSum computes: its axes, dtype and fill.

    The fill is the aggregate of the join of the operands' fills, over the bounds of the aggregated labels; or 0 if
    that is no possible fill (see `_propagated_fill`).

    Raises:
        ShapeError: Labels and axes do not match, or a label has two bounds.
        SemanticsError: numpy has no such operation on values of these dtypes.
    """
    axes = _axes_of_labels(einsum, tensors)
    if einsum.state is not None:
        axes[einsum.state] = Axis(einsum.state, USER_AGGREGATES[str(einsum.aggregate)].numbers)
    result_axes = tuple(axes[label] for label in einsum.output.labels)
    dtype = result_dtype(einsum, join_dtype(einsum, tensors))
    times = math.prod([axes[label].bound for label in einsum.aggregated])
    fill = _propagated_fill(einsum, [tensors[operand.tensor] for operand in einsum.operands], times, dtype)
    return Tensor(einsum.output.tensor, result_axes, dtype, ZEROS[dtype] if fill is None else fill)


def join_dtype(einsum: EinSum, tensors: Mapping[str, Tensor]) -> str:
    """The dtype of the join of an EinSum, whose values it aggregates."""
    return dtype_of(einsum.join, [tensors[operand.tensor].dtype for operand in einsum.operands], einsum)


def dtype_of(expression: Scalar, dtypes: list[str], einsum: EinSum) -> str:
    """The dtype of an expression, as numpy computes it; `dtypes` are those of the operands, `einsum` is for errors.

    Raises:
        SemanticsError: numpy does not support the operation for these dtypes.
    """
    try:
        return evaluated_dtype(expression, dtypes)
    except SemanticsError as error:  # of a function that a user registered
        raise SemanticsError(f"{einsum.output.tensor}: {error}") from None
    except (TypeError, ValueError) as error:
        text = write(expression, [operand.tensor for operand in einsum.operands])
        raise SemanticsError(
            f"{einsum.output.tensor}: numpy has no {text} for {', '.join(dict.fromkeys(dtypes))} ({error})"
        ) from None


def result_dtype(einsum: EinSum, dtype: str) -> str:
    """The dtype of an EinSum's result; `dtype` is that of its join."""
    try:
        return aggregated_dtype(einsum.base_aggregate, dtype)
    except SemanticsError as error:
        raise SemanticsError(f"{einsum.output.tensor}: {error}") from None


def _propagated_fill(einsum: EinSum, operands: Sequence[Tensor], times: int, dtype: str) -> Number | None:
    """The value of a result of this dtype, an aggregate of so many values, where all operands have their fills.

    None if it is NaN, or beyond int64, or an infinity that is in no fill and not in the expression: then no fill can
    represent it, and every entry of the result must be computed.
    """
    try:
        joined = value_at_fills(einsum.join, operands)
    except ValueError:  # an integer to a negative power
        return None
    is_infinite = not all(math.isfinite(abs(tensor.fill)) for tensor in operands) or gives_infinity(einsum.join)
    may_be_infinite = times == 0 or is_infinite
    if einsum.aggregate in USER_AGGREGATES:
        value = aggregate_constant(einsum, joined, times, dtype)
        return None if value is None else _possible_fill(value, dtype, may_be_infinite)
    number = joined.item()
    scans = einsum.along is not None
    return _aggregated_fill(
        einsum.base_aggregate, scans, joined.dtype.str, number, repr(number), times, dtype, may_be_infinite
    )


@lru_cache(maxsize=4096)
def _aggregated_fill(
    aggregate: str | None,
    scans: bool,
    joined_dtype: str,
    number: Number,
    written: str,
    times: int,
    dtype: str,
    may_be_infinite: bool,
) -> Number | None:
    """The fill of an aggregate or scan of so many copies of a number; `written` tells 0.0 from -0.0."""
    del written
    value = _constant_of(aggregate, scans, np.asarray(number, joined_dtype), times, dtype)
    return None if value is None else _possible_fill(value, dtype, may_be_infinite)


def value_at_fills(expression: Scalar, operands: Sequence[Tensor]) -> Array:
    """The value of an expression where all its operands have their fills, as numpy computes it.

    Raises:
        ValueError: The expression has no value there, as an integer to a negative power.
    """
    fills = tuple([tensor.fill for tensor in operands])
    dtypes = tuple([tensor.dtype for tensor in operands])
    return _value_of_numbers(expression, fills, dtypes, repr(fills), key_of(expression))


@lru_cache(maxsize=4096)  # most tensors have the fill 0, and most joins are products
def _value_of_numbers(
    expression: Scalar,
    numbers: tuple[Number, ...],
    dtypes: tuple[str, ...],
    written: str,
    key: tuple[object, ...],
) -> Array:
    """The value of an expression; `written` tells 0.0 from -0.0, and `key` is its `key_of`."""
    del written, key
    pairs = zip(numbers, dtypes, strict=True)
    value = evaluate(expression, [np.asarray(number, dtype)[()] for number, dtype in pairs])
    value.flags.writeable = False
    return value


def aggregate_constant(einsum: EinSum, value: Array, times: int, dtype: str) -> Number | None:
    """The result of an EinSum's aggregate or scan over `times` copies of `value`; None if the results differ."""
    if einsum.aggregate in USER_AGGREGATES:
        record = USER_AGGREGATES[einsum.aggregate]
        if record.arguments > 1 and times > 0:
            return None
        state = record.try_fold_repeated(float(value), times)
        return state[0] if state is not None and len(set(state)) == 1 else None
    return _constant_of(einsum.base_aggregate, einsum.along is not None, value, times, dtype)


def _constant_of(aggregate: str | None, scans: bool, value: Array, times: int, dtype: str) -> Number | None:
    """The result of an aggregate of `times` copies of `value`, or of a scan over them; None if its results differ."""
    once = aggregate_repeated(aggregate, value, 1 if scans else times, dtype)
    if scans and aggregate_repeated(aggregate, value, 2, dtype) != once:
        return None
    return once


def aggregate_repeated(aggregate: str | None, value: Array, times: int, dtype: str) -> Number:
    """The aggregate of `times` copies of `value`; its identity if `times` is 0."""
    if aggregate is None:
        plain: Number = value.item()
        return plain
    if times == 0:
        return AGGREGATES[aggregate].identity(dtype)
    if dtype == "bool":
        return bool(value)
    with np.errstate(all="ignore"):
        python = value.item() if dtype == "int64" else np.asarray(value, dtype)[()]
        try:
            folded = AGGREGATES[aggregate].repeat(python, times)
        except OverflowError:
            return math.inf
    return folded if isinstance(folded, int) else np.asarray(folded).item()


def _possible_fill(value: Number, dtype: str, may_be_infinite: bool) -> Number | None:
    """The value as a fill of a dtype; None if no tensor of that dtype can have it as its fill."""
    is_whole = isinstance(value, int)  # unbounded in Python; np.isnan fails beyond int64
    if not is_whole and (np.isnan(value) or (np.isinf(value) and not (may_be_infinite and dtype != "int64"))):
        return None
    try:
        return as_number(value, dtype)
    except (SemanticsError, OverflowError):
        return None


def with_bounds(expression: Scalar, bounds: Mapping[str, int]) -> Scalar:
    """The expression with numbers in place of the bounds of labels; `bounds` has them by label.

    Raises:
        ShapeError: The expression asks for the bound of a label that the statement lacks.
    """
    match expression:
        case Bound(label) if label in bounds:
            return Literal(bounds[label])
        case Bound(label):
            raise ShapeError(f"bound({label}) asks for a label that its statement lacks; it has {', '.join(bounds)}")
        case Call(function, arguments):
            return Call(function, tuple(with_bounds(argument, bounds) for argument in arguments))
        case _:
            return expression

"""Semantics: defines what programs compute: evaluates EinSums on dense arrays with numpy."""

from collections.abc import Mapping, Sequence

import numpy as np

from sparseeinsum.language.eingraph import SELECT, EinGraph, EinSum, Program, aggregate_arguments
from sparseeinsum.language.generated import with_axis_bounds
from sparseeinsum.language.inference import with_bounds
from sparseeinsum.language.scalar import evaluate
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.operators.aggregates import AGGREGATES, aggregated_dtype
from sparseeinsum.operators.dtypes import Array
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.scans import SCANS
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES


def evaluate_program(program: Program | EinGraph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """All tensors of a program, generated ones included, as dense arrays by name."""
    tensors = dict(inputs)
    for einsum in program.einsums:
        shapes = {name: _tensor_of(name, array) for name, array in tensors.items()}
        for generated in program.generated if isinstance(program, Program) else ():
            if all(bound.tensor in tensors for bound in generated.bounding_axes()):
                tensors[generated.name] = generated.array(generated.tensor(shapes))
        tensors[einsum.output.tensor] = evaluate_einsum(einsum, tensors)
    return tensors


def _tensor_of(name: str, array: Array) -> Tensor:
    return Tensor(name, tuple(Axis(f"axis_{axis}", bound) for axis, bound in enumerate(array.shape)))


def evaluate_einsum(einsum: EinSum, tensors: Mapping[str, Array]) -> Array:
    """The result of one EinSum: its operands are broadcast to all labels, joined, and aggregated."""
    labels = tuple(label for label in einsum.labels if label != einsum.state)
    bounds: dict[str, int] = {}
    for operand in einsum.operands:
        bounds |= dict(zip(operand.labels, tensors[operand.tensor].shape, strict=True))
    shape = tuple(bounds[label] for label in labels)
    operands = [_broadcast(tensors[operand.tensor], operand.labels, labels, shape) for operand in einsum.operands]
    if einsum.aggregate in USER_AGGREGATES:
        return _user_aggregate(einsum, operands)
    if einsum.aggregate == SELECT:
        return _selected(*np.broadcast_arrays(*operands))
    shapes = {name: _tensor_of(name, array) for name, array in tensors.items()}
    join = with_bounds(with_axis_bounds(einsum.join, shapes), bounds)
    joined = np.broadcast_to(evaluate(join, operands), shape)
    if einsum.along is not None:
        return _scan_or_pick(str(einsum.aggregate), joined, labels.index(einsum.along))
    return _aggregate(einsum.aggregate, joined, tuple(range(len(einsum.output.labels), len(labels))))


def _user_aggregate(einsum: EinSum, operands: Sequence[Array]) -> Array:
    """The states of a user's aggregate; if a state has several numbers, they are the last axis."""
    record = USER_AGGREGATES[str(einsum.aggregate)]
    aggregated_dtype(record.name, str(np.result_type(*operands)))
    values = np.broadcast_arrays(*(evaluate(argument, operands) for argument in aggregate_arguments(einsum)))
    shape = values[0].shape[: values[0].ndim - len(einsum.aggregated)]
    rows = np.stack([argument.reshape(*shape, -1).astype(float) for argument in values], axis=-1)
    states = [record.fold_all(map(tuple, rows[index].tolist())) for index in np.ndindex(shape)]
    shape = shape if einsum.state is None else (*shape, record.numbers)
    return np.array(states, float).reshape(shape)


def _selected(is_read: Array, values: Array) -> Array:
    """The values where a map is true, which has one such index along the last axis wherever it has the others."""
    if 0 in values.shape:
        return np.zeros(values.shape[:-1], values.dtype)
    position = np.argmax(is_read, axis=-1, keepdims=True)
    return np.asarray(np.take_along_axis(values, position, axis=-1)[..., 0])


def _scan_or_pick(name: str, values: Array, axis: int) -> Array:
    """A scan of values along an axis, or the values that a pick takes from it."""
    if name in PICKS:
        return np.asarray(np.take(values, PICKS[name].position, axis=axis))
    dtype = aggregated_dtype(SCANS[name].aggregate, str(values.dtype))
    with np.errstate(all="ignore"):
        return np.asarray(SCANS[name].numpy(values.astype(dtype), axis=axis))


def _aggregate(aggregate: str | None, joined: Array, axes: tuple[int, ...]) -> Array:
    """The aggregate of an array over some axes; its identity where one of them has no index."""
    if aggregate is None:
        return np.asarray(joined)
    dtype = aggregated_dtype(aggregate, str(joined.dtype))
    if any(joined.shape[axis] == 0 for axis in axes):
        shape = tuple(bound for axis, bound in enumerate(joined.shape) if axis not in axes)
        return np.full(shape, AGGREGATES[aggregate].identity(dtype), dtype)
    with np.errstate(all="ignore"):
        values = (
            joined.astype(dtype) if AGGREGATES[aggregate].returns_float else joined
        )  # numpy would return float16 for bools
        return np.asarray(AGGREGATES[aggregate].numpy(values, axis=axes))


def _broadcast(array: Array, own_labels: tuple[str, ...], labels: tuple[str, ...], shape: tuple[int, ...]) -> Array:
    indices = np.indices(shape, sparse=True) if shape else ()
    return array[tuple(indices[labels.index(label)] for label in own_labels)]

"""Semantics: what programs mean: EinSums by numpy on dense arrays, as their definition says."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.language.eingraph import EinGraph, EinSum, Program, aggregate_arguments
from sparseeinsum.language.generated import with_axis_bounds
from sparseeinsum.language.inference import with_bounds
from sparseeinsum.language.scalar import evaluate
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.operators.aggregates import AGGREGATES, aggregated_dtype
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.scans import SCANS
from sparseeinsum.operators.users_aggregates import USERS_AGGREGATES

Array = NDArray[Any]


def evaluate_program(program: Program | EinGraph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Every tensor of a program, computed on dense arrays; those that it generates, too."""
    known = dict(inputs)
    for einsum in program.einsums:
        shapes = {name: _described(name, array) for name, array in known.items()}
        for generated in program.generated if isinstance(program, Program) else ():
            bounds = [axis.bound for axis in generated.tensor(shapes).axes] if _is_known(generated.bound, known) else []
            for bound in bounds:
                known[generated.name] = np.ones(bound, bool) if generated.kind == "ones" else np.arange(bound)
        known[einsum.output.tensor] = evaluate_einsum(einsum, known)
    return known


def _is_known(bound: object, known: Mapping[str, Array]) -> bool:
    return isinstance(bound, int) or getattr(bound, "tensor", None) in known


def _described(name: str, array: Array) -> Tensor:
    return Tensor(name, tuple(Axis(f"axis_{axis}", bound) for axis, bound in enumerate(array.shape)))


def evaluate_einsum(einsum: EinSum, known: Mapping[str, Array]) -> Array:
    """One EinSum: every operand spread over all labels, joined, then folded over those that the result lacks."""
    labels = tuple(label for label in einsum.labels if label != einsum.state)
    bounds: dict[str, int] = {}
    for operand in einsum.operands:
        bounds |= dict(zip(operand.labels, known[operand.tensor].shape, strict=True))
    shape = tuple(bounds[label] for label in labels)
    spread = [_spread(known[operand.tensor], operand.labels, labels, shape) for operand in einsum.operands]
    if einsum.aggregate in USERS_AGGREGATES:
        return _fold_states(einsum, spread)
    shapes = {name: _described(name, array) for name, array in known.items()}
    join = with_bounds(with_axis_bounds(einsum.join, shapes), bounds)
    joined = np.broadcast_to(evaluate(join, spread), shape)
    if einsum.along is not None:
        return _along(str(einsum.aggregate), joined, labels.index(einsum.along))
    return _fold(einsum.aggregate, joined, tuple(range(len(einsum.output.labels), len(labels))))


def _fold_states(einsum: EinSum, operands: Sequence[Array]) -> Array:
    """States of a user's aggregate; their numbers are the last axis, if they are several."""
    record = USERS_AGGREGATES[str(einsum.aggregate)]
    aggregated_dtype(record.name, str(np.result_type(*operands)))
    values = np.broadcast_arrays(*(evaluate(each, operands) for each in aggregate_arguments(einsum)))
    kept = values[0].shape[: values[0].ndim - len(einsum.aggregated)]
    lines = np.stack([each.reshape(*kept, -1).astype(float) for each in values], axis=-1)
    states = [record.folded(map(tuple, lines[index].tolist())) for index in np.ndindex(kept)]
    shape = kept if einsum.state is None else (*kept, record.numbers)
    return np.array(states, float).reshape(shape)


def _along(name: str, values: Array, axis: int) -> Array:
    """A scan along an axis, or the values that a pick takes."""
    if name in PICKS:
        return np.asarray(np.take(values, PICKS[name].position, axis=axis))
    dtype = aggregated_dtype(SCANS[name].aggregate, str(values.dtype))
    with np.errstate(all="ignore"):
        return np.asarray(SCANS[name].numpy(values.astype(dtype), axis=axis))


def _fold(aggregate: str | None, joined: Array, axes: tuple[int, ...]) -> Array:
    if aggregate is None:
        return np.asarray(joined)
    dtype = aggregated_dtype(aggregate, str(joined.dtype))
    if any(joined.shape[axis] == 0 for axis in axes):
        kept = tuple(bound for axis, bound in enumerate(joined.shape) if axis not in axes)
        return np.full(kept, AGGREGATES[aggregate].identity(dtype), dtype)
    with np.errstate(all="ignore"):
        values = joined.astype(dtype) if AGGREGATES[aggregate].gives_floats else joined  # numpy's of bools is a float16
        return np.asarray(AGGREGATES[aggregate].numpy(values, axis=axes))


def _spread(array: Array, own: tuple[str, ...], labels: tuple[str, ...], shape: tuple[int, ...]) -> Array:
    indices = np.indices(shape, sparse=True) if shape else ()
    return array[tuple(indices[labels.index(label)] for label in own)]

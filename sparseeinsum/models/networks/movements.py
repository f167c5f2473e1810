"""Models: takes elements of a value, adds some around it, and gives it other shapes."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sparseeinsum.errors import ShapeError
from sparseeinsum.language.affine_indices import AffineIndex
from sparseeinsum.models.networks.alignment import combined
from sparseeinsum.models.networks.boolean_selections import taking
from sparseeinsum.models.networks.index_terms import ConstantTerm
from sparseeinsum.models.networks.merging import merged, selected
from sparseeinsum.models.networks.network_values import (
    FactoredAxis,
    NetworkValue,
    SizedLabel,
    axis_size,
    common_refinement,
    cuts,
    new_axis,
)
from sparseeinsum.models.networks.writer import Writer
from sparseeinsum.operators.dtypes import Array


def taken(writer: Writer, value: NetworkValue, position: int, indices: Sequence[int]) -> NetworkValue:
    """The value at some indices of an axis, in order; 0 or false where an index is -1.

    Args:
        value: The value.
        position: The position of the axis.
        indices: The indices.
    """
    value = merged(writer, value, position)
    axis, new = value.axes[position], new_axis(len(indices))
    axes = (*value.axes[:position], new, *value.axes[position + 1 :])
    steps = set(np.diff(indices).tolist())
    if len(steps) <= 1 and -1 not in indices:
        step = steps.pop() if steps else 0
        terms = ((new[0].label, step),) if step and new else ()
        at = AffineIndex(terms, indices[0] if axis else 0)
        return value.replaced({factor.label: at for factor in axis}, axes)
    if not axis or not new:
        anywhere = value.replaced({factor.label: AffineIndex((), 0) for factor in axis}, axes)
        return masked(writer, anywhere, position, np.asarray(indices) >= 0, ConstantTerm(0))
    return selected(writer, value, axes, taking(indices, axis_size(axis)), new[0], axis)


def masked(writer: Writer, value: NetworkValue, position: int, inside: Array, number: ConstantTerm) -> NetworkValue:
    """The value where an array of truth values for an axis is true, and a number elsewhere."""
    mask = writer.constant(inside, "inside")
    around = [mask.axes[0] if axis == position else () for axis in range(len(value.axes))]
    formula = "where({0}, {1}, {2})" if value.kind != "bool" else "{0} and {1}"
    values = [replace(mask, axes=tuple(around)), value, NetworkValue((), number, value.kind)]
    return combined(writer, formula, values, value.kind)


def padded(
    writer: Writer, value: NetworkValue, position: int, before: int, after: int, number: ConstantTerm
) -> NetworkValue:
    """The value with further indices before and after those of an axis, at which it is a number."""
    size = axis_size(value.axes[position])
    if before == after == 0:
        return value
    indices = np.concatenate([np.full(before, -1), np.arange(size), np.full(after, -1)])
    if number.value == 0:
        return taken(writer, value, position, indices.tolist())
    padded = taken(writer, value, position, indices.tolist())
    return masked(writer, padded, position, indices >= 0, number)


def reshaped(writer: Writer, value: NetworkValue, shape: Sequence[int]) -> NetworkValue:
    """The value with the same elements, in row-major order, in another shape.

    Raises:
        ShapeError: The shape has more or fewer elements.
    """
    if math.prod(shape) != math.prod(value.shape):
        raise ShapeError(f"{list(value.shape)} has no shape {list(shape)}, which has another number of elements")
    whole = replace(value, axes=_segments(value.factors, shape))
    sizes = _suffixes(shape)
    for position in range(len(whole.axes)):
        own = tuple(factor.size for factor in whole.axes[position])
        inner = math.prod(whole.shape[position + 1 :])
        wanted = [size // inner for size in sizes if inner <= size <= inner * math.prod(own)]
        parts = tuple(greater // less for greater, less in itertools.pairwise(wanted))
        both = common_refinement(own, parts)
        if both is None:
            whole, both = merged(writer, whole, position), parts
        whole = whole.with_axis(position, new_axis(*both))
    return replace(whole, axes=_grouped(whole.factors, shape))


def _suffixes(shape: Sequence[int]) -> list[int]:
    """The strides at which axes begin and end, each once, from all to 1."""
    return list(dict.fromkeys(cuts(shape)))


def _segments(factors: Sequence[SizedLabel], shape: Sequence[int]) -> tuple[FactoredAxis, ...]:
    """The factors in groups that begin and end where both the factors and the axes of a shape do."""
    common = set(cuts([factor.size for factor in factors])) & set(cuts(shape))
    segments: list[list[SizedLabel]] = []
    for position, factor in enumerate(factors):
        if axis_size(tuple(factors[position:])) in common:
            segments.append([])
        segments[-1].append(factor)
    return tuple(map(tuple, segments))


def _grouped(factors: Sequence[SizedLabel], shape: Sequence[int]) -> tuple[FactoredAxis, ...]:
    """The factors in groups with the numbers of indices that a shape has."""
    rest = list(factors)
    axes = []
    for size in shape:
        axis: FactoredAxis = ()
        while axis_size(axis) < size:
            axis = (*axis, rest.pop(0))
        axes.append(axis)
    return tuple(axes)

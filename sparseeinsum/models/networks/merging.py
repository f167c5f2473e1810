"""Models: gives an axis of several labels a single one."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sparseeinsum.models.networks.boolean_selections import BooleanSelection, merging
from sparseeinsum.models.networks.index_terms import FormulaTerm, Read
from sparseeinsum.models.networks.network_statements import StatementAggregate
from sparseeinsum.models.networks.network_values import FactoredAxis, NetworkValue, SizedLabel, axis_size, new_axis
from sparseeinsum.models.networks.writer import Writer, read
from sparseeinsum.operators.dtypes import Array


def merged(writer: Writer, value: NetworkValue, position: int) -> NetworkValue:
    """The value with a single label for one of its axes."""
    axis = value.axes[position]
    if len(axis) < 2:
        return value
    (whole,) = new_axis(axis_size(axis))
    axes = (*value.axes[:position], (whole,), *value.axes[position + 1 :])
    if isinstance(value.term, Read) and isinstance(writer.tensors.get(value.term.tensor), np.ndarray):
        array = writer.gathered(value.term, value.factors).reshape([axis_size(factors) for factors in axes if factors])
        return _regrouped_constant(writer, array, axes, value.term.tensor)
    return selected(writer, value, axes, merging(tuple(factor.size for factor in axis)), whole, axis)


def selected(
    writer: Writer,
    value: NetworkValue,
    axes: Sequence[FactoredAxis],
    selection: BooleanSelection,
    new: SizedLabel,
    old: Sequence[SizedLabel],
) -> NetworkValue:
    """The value at the indices that a selection tells for a new label, in place of old ones."""
    value = writer.stored(value)
    name = writer.named("selection", selection.key, selection)
    term = FormulaTerm(
        "{0} and {1}" if value.kind == "bool" else "where({0}, {1}, 0)", (read(name, [new, *old]), value.term)
    )
    function = "any" if value.kind == "bool" else "sum"
    return writer.computed(axes, term, value.kind, StatementAggregate(function, tuple(old)))


def _regrouped_constant(writer: Writer, array: Array, axes: Sequence[FactoredAxis], name: str) -> NetworkValue:
    """The value of an array in memory, which has the axes among `axes` of more than one index."""
    constant = writer.constant(array, name)
    own = iter(constant.axes)
    return replace(constant, axes=tuple(next(own) if axis else () for axis in axes))

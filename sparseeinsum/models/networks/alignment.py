"""Models: gives axes of several values the same labels, and makes formulas of values."""

from collections.abc import Sequence

from sparseeinsum.errors import ShapeError
from sparseeinsum.models.networks.index_terms import FormulaTerm, IndexTerm, Read, labels_of, leaves
from sparseeinsum.models.networks.merging import merged
from sparseeinsum.models.networks.network_values import (
    FactoredAxis,
    NetworkValue,
    axis_size,
    common_refinement,
    new_axis,
)
from sparseeinsum.models.networks.writer import Writer

_LARGEST_FORMULA = 6  # tensors that a statement reads, before a value gets one of its own


def combined(writer: Writer, formula: str, values: Sequence[NetworkValue], kind: str) -> NetworkValue:
    """The value of a formula of values, which are broadcast as in numpy; nothing is written yet.

    Args:
        formula: The formula, in which {0}, {1}, ... stand for the values.
        values: The values.
        kind: The kind of the result.
    """
    values, axes = broadcast(writer, values)
    labels = {factor.label for axis in axes for factor in axis}
    for position, value in enumerate(values):
        is_repeated = formula.count(f"{{{position}}}") > 1
        grows = set(labels_of(value.term)) < labels
        if not value.is_plain and (is_repeated or grows):
            values[position] = writer.stored(value)
    while sum(_size(value.term) for value in values) > _LARGEST_FORMULA and not all(v.is_plain for v in values):
        largest = max(range(len(values)), key=lambda position: _size(values[position].term))
        values[largest] = writer.stored(values[largest])
    return NetworkValue(axes, FormulaTerm(formula, tuple(value.term for value in values)), kind, writer.title)


def broadcast(writer: Writer, values: Sequence[NetworkValue]) -> tuple[list[NetworkValue], tuple[FactoredAxis, ...]]:
    """The values with the same labels for the axes of the same position from the end; and these axes.

    Raises:
        ShapeError: The shapes do not fit.
    """
    rank = max(len(value.axes) for value in values)
    groups = []
    for position in range(rank):
        offsets = [position - rank + len(value.axes) for value in values]
        groups.append([(number, offset) for number, offset in enumerate(offsets) if offset >= 0])
    return aligned(writer, values, groups)


def aligned(
    writer: Writer, values: Sequence[NetworkValue], groups: Sequence[Sequence[tuple[int, int]]]
) -> tuple[list[NetworkValue], tuple[FactoredAxis, ...]]:
    """The values with the same labels in each group of axes, and the axis of each group.

    Args:
        values: The values.
        groups: Pairs of a value and one of its axes; axes with one index stay as they are.

    Raises:
        ShapeError: Axes of a group differ in size.
    """
    values = [value.fresh() for value in values]
    axes = []
    for group in groups:
        present = [(number, axis) for number, axis in group if axis_size(values[number].axes[axis]) != 1]
        sizes = {axis_size(values[number].axes[axis]) for number, axis in present}
        if len(sizes) > 1:
            raise ShapeError(f"axes of {' and '.join(map(str, sorted(sizes)))} indices do not fit together")
        refined: tuple[int, ...] = ()
        for number, axis in present:
            own = tuple(factor.size for factor in values[number].axes[axis])
            both = common_refinement(refined, own) if refined else own
            if both is None:
                values[number] = merged(writer, values[number], axis)
            refined = both or refined
        shared = new_axis(*refined)
        for number, axis in present:
            values[number] = values[number].with_axis(axis, shared)
        axes.append(shared)
    return values, tuple(axes)


def _size(term: IndexTerm) -> int:
    return sum(isinstance(leaf, Read) for leaf in leaves(term))

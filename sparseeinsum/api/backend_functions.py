"""API: the functions of arrays that opt_einsum calls in a backend besides einsum."""

from collections.abc import Sequence
from typing import Any

from sparseeinsum.api.arrays import einsum
from sparseeinsum.api.einsum_operands import read_operand
from sparseeinsum.errors import ShapeError
from sparseeinsum.presentation.tracebacks import one_frame


@one_frame
def tensordot(left: object, right: object, axes: int | Sequence[int | Sequence[int]] = 2) -> Any:  # noqa: ANN401  # as einsum
    """The sum of products over axes of two arrays, as numpy.tensordot.

    Args:
        left: An array of any kind that `einsum` takes.
        right: Another one.
        axes: The axes of `left` and those of `right` that are summed over; or how many of the last of `left` and the
            first of `right` there are.

    Returns:
        An array with the other axes of `left`, then those of `right`.

    Raises:
        ShapeError: The axes do not exist, or their sizes differ.

    >>> tensordot([[1, 2], [3, 4]], [1, 1], axes=1)
    array([3, 7])
    """
    arrays = [read_operand(number, array) for number, array in enumerate((left, right), 1)]
    ranks = [array.ndim for array in arrays]
    summed = _axes(axes, ranks)
    labels = [list(range(ranks[0])), list(range(ranks[0], sum(ranks)))]
    for first, second in zip(*summed, strict=True):
        if arrays[0].shape[first] != arrays[1].shape[second]:
            raise ShapeError(
                f"axis {first} of the first array has the size {arrays[0].shape[first]}, and axis {second} of the "
                f"second one {arrays[1].shape[second]}; tensordot needs equal sizes"
            )
        labels[1][second] = labels[0][first]
    result = [
        label for part, own in zip(labels, summed, strict=True) for axis, label in enumerate(part) if axis not in own
    ]
    return einsum(left, labels[0], right, labels[1], result)


def _axes(axes: int | Sequence[int | Sequence[int]], ranks: Sequence[int]) -> list[list[int]]:
    """The axes of both arrays that are summed over, counted from 0."""
    if isinstance(axes, int):
        pair: Sequence[int | Sequence[int]] = (range(ranks[0] - axes, ranks[0]), range(axes))
    else:
        pair = axes
    listed = [[part] if isinstance(part, int) else list(part) for part in pair]
    if len(listed) != 2 or len(listed[0]) != len(listed[1]):
        raise ShapeError(f"axes is {axes!r}; it must be a number, or as many axes of the first array as of the second")
    for part, rank in zip(listed, ranks, strict=True):
        if not all(-rank <= axis < rank for axis in part) or len({axis % rank for axis in part}) < len(part):
            raise ShapeError(f"axes is {axes!r}; an array with {rank} axes lacks one of them, or has one of them twice")
    return [[axis % rank for axis in part] for part, rank in zip(listed, ranks, strict=True)]


@one_frame
def transpose(array: object, axes: Sequence[int] | None = None) -> Any:  # noqa: ANN401  # as einsum
    """An array with its axes in another order, as numpy.transpose; it does not share memory with the other one.

    Args:
        array: An array of any kind that `einsum` takes.
        axes: The axes in their new order; reversed by default.

    Raises:
        ShapeError: The axes are not all axes of the array.

    >>> transpose([[1, 2], [3, 4]])
    array([[1, 3],
           [2, 4]])
    """
    rank = read_operand(1, array).ndim
    order = list(range(rank))[::-1] if axes is None else [axis + rank if axis < 0 else axis for axis in axes]
    if sorted(order) != list(range(rank)):
        raise ShapeError(f"axes is {axes!r}; it must have each of the {rank} axes of the array once")
    return einsum(array, range(rank), order)

"""Results: the values of a tensor at some indices, looked up among its rows without a dense array of all."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.results.selections import Selection
from sparseeinsum.results.tensor_rows import TensorRows


def values_at(rows: TensorRows, selection: Selection) -> NDArray[Any]:
    """The values that a selection selects, as an array of its shape. It takes a pass over the rows.

    Args:
        rows: The rows of the tensor.
        selection: Made for the shape of the tensor.
    """
    ranges = selection.ranges
    if ranges is not None and not rows.schema.decomposition.has_tiles:
        return rows.block(ranges).reshape(selection.shape)
    tensor = rows.schema.tensor
    indices, shape = selection.indices(), selection.shape
    if not math.prod(shape):
        return np.full(shape, tensor.fill, tensor.dtype)
    coordinates, values = _rows_with(rows, indices).entries()
    points, entries, remaining = _numbered(indices, shape, coordinates, np.arange(len(values)))
    by_number = np.full(points.max() + 1, tensor.fill, tensor.dtype)
    by_number[entries] = values[remaining]
    result: NDArray[Any] = by_number[points].reshape(shape)
    return result


def _rows_with(rows: TensorRows, indices: Sequence[NDArray[np.int64]]) -> TensorRows:
    """The rows that have keys of the indices; other rows hold none of them."""
    decomposition = rows.schema.decomposition
    is_needed = np.ones(rows.rows.num_rows, bool)
    for axis, column in zip(decomposition.promoted, rows.keys(), strict=True):
        is_needed &= np.isin(column, np.unique(indices[axis]) // decomposition.tiles[axis])
    return TensorRows(rows.schema, rows.rows.filter(is_needed))


def _numbered(
    indices: Sequence[NDArray[np.int64]],
    shape: tuple[int, ...],
    coordinates: Sequence[NDArray[Any]],
    remaining: NDArray[np.intp],
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Number the selected points so that two have the same number if they are the same.

    Axis by axis, so that numbers stay below the number of points, however large the tensor is.

    Args:
        indices: For every axis its indices, which broadcast to `shape`.
        shape: The shape of what is selected.
        coordinates: For every axis the indices of the entries.
        remaining: The positions of the entries.

    Returns:
        The numbers of all points, the numbers of the entries that are among them, and the positions of these entries.
    """
    points, entries = np.zeros(math.prod(shape), np.intp), np.zeros(len(remaining), np.intp)
    for selected, stored in zip(indices, coordinates, strict=True):
        axis_points, axis_entries = _matched(np.broadcast_to(selected, shape).reshape(-1), stored[remaining])
        remaining, entries = remaining[axis_entries >= 0], entries[axis_entries >= 0]
        count = axis_points.max() + 1
        points, entries = _matched(points * count + axis_points, entries * count + axis_entries[axis_entries >= 0])
        remaining, entries = remaining[entries >= 0], entries[entries >= 0]
    return points, entries, remaining


def _matched(points: NDArray[Any], entries: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Number the distinct points in their order; an entry gets the number of the same point, or -1 if there is none."""
    distinct, numbers = np.unique(points, return_inverse=True)
    places = np.minimum(np.searchsorted(distinct, entries), len(distinct) - 1)
    return numbers, np.where(distinct[places] == entries, places, -1)

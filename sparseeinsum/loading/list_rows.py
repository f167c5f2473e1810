"""Loading: puts entries in memory into lists: one row for all entries that have the same keys."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparseeinsum.language.tensors import VALUE_COLUMN, ListLayout, Tensor, count_keys, extent_of
from sparseeinsum.statistics.columns import LARGEST_COORDINATE

_LARGEST_OFFSET = (1 << 31) - 1  # of lists with offsets of 32 bits


def list_rows(tensor: Tensor, layout: ListLayout, entries: pa.Table) -> pa.Table:
    """Return the rows of a table of lists, sorted by its keys.

    Args:
        tensor: The tensor.
        layout: How entries are put into lists.
        entries: The entries, none of them repeated: a column for each axis, then the values.
    """
    indices = [column.to_numpy() for column in entries.columns[:-1]]
    keys = [_keys(layout, axis, indices[axis]) for axis in layout.keys]
    positions = [_positions(layout, axis, indices[axis]) for axis in layout.compressed]
    values = entries.column(len(indices)).combine_chunks()
    order = _order(tensor, layout, keys, positions)
    if order is not None:
        keys, positions = [key[order] for key in keys], [position[order] for position in positions]
        values = values.take(pa.array(order))
    starts = _starts(keys, len(entries))
    names = [axis.name for axis in tensor.axes]
    columns = [pa.array(key[starts], entries.schema.types[axis]) for axis, key in zip(layout.keys, keys, strict=True)]
    offsets = np.append(starts, len(entries))
    lists = [pa.array(position.astype(np.int32, copy=False)) for position in positions]
    columns += [_lists(offsets, elements) for elements in (*lists, values)]
    key_names = [names[axis] for axis in layout.keys]
    return pa.table(columns, names=[*key_names, *layout.list_columns(names), VALUE_COLUMN])


def _keys(layout: ListLayout, axis: int, indices: NDArray[Any]) -> NDArray[Any]:
    return indices if layout.tiles[axis] == 1 else indices // layout.tiles[axis]


def _positions(layout: ListLayout, axis: int, indices: NDArray[Any]) -> NDArray[Any]:
    return indices % layout.tiles[axis] if layout.tiles[axis] else indices


def _order(
    tensor: Tensor, layout: ListLayout, keys: list[NDArray[Any]], positions: list[NDArray[Any]]
) -> NDArray[np.intp] | None:
    """Return the order of entries by keys, then positions; None if they are in this order."""
    shape = tensor.shape
    counts = [count_keys(layout.tiles[axis], shape[axis]) for axis in layout.keys]
    extents = [extent_of(layout.tiles[axis], shape[axis]) for axis in layout.compressed]
    size = 1
    for count in (*counts, *extents):
        size *= max(count, 1)
    if size >= LARGEST_COORDINATE:
        return np.lexsort((*reversed(positions), *reversed(keys)))
    numbers: NDArray[np.int64] = np.zeros(len(positions[0]), np.int64)
    for count, places in zip((*counts, *extents), (*keys, *positions), strict=True):
        numbers *= count
        numbers += places
    return None if np.all(numbers[1:] > numbers[:-1]) else np.argsort(numbers)


def _starts(keys: list[NDArray[Any]], entries: int) -> NDArray[np.intp]:
    """Return the number of the first entry of every row: one for each combination of keys."""
    is_first = np.zeros(entries, bool)
    is_first[:1] = True
    for key in keys:
        is_first[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(is_first)


def _lists(offsets: NDArray[np.intp], elements: pa.Array) -> pa.Array:
    if offsets[-1] <= _LARGEST_OFFSET:
        return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), elements)
    return pa.LargeListArray.from_arrays(pa.array(offsets.astype(np.int64)), elements)

"""Results: the part of a tensor within a range of indices of every axis, as a dense array, from rows of any layout."""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from types import EllipsisType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparseeinsum.language.tensors import DEMOTED, VALUE_COLUMN, count_keys, extent_of, is_ragged
from sparseeinsum.results.tensor_rows import TensorRows

# From so many bytes on, all threads copy the values of a result.
_LEAST_SHARED_BYTES = 1 << 24


@dataclass(frozen=True, slots=True)
class _AxisRange:
    """A range of indices of an axis, which is not empty.

    Attributes:
        tile: 1 for a key column, DEMOTED for positions in arrays, else the number of indices that share a key.
        bound: The bound of the axis.
        indices: The range.
    """

    tile: int
    bound: int
    indices: range

    @property
    def keys(self) -> range:
        """The keys whose rows have some of the indices."""
        if self.tile == 1:
            return self.indices
        return range(min(self.indices) // self.tile, max(self.indices) // self.tile + 1)

    @property
    def has_all_keys(self) -> bool:
        """Whether every row has a key of the range, and the key is its position."""
        return self.keys == range(count_keys(self.tile, self.bound))

    @property
    def taken(self) -> slice:
        """What is taken of arrays along a demoted axis."""
        return _slice(self.indices) if self.tile == DEMOTED else slice(None)

    @property
    def size(self) -> int:
        """The length of what is taken of arrays along the axis."""
        return len(self.indices) if self.tile == DEMOTED else self.tile

    @property
    def extents(self) -> list[int]:
        """The lengths that arrays have along the axis: one, or two if the last tile is shorter than the others."""
        extent = extent_of(self.tile, self.bound)
        return [extent, self.bound % self.tile] if is_ragged(self.tile, self.bound) else [extent]

    @property
    def within_tiles(self) -> slice:
        """The indices of the range among all indices of its tiles."""
        if self.tile <= 1:
            return slice(None)
        first = self.keys.start * self.tile
        return _slice(range(self.indices.start - first, self.indices.stop - first, self.indices.step))


def block(rows: TensorRows, ranges: Sequence[range], copy: bool = True) -> NDArray[Any]:
    """The values at the indices of a range for every axis, as an array with an axis for every range.

    Args:
        rows: The tensor.
        ranges: The ranges.
        copy: Whether to return a new array, even where the rows have the values in one piece.
    """
    tensor, decomposition = rows.schema.tensor, rows.schema.decomposition
    if not all(ranges):
        return np.full([len(indices) for indices in ranges], tensor.fill, tensor.dtype)
    axes = [_AxisRange(*axis) for axis in zip(decomposition.tiles, tensor.shape, ranges, strict=True)]
    outer, inner = decomposition.promoted, decomposition.array_axes
    counts = [len(axes[axis].keys) for axis in outer]
    sizes = [axes[axis].size for axis in inner]
    shape = (math.prod(counts), *sizes)
    is_complete = all(axes[axis].has_all_keys for axis in outer) and _has_every_tuple(rows, counts)
    is_one_piece = is_complete and rows.rows.column(VALUE_COLUMN).num_chunks == 1 and not rows.schema.is_ragged
    if is_one_piece and not copy:
        ((_, tuples),) = _arrays(rows, axes)
    else:
        tuples = np.empty(shape, tensor.dtype) if is_complete else np.full(shape, tensor.fill, tensor.dtype)
        _place(rows, axes, counts, tuples)
    filled = tuples.reshape([*counts, *sizes])
    order = np.argsort([*outer, *inner], kind="stable")  # of a tiled axis, keys come before positions in the tile
    lengths = [len(axis.keys) * axis.tile if axis.tile > 1 else len(axis.indices) for axis in axes]
    in_tiles: NDArray[Any] = filled.transpose(order).reshape(lengths)
    selected: tuple[slice | EllipsisType, ...] = (*(axis.within_tiles for axis in axes), ...)
    return in_tiles[selected]


def _place(rows: TensorRows, axes: Sequence[_AxisRange], counts: Sequence[int], tuples: NDArray[Any]) -> None:
    """Write the rows that have some of the indices to an array of shape (all keys in C order, *extents)."""

    def place(part: TensorRows) -> None:
        for places, arrays in _arrays(part, axes):
            tuples[(_positions(places, counts, len(arrays)), *map(slice, arrays.shape[1:]))] = arrays

    if tuples.nbytes >= _LEAST_SHARED_BYTES:
        with ThreadPoolExecutor(pa.cpu_count()) as pool:
            deque(pool.map(place, rows.parts()), maxlen=0)  # raises what a thread raises
    else:
        deque(map(place, rows.parts()), maxlen=0)


def _has_every_tuple(rows: TensorRows, counts: Sequence[int]) -> bool:
    """Whether rows have a tuple for all keys; False, too, where parts of them do not follow each other in order."""
    if rows.schema.is_scalar or rows.rows.num_rows != math.prod(counts):
        return False
    parts = [_positions(list(part.keys()), counts, part.rows.num_rows) for part in rows.parts()]
    slices = sorted((part.start, part.stop) for part in parts if isinstance(part, slice))
    starts, stops = [start for start, _ in slices], [stop for _, stop in slices]
    return len(slices) == len(parts) and [*starts, math.prod(counts)] == [0, *stops]


def _arrays(rows: TensorRows, axes: Sequence[_AxisRange]) -> Iterator[tuple[list[NDArray[Any]], NDArray[Any]]]:
    """Yield the rows that have some of the indices, in groups whose arrays have one shape.

    Yields:
        For every key column the positions of the keys in their range; and the arrays, of shape (rows, *extents).
    """
    decomposition = rows.schema.decomposition
    keys = list(rows.keys())
    chosen = _chosen_rows(keys, [axes[axis] for axis in decomposition.promoted])
    if chosen is not None:
        keys = [column[chosen] for column in keys]
    places = [
        column if axes[axis].has_all_keys else (column.astype(np.int64) - axes[axis].keys.start) // axes[axis].keys.step
        for axis, column in zip(decomposition.promoted, keys, strict=True)
    ]
    inner = [axes[axis] for axis in decomposition.array_axes]
    taken = (slice(None), *(axis.taken for axis in inner))
    if not rows.schema.is_ragged:
        arrays = rows.values()[taken]
        yield places, arrays if chosen is None else arrays[chosen]
        return
    columns = dict(zip(decomposition.promoted, keys, strict=True))
    for extents in product(*(axis.extents for axis in inner)):
        has_extents = np.ones(len(places[0]), bool)
        for axis, extent in zip(decomposition.array_axes, extents, strict=True):
            if len(axes[axis].extents) > 1:
                is_last = columns[axis] == count_keys(axes[axis].tile, axes[axis].bound) - 1
                has_extents &= is_last == (extent != axes[axis].tile)
        members = np.flatnonzero(has_extents)
        part = rows.rows.take(pa.array(members if chosen is None else chosen[members]))
        numbers = TensorRows(rows.schema, part).numbers().reshape((len(members), *extents))
        yield [positions[members] for positions in places], numbers[taken]


def _chosen_rows(keys: Sequence[NDArray[Any]], axes: Sequence[_AxisRange]) -> NDArray[np.intp] | None:
    """Return the positions of the rows whose keys are in the ranges; None for all rows."""
    chosen: NDArray[np.intp] | None = None
    for column, axis in zip(keys, axes, strict=True):
        if not axis.has_all_keys:
            part = column if chosen is None else column[chosen]
            inside = np.flatnonzero(_are_in(part, axis.keys))
            chosen = inside if chosen is None else chosen[inside]
    return chosen


def _are_in(column: NDArray[Any], indices: range) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_]
    if len(indices) == 1:
        inside = column == indices[0]
        return inside
    inside = (column >= min(indices)) & (column <= max(indices))
    if abs(indices.step) > 1:
        inside &= (column.astype(np.int64) - indices.start) % indices.step == 0
    return inside


def _positions(places: Sequence[NDArray[Any]], counts: Sequence[int], rows: int) -> NDArray[Any] | slice:
    """The positions of rows in C order of their places along axes: a slice, which numpy copies in one piece, if it can.

    Without axes, there is at most one row.
    """
    if not places:
        return slice(0, rows)
    positions = places[0] if len(places) == 1 else np.ravel_multi_index(tuple(places), counts)
    first, last = (int(positions[0]), int(positions[-1])) if rows else (0, -1)
    if last - first != rows - 1 or (np.diff(positions) != 1).any():
        return positions
    return slice(first, last + 1)


def _slice(indices: range) -> slice:
    """Return the slice that selects the indices of a range that is not empty."""
    return slice(indices.start, indices.stop if indices.stop >= 0 else None, indices.step)

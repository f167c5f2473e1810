"""Results: the indices and values in the rows of a tensor relation of any decomposition."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparseeinsum.algebra.operators import Schema
from sparseeinsum.language.tensors import DEMOTED, VALUE_COLUMN


@dataclass(frozen=True, slots=True)
class TensorRows:
    """Rows of a tensor relation.

    Attributes:
        schema: The tensor and its decomposition.
        rows: Key columns, then `val` with numbers or flat arrays in row-major order.
    """

    schema: Schema
    rows: pa.Table

    def dense(self) -> NDArray[Any]:
        """The tensor as a dense array."""
        tensor = self.schema.tensor
        if not self.schema.decomposition.has_tiles:
            return self.block([range(bound) for bound in tensor.shape])
        dense = np.full(tensor.shape, tensor.fill, dtype=tensor.dtype)
        numbers = self.numbers()
        dense[self.coordinates(np.arange(len(numbers)))] = numbers
        return dense

    def block(self, ranges: Sequence[range]) -> NDArray[Any]:
        """The part of the dense array with these indices of every axis; only for decompositions without tiles."""
        tensor, decomposition = self.schema.tensor, self.schema.decomposition
        keys: list[NDArray[Any]] = []
        rows: slice | NDArray[np.intp] = slice(None)
        for axis, column in zip(decomposition.promoted, self.keys(), strict=True):
            if ranges[axis] == range(tensor.shape[axis]):
                keys.append(column)
                continue
            places, is_inside = _places(column, ranges[axis])
            keys.append(places)
            inside = np.flatnonzero(is_inside)
            rows = inside if isinstance(rows, slice) else rows[is_inside[rows]]
        order = (*decomposition.promoted, *decomposition.array_axes)
        block = np.full([len(ranges[axis]) for axis in order], tensor.fill, dtype=tensor.dtype)
        values = self.values()[:, *(_slice(ranges[axis]) for axis in decomposition.array_axes)][rows]
        if keys:
            block[tuple(column[rows] for column in keys)] = values
        elif len(values):
            block[...] = values[0]
        return np.transpose(block, np.argsort(order)) if order else block

    def columns(self) -> tuple[Sequence[NDArray[Any]], NDArray[Any]]:
        """Coordinates and values: of all rows if each holds one value, else of the entries that are not the fill."""
        return (self.keys(), self.values()) if self.schema.is_scalar else self.entries()

    def keys(self) -> tuple[NDArray[Any], ...]:
        """The key columns, in the order of the schema."""
        return tuple(self.rows.column(key).to_numpy() for key in self.schema.keys)

    def values(self) -> NDArray[Any]:
        """The values of all rows as an array of shape (rows, *extents); only for arrays that are not ragged."""
        return self.numbers().reshape((self.rows.num_rows, *self.schema.inside))

    def numbers(self) -> NDArray[Any]:
        """The values of all rows, concatenated."""
        dtype = np.dtype(self.schema.tensor.dtype)
        chunks = self.rows.column(VALUE_COLUMN)
        # Combining copies even a single chunk.
        column = chunks.chunk(0) if chunks.num_chunks == 1 else chunks.combine_chunks()
        is_array = not self.schema.is_scalar or dtype.kind == "c"
        numbers = (column.flatten() if is_array else column).to_numpy(zero_copy_only=False)
        # Real and imaginary parts alternate.
        return np.ascontiguousarray(numbers, np.empty(0, dtype).real.dtype).view(dtype)

    def coordinates(self, numbers: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """The indices of the values at positions `numbers` of `self.numbers()`: one array per axis, in axis order."""
        tensor, decomposition = self.schema.tensor, self.schema.decomposition
        count = self.rows.num_rows
        keys = dict(zip(decomposition.promoted, self.keys(), strict=True))
        extents = {
            axis: np.full(count, bound)
            if tile == DEMOTED
            else np.minimum(tile, bound - keys[axis].astype(np.int64) * tile)
            for axis, (tile, bound) in enumerate(zip(decomposition.tiles, tensor.shape, strict=True))
        }
        sizes = math.prod(extents.values(), start=np.ones(count, np.int64))
        if self.schema.is_ragged:
            rows = np.searchsorted(np.cumsum(sizes), numbers, side="right")
            place = numbers - (np.cumsum(sizes) - sizes)[rows]  # in the array of its row
        else:
            rows, place = np.divmod(numbers, max(self.schema.array_size, 1))
        coordinates: dict[int, NDArray[Any]] = {}
        for axis in reversed(range(len(tensor.axes))):
            if decomposition.tiles[axis] == 1:
                coordinates[axis] = keys[axis][rows]
                continue
            along = extents[axis][rows]
            first = keys[axis].astype(np.int64)[rows] * decomposition.tiles[axis] if axis in keys else 0
            coordinates[axis] = first + place % along
            place = place // along
        return tuple(coordinates[axis] for axis in range(len(tensor.axes)))

    def entries(self, start: int = 0, stop: int | None = None) -> tuple[tuple[NDArray[Any], ...], NDArray[Any]]:
        """Coordinates and values of entries that are not the fill, among the values from `start` to `stop`."""
        numbers = self.numbers()[start:stop]
        (present,) = np.nonzero(numbers != self.schema.tensor.fill)
        return self.coordinates(present + start), numbers[present]


def _places(column: NDArray[Any], chosen: range) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the positions of indices in a range, and which of the indices it has."""
    steps, rest = np.divmod(column.astype(np.int64) - chosen.start, chosen.step)
    return steps, (rest == 0) & (steps >= 0) & (steps < len(chosen))


def _slice(chosen: range) -> slice:
    """Return the slice that selects the indices of a range."""
    stop = chosen.stop if chosen.stop >= 0 else None  # a range that counts down to 0 stops at -1
    return slice(chosen.start, stop, chosen.step) if chosen else slice(0, 0)

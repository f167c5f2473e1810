"""Results: the indices and values in the rows of a tensor relation of any decomposition."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.engines.tuple_numbers import keys_of
from sparseeinsum.language.tensors import DEMOTED, VALUE_COLUMN
from sparseeinsum.operators.dtypes import is_complex
from sparseeinsum.statistics.columns import index_dtype


@dataclass(frozen=True, slots=True)
class TensorRows:
    """Rows of a tensor relation.

    Attributes:
        schema: The tensor and its decomposition.
        rows: Key columns, then `val` with numbers or flat arrays in row-major order.
    """

    schema: Schema
    rows: pa.Table

    def parts(self) -> Iterator["TensorRows"]:
        """The same rows, in parts whose arrays are read without a copy; numbers are copied, all at once."""
        if self.schema.is_scalar:
            yield self
            return
        for batch in self.rows.to_batches():
            yield TensorRows(self.schema, pa.Table.from_batches([batch]))

    def columns(self) -> tuple[Sequence[NDArray[Any]], NDArray[Any]]:
        """Coordinates and values: of all rows if each holds one value, else of the entries that are not the fill."""
        return (self.keys(), self.values()) if self.schema.is_scalar else self.entries()

    def keys(self) -> tuple[NDArray[Any], ...]:
        """The key columns, in the order of the schema."""
        return tuple(self.rows.column(key).to_numpy() for key in self.schema.keys)

    def values(self) -> NDArray[Any]:
        """The values of all rows as an array of shape (rows, *extents); only for arrays that are not ragged."""
        return self.numbers().reshape((self.rows.num_rows, *self.schema.inside))

    def numbers(self, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """The values of all rows, concatenated; or those from `start` to `stop`."""
        dtype, parts, flat = np.dtype(self.schema.tensor.dtype), self._parts_of_number, self._flat()
        end = len(flat) if stop is None else min(stop * parts, len(flat))
        numbers = flat.slice(start * parts, max(end - start * parts, 0)).to_numpy(zero_copy_only=False)
        return np.ascontiguousarray(numbers, np.empty(0, dtype).real.dtype).view(dtype)

    def count_numbers(self) -> int:
        """How many values all rows have together."""
        chunks = self.rows.column(VALUE_COLUMN).chunks
        elements = sum(len(chunk) if self.schema.is_scalar else len(chunk.flatten()) for chunk in chunks)
        return elements // self._parts_of_number

    @property
    def _parts_of_number(self) -> int:
        """How many elements of an array are one number: real and imaginary parts alternate."""
        return 2 if is_complex(self.schema.tensor.dtype) else 1

    def _flat(self) -> pa.Array:
        """The elements of the arrays of all rows, or the numbers of all rows."""
        chunks = self.rows.column(VALUE_COLUMN)
        # Combining copies even a single chunk.
        column = chunks.chunk(0) if chunks.num_chunks == 1 else chunks.combine_chunks()
        return column if self.schema.is_scalar else column.flatten()

    def coordinates(self, numbers: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """The indices of the values at positions `numbers` of `self.numbers()`: one array per axis, in axis order."""
        tensor, decomposition = self.schema.tensor, self.schema.decomposition
        if decomposition.has_tiles:
            return self._coordinates_in_tiles(numbers)
        rows, *places = keys_of(numbers, (self.rows.num_rows, *self.schema.inside))
        keys = dict(zip(decomposition.promoted, self.keys(), strict=True))
        inside = dict(zip(decomposition.array_axes, places, strict=True))
        # numpy takes elements faster than it indexes.
        return tuple([inside[axis] if axis in inside else keys[axis].take(rows) for axis in range(len(tensor.axes))])

    def _coordinates_in_tiles(self, numbers: NDArray[Any]) -> tuple[NDArray[Any], ...]:
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
            rows = numbers // max(self.schema.array_size, 1)
            place = numbers - rows * self.schema.array_size
        inside = [axis for axis, tile in enumerate(decomposition.tiles) if tile != 1]
        coordinates = {axis: keys[axis][rows] for axis in keys if axis not in inside}
        for axis in reversed(inside):
            tile, index = decomposition.tiles[axis], place
            if axis != inside[0]:  # numpy divides by one number faster than by many
                along = tensor.shape[axis] if tile == DEMOTED else extents[axis][rows]
                place = index // along
                index = index - place * along
            coordinates[axis] = index + (keys[axis].astype(np.int64)[rows] * tile if axis in keys else 0)
        return tuple(coordinates[axis] for axis in range(len(tensor.axes)))

    def entries(self, start: int = 0, stop: int | None = None) -> tuple[tuple[NDArray[Any], ...], NDArray[Any]]:
        """Coordinates and values of entries that are not the fill, among the values from `start` to `stop`.

        Values may be in the memory of the engine, and read-only then.
        """
        numbers = self.numbers(start, stop)
        is_present = numbers != self.schema.tensor.fill
        if len(numbers) and is_present.all():
            coordinates = self._all_coordinates(start, len(numbers))
            if coordinates is not None:
                return coordinates, numbers
        (present,) = np.nonzero(is_present)
        return self.coordinates(present + start), numbers.take(present)

    def _all_coordinates(self, start: int, size: int) -> tuple[NDArray[Any], ...] | None:
        """The indices of `size` values from the position `start` on: repeated, which is faster than to compute each.

        None unless they are the arrays of whole tuples, or whole slices along the first axis of a single array.
        """
        decomposition, inside, array_size = self.schema.decomposition, self.schema.inside, self.schema.array_size
        if decomposition.has_tiles:
            return None
        slice_size = math.prod(inside[1:])
        if start % array_size == size % array_size == 0:
            rows, first, extents = slice(start // array_size, (start + size) // array_size), 0, inside
        elif self.rows.num_rows == 1 and start % slice_size == size % slice_size == 0:
            rows, first, extents = slice(1), start // slice_size, (size // slice_size, *inside[1:])
        else:
            return None
        repeated = math.prod(extents)
        axes = dict(zip(decomposition.promoted, [np.repeat(key[rows], repeated) for key in self.keys()], strict=True))
        for position, axis in enumerate(decomposition.array_axes):
            start_of_axis = first if position == 0 else 0
            places = np.arange(start_of_axis, start_of_axis + extents[position], dtype=index_dtype(inside[position]))
            along = places.reshape([-1 if other == position else 1 for other in range(len(extents))])
            axes[axis] = np.broadcast_to(along, (size // repeated, *extents)).reshape(-1)
        return tuple(axes[axis] for axis in range(len(axes)))

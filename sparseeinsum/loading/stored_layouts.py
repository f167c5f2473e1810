"""Loading: chooses the layout of a stored tensor if the user does not: entries, or arrays along some axes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.errors import ShapeError
from sparseeinsum.language.layout_notation import LayoutNotation
from sparseeinsum.language.tensors import (
    DEMOTED,
    MOST_ARRAY_AXES,
    Decomposition,
    ListLayout,
    Tensor,
    array_bytes,
    fully_promoted,
)
from sparseeinsum.operators.dtypes import ITEM_BYTES

PromotedAxes = Sequence[str] | Mapping[str, int] | LayoutNotation | None

# A dense array is stored as entries if less than this share of its values differs from the fill.
_SPARSE_BELOW = 0.25
# A sparse matrix is stored in arrays if entries would take more than this, and arrays less: a smaller table stays one
# of entries, which is easier to read.
_MOST_BYTES_OF_ENTRIES = 16 << 20
# If an array would be larger than this, another axis is promoted.
_LARGEST_ARRAY_BYTES = 1 << 20
# A database that reads many rows at once may use this much memory for their arrays. Longer arrays are cut into tiles:
# otherwise scans exceed the processor's caches, which doubles their time, and need large memory limits.
_LARGEST_VECTOR_BYTES = 32 << 20
# The number of elements of an array that is cut, and of the tiles into which plans may cut it again.
_TILE = 512
_CUT_INTO = 64


@dataclass(frozen=True, slots=True)
class RowSizes:
    """The sizes of rows in a database.

    Attributes:
        entry_bytes: The bytes of an entry in a table; 0 if entries must not be stored in arrays.
        vector_rows: The number of rows that the database reads at once.
    """

    entry_bytes: int
    vector_rows: int


def layout_of_array(tensor: Tensor, present: NDArray[np.generic], sizes: RowSizes) -> Decomposition:
    """Return the layout of a dense array: entries if most values are the fill, else arrays.

    Args:
        tensor: The tensor.
        present: An array of its shape that is not 0 where the value is not the fill.
        sizes: The sizes of rows in the database.
    """
    if present.size and np.count_nonzero(present) < _SPARSE_BELOW * present.size:
        return fully_promoted(len(tensor.axes))
    return _in_arrays(tensor, sizes)


def layout_of_sparse(tensor: Tensor, count: int, sizes: RowSizes) -> Decomposition:
    """Return the layout of a sparse array with `count` entries: entries, or arrays if these take less space."""
    arrays = _in_arrays(tensor, sizes)
    array_bytes = arrays.max_tuples(tensor.shape) * sizes.entry_bytes + tensor.size * ITEM_BYTES[tensor.dtype]
    is_smaller = max(array_bytes, _MOST_BYTES_OF_ENTRIES) < count * sizes.entry_bytes
    return arrays if is_smaller else fully_promoted(len(tensor.axes))


def layout_of_entries(tensor: Tensor, promoted: PromotedAxes) -> Decomposition:
    """Return the layout of rows: entries, unless the user chooses another one.

    Raises:
        ShapeError: There is no such axis, or a tile is no whole number.
    """
    return fully_promoted(len(tensor.axes)) if promoted is None else named_layout(tensor, promoted)


def list_layout(tensor: Tensor, promoted: PromotedAxes) -> ListLayout | None:
    """Return the layout of the lists that the user chooses; None if entries are not put into lists.

    Raises:
        ShapeError: The labels are not the names of the axes, or a list would have too large positions.
    """
    if not isinstance(promoted, LayoutNotation):
        return None
    return promoted.lists([axis.name for axis in tensor.axes], tensor.shape)


def named_layout(tensor: Tensor, promoted: Sequence[str] | Mapping[str, int] | LayoutNotation) -> Decomposition:
    """Return the layout in which the axes in `promoted` are key columns, if it is a mapping with these tiles.

    What is put into lists are entries.

    Raises:
        ShapeError: There is no such axis, or a tile is no whole number.
    """
    names = [axis.name for axis in tensor.axes]
    if isinstance(promoted, LayoutNotation):
        if promoted.compressed:
            return fully_promoted(len(names))
        if sorted(promoted.labels) != sorted(names):
            raise ShapeError(
                f"the layout {promoted.text} has labels {', '.join(promoted.labels)}; the axes are {', '.join(names)}"
            )
        promoted = promoted.promoted
    tiles = promoted if isinstance(promoted, Mapping) else dict.fromkeys(promoted, 1)
    for axis, tile in tiles.items():
        if not isinstance(axis, str) or axis.lower() not in names:
            raise ShapeError(f"tensor {tensor.name} has no axis {axis} to promote; it has {', '.join(names)}")
        if not isinstance(tile, int) or tile < 1:
            raise ShapeError(
                f"tensor {tensor.name} is to have tiles of {tile!r} on axis {axis}; a tile is a whole number of "
                "indices, 1 or more"
            )
    chosen = {axis.lower(): tile for axis, tile in tiles.items()}
    decomposition = Decomposition(tuple(chosen.get(axis, DEMOTED) for axis in names))
    if len(decomposition.array_axes) > MOST_ARRAY_AXES:
        raise ShapeError(
            f"tensor {tensor.name} would have {len(decomposition.array_axes)} axes inside arrays, which take "
            f"{MOST_ARRAY_AXES}; promote more of them, without tiles"
        )
    return decomposition


def _in_arrays(tensor: Tensor, sizes: RowSizes) -> Decomposition:
    """Promote the first axis, and more of them until arrays are small enough; cut long arrays into tiles.

    Axes with a dictionary are always promoted, because their bound may grow.
    """
    rank = len(tensor.axes)
    keys = max(1 if rank >= 2 else 0, rank - MOST_ARRAY_AXES)
    while keys < rank and math.prod(tensor.shape[keys:]) * ITEM_BYTES[tensor.dtype] > _LARGEST_ARRAY_BYTES:
        keys += 1
    has_keys = [axis_number < keys or axis.dictionary is not None for axis_number, axis in enumerate(tensor.axes)]
    untiled = Decomposition(tuple(1 if has_key else DEMOTED for has_key in has_keys))
    rows = min(untiled.max_tuples(tensor.shape), sizes.vector_rows)
    is_long = rows * array_bytes(tensor, untiled) > _LARGEST_VECTOR_BYTES
    return _cut(untiled, tensor.shape) if is_long else untiled


def _cut(untiled: Decomposition, shape: tuple[int, ...]) -> Decomposition:
    """Cut arrays to at most `_TILE` elements: promote their first axes, and tile the last one that must shrink.

    Tiles are even unless that makes them less than half as long.
    """
    tiles = list(untiled.tiles)
    for axis in untiled.array_axes:
        inner_size = math.prod(shape[other] for other in untiled.array_axes if other > axis)
        tiles[axis] = _tile_of(shape[axis], max(_TILE // inner_size, 1))
        if tiles[axis] > 1:
            break
    return Decomposition(tuple(tiles))


def _tile_of(bound: int, longest: int) -> int:
    """The tile of an axis: one of half the greatest length or more that divides it; else a power of 2.

    Plans that are asked for other tiles cut this one into fewer parts if it has a larger factor in common with them.
    """
    even = [tile for tile in range(longest, max(longest // 2, 1) - 1, -1) if bound % tile == 0]
    return max(even, key=lambda tile: math.gcd(tile, _CUT_INTO), default=1 << (longest.bit_length() - 1))

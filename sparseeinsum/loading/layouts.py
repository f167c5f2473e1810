"""Loading: how a tensor whose layout the user leaves open is stored: as entries, or in arrays, and in which."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.errors import ShapeError
from sparseeinsum.language.tensors import DEMOTED, Decomposition, Tensor, array_bytes, fully_promoted
from sparseeinsum.operators.dtypes import ITEM_BYTES

Promoted = Sequence[str] | Mapping[str, int] | None

# A dense array is stored as entries where fewer than this share of its values differ from the fill.
_SPARSE_BELOW = 0.25
# Entries of a sparse matrix are stored in arrays where those take less, and entries more than this: a table of fewer is
# best as everybody can read it.
_MOST_BYTES_OF_ENTRIES = 16 << 20
# One array in a tuple may have so many bytes before another axis becomes a key.
_LARGEST_ARRAY_BYTES = 1 << 20
# A database that reads many rows at once may take so many bytes for their arrays. Longer arrays are cut: they make
# scans leave the processor's caches, which doubles their time, and small memory limits impossible.
_LARGEST_VECTOR_BYTES = 32 << 20
# Elements of an array that is cut.
_TILE = 512


@dataclass(frozen=True, slots=True)
class RowSizes:
    """What rows take in a database.

    Attributes:
        entry_bytes: Of an entry in a table; 0 where entries are to stay entries.
        vector_rows: Rows that the database reads at once.
    """

    entry_bytes: int
    vector_rows: int


def layout_of_array(tensor: Tensor, present: NDArray[np.generic], sizes: RowSizes) -> Decomposition:
    """Entries for sparse data, else arrays.

    Args:
        tensor: That is loaded.
        present: Its shape; not 0 where an element is not the fill.
        sizes: What rows take.
    """
    if present.size and np.count_nonzero(present) < _SPARSE_BELOW * present.size:
        return fully_promoted(len(tensor.axes))
    return _in_arrays(tensor, sizes)


def layout_of_sparse(tensor: Tensor, count: int, sizes: RowSizes) -> Decomposition:
    """Entries, or arrays where so many entries take much, and arrays of all elements less."""
    arrays = _in_arrays(tensor, sizes)
    array_bytes = arrays.max_tuples(tensor.shape) * sizes.entry_bytes + tensor.size * ITEM_BYTES[tensor.dtype]
    is_smaller = max(array_bytes, _MOST_BYTES_OF_ENTRIES) < count * sizes.entry_bytes
    return arrays if is_smaller else fully_promoted(len(tensor.axes))


def layout_of_entries(tensor: Tensor, promoted: Promoted) -> Decomposition:
    """As they are, unless the user says otherwise.

    Raises:
        ShapeError: There is no such axis, or a tile is no whole number.
    """
    return fully_promoted(len(tensor.axes)) if promoted is None else named_layout(tensor, promoted)


def named_layout(tensor: Tensor, promoted: Sequence[str] | Mapping[str, int]) -> Decomposition:
    """The layout in which axes named are key columns, in tiles where there are any.

    Raises:
        ShapeError: There is no such axis, or a tile is no whole number.
    """
    known = [axis.name for axis in tensor.axes]
    tiles = promoted if isinstance(promoted, Mapping) else dict.fromkeys(promoted, 1)
    for axis, tile in tiles.items():
        if axis.lower() not in known:
            raise ShapeError(f"tensor {tensor.name} has no axis {axis} to promote; it has {', '.join(known)}")
        if not isinstance(tile, int) or tile < 1:
            raise ShapeError(
                f"tensor {tensor.name} is to have tiles of {tile!r} on axis {axis}; a tile is a whole number of "
                "indices, 1 or more"
            )
    chosen = {axis.lower(): tile for axis, tile in tiles.items()}
    return Decomposition(tuple(chosen.get(axis, DEMOTED) for axis in known))


def _in_arrays(tensor: Tensor, sizes: RowSizes) -> Decomposition:
    """The first axis as key, and more of them where the arrays would be large; long arrays are cut.

    Axes with a dictionary are keys, whose number may grow.
    """
    rank = len(tensor.axes)
    keys = 1 if rank >= 2 else 0
    while keys < rank and math.prod(tensor.shape[keys:]) * ITEM_BYTES[tensor.dtype] > _LARGEST_ARRAY_BYTES:
        keys += 1
    has_keys = [place < keys or axis.dictionary is not None for place, axis in enumerate(tensor.axes)]
    whole = Decomposition(tuple(1 if has_key else DEMOTED for has_key in has_keys))
    rows = min(whole.max_tuples(tensor.shape), sizes.vector_rows)
    is_long = rows * array_bytes(tensor, whole) > _LARGEST_VECTOR_BYTES
    return _cut(whole, tensor.shape) if is_long else whole


def _cut(whole: Decomposition, shape: tuple[int, ...]) -> Decomposition:
    """The same with arrays of no more elements than a tile: their first axes become keys, one of them in tiles."""
    tiles = list(whole.tiles)
    for place in whole.array_axes:
        rest = math.prod(shape[other] for other in whole.array_axes if other > place)
        tiles[place] = 1 << (max(_TILE // rest, 1).bit_length() - 1)
        if tiles[place] > 1:
            break
    return Decomposition(tuple(tiles))

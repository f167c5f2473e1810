"""Algebra, relational: tensors as relations of keys and arrays: types, and what is absent."""

from sparseeinsum.algebra.relational.absence import Absent, Extent
from sparseeinsum.algebra.relational.keys import Key
from sparseeinsum.algebra.relational.types import RelationType
from sparseeinsum.language.tensors import DEMOTED, Decomposition, Tensor, count_keys, extent_of, is_ragged


def frontier_of(tensor: Tensor, decomposition: Decomposition) -> Key:
    """How many values each key of a tensor can have."""
    tiles = decomposition.tiles
    return tuple(count_keys(tiles[position], tensor.axes[position].bound) for position in decomposition.promoted)


def type_of(tensor: Tensor, decomposition: Decomposition, is_complete: bool = False) -> RelationType:
    """The type of a tensor's relation.

    Args:
        tensor: What it is.
        decomposition: Which axes are keys, and which lie inside arrays.
        is_complete: Whether every tuple is known to be there.
    """
    tiles, shape = decomposition.tiles, tensor.shape
    bound = tuple(extent_of(tiles[position], shape[position]) for position in decomposition.array_axes)
    ragged = any(map(is_ragged, tiles, shape))
    return RelationType(frontier_of(tensor, decomposition), bound, is_complete, ragged)


def absent_of(tensor: Tensor, decomposition: Decomposition) -> Absent:
    """What tuples of a tensor would hold that are absent."""
    extents = tuple(extent_at(tensor, decomposition, position) for position in decomposition.array_axes)
    return Absent(tensor.fill, extents, tensor.dtype)


def extent_at(tensor: Tensor, decomposition: Decomposition, position: int) -> Extent:
    """How many indices of an axis a tensor's arrays hold."""
    tile, bound = decomposition.tiles[position], tensor.axes[position].bound
    if tile == DEMOTED:
        return Extent(bound, bound, None)
    return Extent(tile, bound, decomposition.promoted.index(position))

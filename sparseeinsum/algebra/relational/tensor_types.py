"""Algebra, relational: the types of the relations of tensors, and the arrays of their absent tuples."""

from sparseeinsum.algebra.relational.absence import AbsentArray, TileExtent
from sparseeinsum.algebra.relational.keys import Key
from sparseeinsum.algebra.relational.types import RelationType
from sparseeinsum.language.tensors import DEMOTED, Decomposition, Tensor, count_keys, extent_of, is_ragged


def frontier_of(tensor: Tensor, decomposition: Decomposition) -> Key:
    """For every key column of a tensor, how many values it can have."""
    tiles = decomposition.tiles
    return tuple(count_keys(tiles[position], tensor.axes[position].bound) for position in decomposition.promoted)


def type_of(tensor: Tensor, decomposition: Decomposition, is_complete: bool = False) -> RelationType:
    """The type of a tensor's relation.

    Args:
        tensor: The tensor.
        decomposition: Which axes are keys, and which are inside arrays.
        is_complete: Whether the relation is known to hold every tuple.
    """
    tiles, shape = decomposition.tiles, tensor.shape
    bound = tuple(extent_of(tiles[position], shape[position]) for position in decomposition.array_axes)
    ragged = any(map(is_ragged, tiles, shape))
    return RelationType(frontier_of(tensor, decomposition), bound, is_complete, ragged)


def absent_of(tensor: Tensor, decomposition: Decomposition) -> AbsentArray:
    """The array that an absent tuple of a tensor would hold."""
    extents = tuple(extent_at(tensor, decomposition, position) for position in decomposition.array_axes)
    return AbsentArray(tensor.fill, extents, tensor.dtype)


def extent_at(tensor: Tensor, decomposition: Decomposition, position: int) -> TileExtent:
    """How many indices of the axis at a position the arrays of a tensor hold."""
    tile, bound = decomposition.tiles[position], tensor.axes[position].bound
    if tile == DEMOTED:
        return TileExtent(bound, bound, None)
    return TileExtent(extent_of(tile, bound) or tile, bound, decomposition.promoted.index(position))

"""Algebra, relational: tensors as relations of keys and arrays, and back."""

from collections.abc import Mapping

import numpy as np

from sparseeinsum.algebra.relational.absence import Absent, Extent
from sparseeinsum.algebra.relational.evaluate import Relation
from sparseeinsum.algebra.relational.keys import Key, every_key
from sparseeinsum.algebra.relational.types import RelationType
from sparseeinsum.language.dtypes import Array
from sparseeinsum.language.tensors import DEMOTED, Decomposition, Tensor, extent_of, is_ragged, keys_of


def frontier_of(tensor: Tensor, decomposition: Decomposition) -> Key:
    """How many values each key of a tensor can have."""
    tiles = decomposition.tiles
    return tuple(keys_of(tiles[position], tensor.axes[position].bound) for position in decomposition.promoted)


def type_of(tensor: Tensor, decomposition: Decomposition, is_complete: bool = False) -> RelationType:
    """The type of a tensor's relation.

    Args:
        tensor: What it is.
        decomposition: Which axes are keys, and which lie inside arrays.
        is_complete: Whether every tuple is known to be there.
    """
    tiles, shape = decomposition.tiles, tensor.shape
    bound = tuple(extent_of(tiles[position], shape[position]) for position in decomposition.inside)
    ragged = any(map(is_ragged, tiles, shape))
    return RelationType(frontier_of(tensor, decomposition), bound, is_complete, ragged)


def absent_of(tensor: Tensor, decomposition: Decomposition) -> Absent:
    """What tuples of a tensor would hold that are absent."""
    extents = tuple(extent_at(tensor, decomposition, position) for position in decomposition.inside)
    return Absent(tensor.fill, extents, tensor.dtype)


def extent_at(tensor: Tensor, decomposition: Decomposition, position: int) -> Extent:
    """How many indices of an axis a tensor's arrays hold."""
    tile, bound = decomposition.tiles[position], tensor.axes[position].bound
    if tile == DEMOTED:
        return Extent(bound, bound, None)
    return Extent(tile, bound, decomposition.promoted.index(position))


def relation_of(array: Array, tensor: Tensor, decomposition: Decomposition, keeps_fill: bool = True) -> Relation:
    """A tensor's relation.

    Args:
        array: All of it, of the tensor's shape.
        tensor: What it is.
        decomposition: Which axes are keys, and which lie inside arrays.
        keeps_fill: Whether tuples that hold only the fill are there.
    """
    found: Relation = {}
    for key in every_key(frontier_of(tensor, decomposition)):
        part = array[_place(key, decomposition)].reshape(absent_of(tensor, decomposition).array(key).shape)
        if keeps_fill or (part != tensor.fill).any():
            found[key] = part
    return found


def array_of(relation: Mapping[Key, Array], tensor: Tensor, decomposition: Decomposition) -> Array:
    """All of a tensor, from its relation."""
    found: Array = np.full(tensor.shape, tensor.fill, tensor.dtype)
    for key, array in relation.items():
        place = _place(key, decomposition)
        found[place] = array.reshape(found[place].shape)
    return found


def _place(key: Key, decomposition: Decomposition) -> tuple[slice, ...]:
    """Where the array of a key lies."""
    parts = dict(zip(decomposition.promoted, key, strict=True))
    return tuple(
        slice(None) if tile == DEMOTED else slice(parts[position] * tile, (parts[position] + 1) * tile)
        for position, tile in enumerate(decomposition.tiles)
    )

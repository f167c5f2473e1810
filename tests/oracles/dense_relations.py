"""Tensors as relations of keys and arrays, and back."""

from collections.abc import Mapping

import numpy as np

from sparseeinsum.algebra.relational.evaluate import RelationTuples
from sparseeinsum.algebra.relational.keys import Key, all_keys
from sparseeinsum.algebra.relational.tensor_types import absent_of, frontier_of
from sparseeinsum.language.tensors import DEMOTED, Decomposition, Tensor
from sparseeinsum.operators.dtypes import Array


def relation_of(array: Array, tensor: Tensor, decomposition: Decomposition, keeps_fill: bool = True) -> RelationTuples:
    """A tensor's relation.

    Args:
        array: All of it, of the tensor's shape.
        tensor: What it is.
        decomposition: Which axes are keys, and which lie inside arrays.
        keeps_fill: Whether tuples that hold only the fill are there.
    """
    relation: RelationTuples = {}
    for key in all_keys(frontier_of(tensor, decomposition)):
        part = array[_place(key, decomposition)].reshape(absent_of(tensor, decomposition).array(key).shape)
        if keeps_fill or (part != tensor.fill).any():
            relation[key] = part
    return relation


def array_of(relation: Mapping[Key, Array], tensor: Tensor, decomposition: Decomposition) -> Array:
    """The dense tensor of a relation."""
    filled: Array = np.full(tensor.shape, tensor.fill, tensor.dtype)
    for key, array in relation.items():
        place = _place(key, decomposition)
        filled[place] = array.reshape(filled[place].shape)
    return filled


def _place(key: Key, decomposition: Decomposition) -> tuple[slice, ...]:
    """Position of a key's array in the dense tensor."""
    parts = dict(zip(decomposition.promoted, key, strict=True))
    return tuple(
        slice(None) if tile == DEMOTED else slice(parts[position] * tile, (parts[position] + 1) * tile)
        for position, tile in enumerate(decomposition.tiles)
    )

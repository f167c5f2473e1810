"""Algebra, relational: the arrays that absent tuples would hold, and how large arrays are at a key."""

from dataclasses import dataclass

import numpy as np

from sparseeinsum.algebra.relational.keys import Key
from sparseeinsum.operators.dtypes import Array, Number


@dataclass(frozen=True, slots=True)
class TileExtent:
    """How many indices of an axis an array holds.

    Attributes:
        tile: The most indices that an array holds.
        bound: The bound of the whole axis.
        key: The position of the part of the key that numbers the tiles; None if there is one tile only.
    """

    tile: int
    bound: int
    key: int | None

    @property
    def varies(self) -> bool:
        """Whether the last array holds fewer indices than the others."""
        return self.key is not None and self.bound % self.tile != 0

    def at(self, key: Key) -> int:
        """How many indices the array of a key holds."""
        return self.tile if self.key is None else max(0, min(self.tile, self.bound - key[self.key] * self.tile))


@dataclass(frozen=True, slots=True)
class AbsentArray:
    """The array that an absent tuple would hold.

    Attributes:
        fill: The value at every index.
        extents: The extent of every axis of the array.
        dtype: The dtype of the array.
    """

    fill: Number
    extents: tuple[TileExtent, ...]
    dtype: str = "float64"

    def array(self, key: Key) -> Array:
        """The array of the absent tuple with this key."""
        return np.full(tuple(extent.at(key) for extent in self.extents), self.fill, self.dtype)

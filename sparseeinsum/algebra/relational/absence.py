"""Algebra, relational: what tuples would hold that are absent, which holes of sparse tensors are."""

from dataclasses import dataclass

import numpy as np

from sparseeinsum.algebra.relational.keys import Key
from sparseeinsum.operators.dtypes import Array, Number


@dataclass(frozen=True, slots=True)
class Extent:
    """How many indices of an axis an array holds.

    Attributes:
        tile: At most.
        bound: Of the whole axis.
        key: Position of the part of the key that says which tile it is; None where there is one only.
    """

    tile: int
    bound: int
    key: int | None

    @property
    def varies(self) -> bool:
        """Whether the last array has fewer."""
        return self.key is not None and self.bound % self.tile != 0

    def at(self, key: Key) -> int:
        """In the array of a key."""
        return self.tile if self.key is None else max(0, min(self.tile, self.bound - key[self.key] * self.tile))


@dataclass(frozen=True, slots=True)
class Absent:
    """What a tuple would hold that is not there.

    Attributes:
        fill: At every index.
        extents: Of its array, axis by axis, from its key.
        dtype: Of the array.
    """

    fill: Number
    extents: tuple[Extent, ...]
    dtype: str = "float64"

    def array(self, key: Key) -> Array:
        """The array of a key."""
        return np.full(tuple(extent.at(key) for extent in self.extents), self.fill, self.dtype)

"""Models: sparse tensors of truth values that select elements where an index is no sum of labels."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray


def content_of(array: NDArray[Any]) -> tuple[object, ...]:
    """What arrays of the same shape, dtype and numbers have in common, in a few bytes."""
    return (array.shape, array.dtype.str, hashlib.blake2b(array.tobytes()).digest())


@dataclass(frozen=True, eq=False)  # no slots: the key is cached
class BooleanSelection:
    """A tensor that is true at some coordinates and false elsewhere.

    Attributes:
        coordinates: The coordinates, of shape (rank, n).
        shape: Its shape.
    """

    coordinates: NDArray[np.int64]
    shape: tuple[int, ...]

    @cached_property
    def key(self) -> tuple[object, ...]:
        """What equal selections have in common."""
        return (self.shape, content_of(self.coordinates))

    @property
    def values(self) -> NDArray[np.bool_]:
        """True, once for each coordinate."""
        return np.ones(self.coordinates.shape[1], bool)


def merging(sizes: Sequence[int]) -> BooleanSelection:
    """The selection that is true where the first index numbers the others, of these bounds, in row-major order.

    >>> merging((2, 2)).coordinates.tolist()
    [[0, 1, 2, 3], [0, 0, 1, 1], [0, 1, 0, 1]]
    """
    whole = np.arange(np.prod(sizes), dtype=np.int64)
    return BooleanSelection(np.stack([whole, *np.unravel_index(whole, sizes)]), (len(whole), *sizes))


def taking(indices: Sequence[int], bound: int) -> BooleanSelection:
    """The selection that is true where the second index, of a bound, is the one at the first; nowhere if that is -1."""
    chosen = np.asarray(indices, np.int64)
    places = np.flatnonzero(chosen >= 0)
    return BooleanSelection(np.stack([places, chosen[places]]), (len(chosen), bound))

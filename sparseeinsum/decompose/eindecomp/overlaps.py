"""EinDecomp: the number of overlaps between the pieces of two partition vectors, for many pairs of vectors at once."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.language.tensors import DEMOTED, count_keys


@dataclass(frozen=True, slots=True, eq=False)
class OverlapCounts:
    """Overlaps between the pieces of vectors: a row for each vector before, a column for each after.

    Attributes:
        count: Expected pairs of pieces that have entries in common.
        is_cut: Whether some piece before overlaps several pieces after.
    """

    count: NDArray[np.float64]
    is_cut: NDArray[np.bool_]


def count_overlaps(
    shape: Sequence[int], tuples_of: Callable[[Choice], float], before: Sequence[Choice], after: Sequence[Choice]
) -> OverlapCounts:
    """Count the overlaps between a tensor's pieces under some vectors and under others.

    Along an axis, k_1 pieces and k_2 pieces overlap in k_1 + k_2 - (common cuts) ranges. The share of these that have
    entries is taken to be that of the finer tiles.

    Args:
        shape: The shape of the tensor.
        tuples_of: The expected number of its pieces in some tiles that have entries.
        before: Vectors, as tiles.
        after: Vectors, as tiles.
    """
    segments = np.ones((len(before), len(after)))
    finer_keys, before_keys = segments.copy(), segments.copy()
    finer = np.zeros((len(before), len(after)), np.intp)  # mixed-radix number of the finer tiles of all axes
    axes = []
    for axis, bound in enumerate(shape):
        tiles = sorted({vector[axis] for vector in (*before, *after)}, key=lambda tile: tile or bound + 1)
        number = {tile: position for position, tile in enumerate(tiles)}
        rows = np.array([number[vector[axis]] for vector in before])[:, None]
        columns = np.array([number[vector[axis]] for vector in after])[None, :]
        keys = np.array([count_keys(tile, bound) for tile in tiles], float)
        ranges = np.array([[_count_ranges(first, second, bound) for second in tiles] for first in tiles], float)
        finest = np.minimum(rows, columns)
        segments *= ranges[rows, columns]
        before_keys *= keys[rows]
        finer_keys *= keys[finest]
        finer = finer * len(tiles) + finest
        axes.append(tiles)
    numbers, positions = np.unique(finer, return_inverse=True)
    tuples = np.array([tuples_of(_tiles_of(int(number), axes)) for number in numbers])
    share = np.divide(segments, finer_keys, out=np.zeros_like(segments), where=finer_keys > 0)
    return OverlapCounts(tuples[positions].reshape(segments.shape) * share, segments > before_keys)


def _count_ranges(first: int, second: int, bound: int) -> int:
    """The number of ranges of indices into which the cuts of both tiles together divide an axis.

    >>> _count_ranges(3, 5, 10), _count_ranges(2, 4, 10), _count_ranges(DEMOTED, 5, 10)
    (5, 5, 2)
    """
    common = count_keys(math.lcm(first, second), bound) if first != DEMOTED and second != DEMOTED else 1
    return count_keys(first, bound) + count_keys(second, bound) - common


def _tiles_of(number: int, axes: Sequence[Sequence[int]]) -> Choice:
    """The tiles that a mixed-radix number encodes."""
    tiles = []
    for axis_tiles in reversed(axes):
        number, position = divmod(number, len(axis_tiles))
        tiles.append(axis_tiles[position])
    return tuple(reversed(tiles))

"""EinDecomp: which pieces of one partition vector meet which of another, counted for many pairs of vectors at once."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.language.tensors import DEMOTED, count_keys


@dataclass(frozen=True, slots=True, eq=False)
class Overlaps:
    """How pieces of some vectors, the rows, meet those of others, the columns.

    Attributes:
        count: Pairs of pieces that meet and hold anything there.
        is_cut: Whether some piece of the first meets several of the second.
    """

    count: NDArray[np.float64]
    is_cut: NDArray[np.bool_]


def overlaps(
    shape: Sequence[int], tuples_of: Callable[[Choice], float], before: Sequence[Choice], after: Sequence[Choice]
) -> Overlaps:
    """How pieces of a tensor under some vectors meet its pieces under others.

    Along an axis, pieces of k_1 and k_2 tiles meet in k_1 + k_2 - (cuts that both have) places. Of a sparse tensor as
    many of these hold anything as of the finer tiles.

    Args:
        shape: Of the tensor.
        tuples_of: Its pieces of some tiles that hold anything.
        before: Vectors, as tiles.
        after: Others.
    """
    segments = np.ones((len(before), len(after)))
    finer_keys, before_keys = segments.copy(), segments.copy()
    finer = np.zeros((len(before), len(after)), np.intp)  # mixed-radix number of the finer tiles of all axes
    axes = []
    for axis, bound in enumerate(shape):
        tiles = sorted({each[axis] for each in (*before, *after)}, key=lambda tile: tile or bound + 1)
        number = {tile: place for place, tile in enumerate(tiles)}
        rows = np.array([number[each[axis]] for each in before])[:, None]
        columns = np.array([number[each[axis]] for each in after])[None, :]
        keys = np.array([count_keys(tile, bound) for tile in tiles], float)
        meeting = np.array([[_segments(first, second, bound) for second in tiles] for first in tiles], float)
        finest = np.minimum(rows, columns)
        segments *= meeting[rows, columns]
        before_keys *= keys[rows]
        finer_keys *= keys[finest]
        finer = finer * len(tiles) + finest
        axes.append(tiles)
    numbers, places = np.unique(finer, return_inverse=True)
    tuples = np.array([tuples_of(_tiles_of(int(each), axes)) for each in numbers])
    share = np.divide(segments, finer_keys, out=np.zeros_like(segments), where=finer_keys > 0)
    return Overlaps(tuples[places].reshape(segments.shape) * share, segments > before_keys)


def _segments(first: int, second: int, bound: int) -> int:
    """Into how many ranges of indices the cuts of both tiles divide an axis.

    >>> _segments(3, 5, 10), _segments(2, 4, 10), _segments(DEMOTED, 5, 10)
    (5, 5, 2)
    """
    common = count_keys(math.lcm(first, second), bound) if first != DEMOTED and second != DEMOTED else 1
    return count_keys(first, bound) + count_keys(second, bound) - common


def _tiles_of(number: int, axes: Sequence[Sequence[int]]) -> Choice:
    """The tiles that a mixed-radix number stands for."""
    tiles = []
    for each in reversed(axes):
        number, place = divmod(number, len(each))
        tiles.append(each[place])
    return tuple(reversed(tiles))

"""EinDecomp: grids of pieces of tensors under partition vectors, and the overlaps of two grids."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.language.tensors import DEMOTED, count_keys

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Grid:
    """The pieces of a tensor, or of the index space of an EinSum, in row-major order.

    Attributes:
        tiles: The tile of every axis.
        bounds: The bound of every axis.
    """

    tiles: Choice
    bounds: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of pieces along every axis."""
        return tuple(map(count_keys, self.tiles, self.bounds))

    @property
    def count(self) -> int:
        """The number of all pieces."""
        return math.prod(self.shape)

    def cuts(self, axis: int) -> Numbers:
        """The indices where the pieces of an axis begin, and the index after the last piece."""
        tile, bound = self.tiles[axis], self.bounds[axis]
        starts = np.arange(self.shape[axis], dtype=np.int64) * (tile if tile != DEMOTED else 0)
        return np.append(starts, bound)

    def sizes(self) -> Numbers:
        """The number of indices in every piece."""
        extents = [np.diff(self.cuts(axis)) for axis in range(len(self.tiles))]
        return _outer(extents, np.multiply)


def calls_of(graph: EinGraph, einsum: EinSum, choice: Choice) -> Grid:
    """The kernel calls of an EinSum, as a grid over its labels."""
    return Grid(choice, tuple(graph.bound_of(einsum, label) for label in einsum.labels))


def pieces_read(einsum: EinSum, calls: Grid, reference: Reference) -> Numbers:
    """For every call, the number of the piece of a reference that it reads or computes."""
    positions = dict(zip(einsum.labels, np.indices(calls.shape).reshape(len(calls.shape), calls.count), strict=True))
    shape = tuple(dict(zip(einsum.labels, calls.shape, strict=True))[label] for label in reference.labels)
    if not shape:
        return np.zeros(calls.count, np.int64)
    return np.ravel_multi_index(tuple(positions[label] for label in reference.labels), shape).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class PieceOverlaps:
    """The pairs of overlapping pieces of two grids over the same axes.

    Attributes:
        first: For every pair, the number of the piece of the first grid.
        second: For every pair, the number of the piece of the second grid.
        sizes: For every pair, the number of common indices.
    """

    first: Numbers
    second: Numbers
    sizes: Numbers


def piece_overlaps(first: Grid, second: Grid) -> PieceOverlaps:
    """All pairs of pieces that have indices in common."""
    firsts, seconds, lengths = [], [], []
    for axis in range(len(first.tiles)):
        cuts = np.union1d(first.cuts(axis), second.cuts(axis))
        starts = cuts[:-1]
        firsts.append(np.searchsorted(first.cuts(axis), starts, side="right") - 1)
        seconds.append(np.searchsorted(second.cuts(axis), starts, side="right") - 1)
        lengths.append(np.diff(cuts))
    sizes = _outer(lengths, np.multiply)
    return PieceOverlaps(_row_major_numbers(firsts, first.shape), _row_major_numbers(seconds, second.shape), sizes)


def _row_major_numbers(positions: Sequence[Numbers], shape: tuple[int, ...]) -> Numbers:
    """Row-major numbers of all combinations of positions along the axes."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return _outer([numbers * stride for numbers, stride in zip(positions, strides, strict=True)], np.add)


def _outer(axes: Sequence[Numbers], operation: np.ufunc) -> Numbers:
    """The operation applied to all combinations of one number per axis, in row-major order."""
    identity = np.array([operation.identity], np.int64)
    return np.asarray(reduce(lambda left, right: operation.outer(left, right).ravel(), axes, identity))

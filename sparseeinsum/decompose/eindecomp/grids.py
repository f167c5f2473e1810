"""EinDecomp: pieces of tensors under partition vectors, in row-major order, and where two sets of them meet."""

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
    """Pieces of a tensor, or of the labels of an EinSum.

    Attributes:
        tiles: Of every axis.
        bounds: Of every axis.
    """

    tiles: Choice
    bounds: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Pieces of every axis."""
        return tuple(map(count_keys, self.tiles, self.bounds))

    @property
    def count(self) -> int:
        """Pieces."""
        return math.prod(self.shape)

    def cuts(self, axis: int) -> Numbers:
        """Where the pieces of an axis begin, and where the last one ends."""
        tile, bound = self.tiles[axis], self.bounds[axis]
        starts = np.arange(self.shape[axis], dtype=np.int64) * (tile if tile != DEMOTED else 0)
        return np.append(starts, bound)

    def sizes(self) -> Numbers:
        """Indices of every piece."""
        extents = [np.diff(self.cuts(axis)) for axis in range(len(self.tiles))]
        return _outer(extents, np.multiply)


def calls_of(graph: EinGraph, einsum: EinSum, choice: Choice) -> Grid:
    """The kernel calls of an EinSum."""
    return Grid(choice, tuple(graph.bound_of(einsum, label) for label in einsum.labels))


def pieces_read(einsum: EinSum, calls: Grid, reference: Reference) -> Numbers:
    """For every call the piece of a reference that it reads or makes."""
    places = dict(zip(einsum.labels, np.indices(calls.shape).reshape(len(calls.shape), calls.count), strict=True))
    shape = tuple(dict(zip(einsum.labels, calls.shape, strict=True))[label] for label in reference.labels)
    if not shape:
        return np.zeros(calls.count, np.int64)
    return np.ravel_multi_index(tuple(places[label] for label in reference.labels), shape).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Meetings:
    """Where pieces of one grid meet those of another of the same axes.

    Attributes:
        first: The piece of the one.
        second: The piece of the other.
        sizes: Indices that both have.
    """

    first: Numbers
    second: Numbers
    sizes: Numbers


def meetings(one: Grid, other: Grid) -> Meetings:
    """Every pair of pieces that have indices in common."""
    firsts, seconds, lengths = [], [], []
    for axis in range(len(one.tiles)):
        cuts = np.union1d(one.cuts(axis), other.cuts(axis))
        starts = cuts[:-1]
        firsts.append(np.searchsorted(one.cuts(axis), starts, side="right") - 1)
        seconds.append(np.searchsorted(other.cuts(axis), starts, side="right") - 1)
        lengths.append(np.diff(cuts))
    return Meetings(_numbered(firsts, one.shape), _numbered(seconds, other.shape), _outer(lengths, np.multiply))


def _numbered(places: Sequence[Numbers], shape: tuple[int, ...]) -> Numbers:
    """Row-major numbers of all combinations of places along axes."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return _outer([at * stride for at, stride in zip(places, strides, strict=True)], np.add)


def _outer(axes: Sequence[Numbers], operation: np.ufunc) -> Numbers:
    """An operation on all combinations of numbers, in row-major order."""
    identity = np.array([operation.identity], np.int64)
    return np.asarray(reduce(lambda left, right: operation.outer(left, right).ravel(), axes, identity))

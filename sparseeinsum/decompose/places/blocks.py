"""Decompose, places: the block of a tensor that every worker has or needs.

The calls of an EinSum form a grid with an axis for every label. Workers are numbered along it in some order of the
labels, so that the number of a worker has a digit for every label: the piece of it that the worker's call reads. A
block is an interval of every axis. The blocks of a result are whole pieces, each on the first worker of its group; or
the workers of a group divide each piece among them along one axis.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, permutations

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.decompose.places.distribution import Distribution, Hashed, Replicated
from sparseeinsum.decompose.search_tasks import State
from sparseeinsum.language.tensors import DEMOTED, count_keys, extent_of

UNDIVIDED = -1  # in place of an axis along which groups divide their pieces
_MOST_NUMBERINGS = 24

Numbers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Digits:
    """Digits of the numbers of workers, in mixed radix: that of `worker` is `worker // stride % count`.

    Attributes:
        counts: The number of values of every digit.
        strides: The difference of the numbers of two workers with adjacent digits.
    """

    counts: tuple[int, ...]
    strides: tuple[int, ...]

    def of(self, workers: int) -> Numbers:
        """The digits of the first `workers` workers: a row for each digit, a column for each worker."""
        strides, counts = (np.array(numbers, np.int64)[:, None] for numbers in (self.strides, self.counts))
        return np.arange(workers, dtype=np.int64) // strides % counts

    def selected(self, positions: Sequence[int]) -> "Digits":
        """The digits at these positions."""
        return Digits(tuple([self.counts[at] for at in positions]), tuple([self.strides[at] for at in positions]))


@lru_cache(maxsize=1 << 12)
def numberings(counts: tuple[int, ...]) -> tuple[Digits, ...]:
    """The digits for every order of the labels that are cut into these pieces; the last label varies fastest."""
    cut = [position for position, count in enumerate(counts) if count > 1]
    numbered = []
    for order in islice(permutations(cut), _MOST_NUMBERINGS):
        strides, stride = [1] * len(counts), 1
        for position in reversed(order):
            strides[position] = stride
            stride *= counts[position]
        numbered.append(Digits(counts, tuple(strides)))
    return tuple(numbered)


@dataclass(frozen=True, slots=True)
class BlockPlacement:
    """Which block of a tensor every worker has, or needs.

    Attributes:
        calls: The number of workers with blocks: the first ones.
        tiles: The tile of every axis.
        digits: The digit that numbers the tile, for every axis.
        group: The digits of the workers that have computed parts of the same piece; none if every worker in `calls` has
            the whole piece.
        divided: The axis along which such a group divides its piece; UNDIVIDED if its first worker has the piece.
    """

    calls: int
    tiles: tuple[int, ...]
    digits: Digits
    group: Digits = Digits((), ())
    divided: int = UNDIVIDED

    @classmethod
    def of_distribution(cls, distribution: Distribution, shape: Sequence[int], workers: int) -> "BlockPlacement":
        """A tensor of this shape that is hashed by one axis, in a piece for each worker, or that all have, or none has.

        No worker has what another machine has, or what is scattered, because nothing tells who has it.
        """
        tiles, counts = [DEMOTED] * len(shape), [1] * len(shape)
        calls = workers if isinstance(distribution, Replicated) else 0
        if isinstance(distribution, Hashed):
            axis, bound = distribution.axis, shape[distribution.axis]
            tiles[axis] = -(-bound // workers) if min(workers, bound) > 1 else DEMOTED
            calls = counts[axis] = max(count_keys(tiles[axis], bound), 1)
        return cls(calls, tuple(tiles), Digits(tuple(counts), (1,) * len(shape)))

    def state(self) -> State:
        """The same as whole numbers, for a search."""
        numbers = (*self.tiles, *self.digits.counts, *self.digits.strides, *self.group.counts, *self.group.strides)
        return self.calls, self.divided, len(self.tiles), *numbers

    @classmethod
    def of_state(cls, state: State) -> "BlockPlacement":
        """The distribution whose `state` returns these numbers."""
        calls, divided, axes, *numbers = state
        tiles, counts, strides = (tuple(numbers[axes * at : axes * (at + 1)]) for at in range(3))
        group = numbers[3 * axes :]
        middle = len(group) // 2
        groups = Digits(tuple(group[:middle]), tuple(group[middle:]))
        return cls(calls, tiles, Digits(counts, strides), groups, divided)

    def blocks(self, shape: Sequence[int], workers: int) -> "Blocks":
        """The blocks of a tensor of this shape."""
        tiles, bounds = (np.array(numbers, np.int64)[:, None] for numbers in (self.tiles, shape))
        extents = [extent_of(*axis) for axis in zip(self.tiles, shape, strict=True)]
        starts = self.digits.of(workers) * tiles
        ends = np.minimum(starts + np.array(extents, np.int64)[:, None], bounds)
        has_block = np.arange(workers) < self.calls
        if self.group.counts:
            members = self.group.of(workers)
            if self.divided == UNDIVIDED:
                has_block &= ~members.any(axis=0)
            else:
                size = -(-extents[self.divided] // math.prod(self.group.counts))
                number = np.zeros(workers, np.int64)
                for count, digits in zip(self.group.counts, members, strict=True):
                    number = number * count + digits
                starts[self.divided] += number * size
                ends[self.divided] = np.minimum(starts[self.divided] + size, ends[self.divided])
        no_start = np.zeros(workers)
        return Blocks(*(np.vstack(limits, dtype=np.float64) for limits in ((starts, no_start), (ends, has_block))))


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """Blocks of one tensor: a column for each worker; the last row is an axis of length 0 where there is no block.

    Attributes:
        starts: The first index along every axis.
        ends: The index after the last one; a block is empty if it is not greater than the first.
    """

    starts: Floats
    ends: Floats

    @classmethod
    def stacked(cls, blocks: Sequence["Blocks"]) -> "Blocks":
        """Several blocks of each worker, with an axis for them before that of the workers."""
        return cls(np.stack([block.starts for block in blocks], 1), np.stack([block.ends for block in blocks], 1))

    @property
    def sizes(self) -> Floats:
        """The number of indices in every block."""
        return self.common(self)

    def common(self, other: "Blocks") -> Floats:
        """For every worker, the number of indices that its blocks have in common; axes between are broadcast."""
        volumes: Floats = np.ones(())
        for start, end, other_start, other_end in zip(self.starts, self.ends, other.starts, other.ends, strict=True):
            lengths = np.minimum(end, other_end)
            lengths -= np.maximum(start, other_start)
            volumes = volumes * np.maximum(lengths, 0.0, out=lengths)
        return volumes

    def by_row(self) -> "Blocks":
        """The blocks with an axis more after the first of theirs, so that each is compared with a row of others."""
        return Blocks(self.starts[:, :, None], self.ends[:, :, None])

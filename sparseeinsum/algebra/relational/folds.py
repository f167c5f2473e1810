"""Algebra, relational: kernels of groups: what an aggregation makes of the arrays that share its keys."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from sparseeinsum.algebra.relational.absence import Extent
from sparseeinsum.algebra.relational.kernels import Bound, Kernel
from sparseeinsum.algebra.relational.keys import Key
from sparseeinsum.errors import AlgebraError
from sparseeinsum.language.inference import aggregate_repeated
from sparseeinsum.operators.aggregates import AGGREGATES, aggregated_dtype
from sparseeinsum.operators.dtypes import Array, Number
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.records import Law


class Fold(ABC):
    """A function of the arrays of a group."""

    __slots__ = ()

    @abstractmethod
    def bound(self, bound: Bound) -> Bound:
        """Bound of the result, from that of the arrays."""

    @abstractmethod
    def fold(self, group: Key, keys: Sequence[Key], arrays: Sequence[Array]) -> Array:
        """The result.

        Args:
            group: The parts of their keys that all share.
            keys: For every array, the parts of its key that the group does not share.
            arrays: At least one.
        """

    @property
    def makes_ragged(self) -> bool:
        """Whether results may be smaller than their bound, though the arrays of a group are not."""
        return False

    @property
    def is_decomposable(self) -> bool:
        """Whether groups may be folded in parts, and what comes out folded again: two phases."""
        return False

    @property
    def law(self) -> Law | None:
        """What a kernel of one array must commute with to be moved through it; None where none can be."""
        return None


@dataclass(frozen=True, slots=True)
class AggregateFold(Fold):
    """An aggregate of numbers, element by element.

    Attributes:
        name: One of AGGREGATES.
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in AGGREGATES:
            raise AlgebraError(f"{self.name!r} is no aggregate; there are {', '.join(AGGREGATES)}")

    def bound(self, bound: Bound) -> Bound:
        """That of the arrays."""
        return bound

    def fold(self, group: Key, keys: Sequence[Key], arrays: Sequence[Array]) -> Array:
        """By numpy."""
        bounds = {array.shape for array in arrays}
        if len(bounds) > 1:
            raise AlgebraError(f"arrays of one group have several bounds: {', '.join(map(str, sorted(bounds)))}")
        stacked = np.stack(arrays)
        dtype = aggregated_dtype(self.name, str(stacked.dtype))
        with np.errstate(all="ignore"):
            values = stacked.astype(dtype) if AGGREGATES[self.name].gives_floats else stacked
            return np.asarray(AGGREGATES[self.name].numpy(values, axis=(0,)))

    @property
    def is_decomposable(self) -> bool:
        """All of them are associative and commutative."""
        return True

    @property
    def law(self) -> Law | None:
        """Of the function of two numbers."""
        return FUNCTIONS[AGGREGATES[self.name].combine].law

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class KernelFold(Fold):
    """A kernel of two arrays, applied until one is left.

    Attributes:
        kernel: Associative and commutative, and its result as large as its operands.
    """

    kernel: Kernel

    def __post_init__(self) -> None:
        if self.kernel.operands != 2 or not self.kernel.is_foldable:
            raise AlgebraError(
                f"an aggregation needs a kernel of two arrays that is associative and commutative, or its result would "
                f"depend on an order that relations do not have; {self.kernel} is not known to be"
            )

    def bound(self, bound: Bound) -> Bound:
        """That of the arrays."""
        if self.kernel.bound(bound, bound) != bound:
            raise AlgebraError(f"{self.kernel} makes arrays {self.kernel.bound(bound, bound)} of two {bound}")
        return bound

    def fold(self, group: Key, keys: Sequence[Key], arrays: Sequence[Array]) -> Array:
        """One after the other."""
        return reduce(self.kernel.apply, arrays)

    @property
    def is_decomposable(self) -> bool:
        """It is associative and commutative."""
        return True

    @property
    def law(self) -> Law | None:
        """The kernel's."""
        return self.kernel.law

    def __str__(self) -> str:
        return str(self.kernel)


@dataclass(frozen=True, slots=True)
class CompensatedFold(Fold):
    """An aggregate of groups of which arrays were left out that all hold one number.

    Attributes:
        aggregate: Of numbers.
        constant: What those left out hold at every index.
        indices: That a group has, with those left out: so many numbers are folded into every one of the result.
        extents: For every axis, or label, that a kernel folded before: how many indices, from the part of the key that
            the group does not share (its number among those, tile, bound), or the same in all.
    """

    aggregate: AggregateFold
    constant: Number
    indices: int
    extents: tuple[Extent, ...]

    def bound(self, bound: Bound) -> Bound:
        """That of the arrays."""
        return bound

    def fold(self, group: Key, keys: Sequence[Key], arrays: Sequence[Array]) -> Array:
        """The aggregate of all, those left out included."""
        found = self.aggregate.fold(group, keys, arrays)
        present = sum(math.prod(extent.at(key) for extent in self.extents) for key in keys)
        missing = self.indices - present
        if missing <= 0:
            return found
        name, dtype = self.aggregate.name, str(found.dtype)
        rest = np.full(found.shape, aggregate_repeated(name, np.asarray(self.constant), missing, dtype))
        return self.aggregate.fold(group, [(), ()], [found, rest])

    def __str__(self) -> str:
        return f"{self.aggregate} of {self.indices} indices, {self.constant!r} where nothing is"


@dataclass(frozen=True, slots=True)
class ConcatFold(Fold):
    """Arrays put one after the other along an axis, in the order of their keys: the paper's arrayConcatOp.

    Attributes:
        axis: Of the arrays.
        tile: Indices that the arrays have along it; the last one may have fewer.
        extent: Of the axis afterwards, from the key that a group shares.
        fill: What is put in for arrays that are absent; None where none may be.
    """

    axis: int
    tile: int
    extent: Extent
    fill: Number | None

    def bound(self, bound: Bound) -> Bound:
        """That of the arrays, but for the axis."""
        return self._with_extent(bound, self.extent.tile)

    @property
    def makes_ragged(self) -> bool:
        """Where the extent is not the same of all groups."""
        return self.extent.varies

    def _with_extent(self, bound: Bound, extent: int) -> Bound:
        return tuple(extent if at == self.axis else size for at, size in enumerate(bound))

    def fold(self, group: Key, keys: Sequence[Key], arrays: Sequence[Array]) -> Array:
        """Every array at the place that its key says."""
        extent = self.extent.at(group)
        shape = self._with_extent(arrays[0].shape, extent)
        made: Array = np.full(shape, 0 if self.fill is None else self.fill, arrays[0].dtype)
        before = (slice(None),) * self.axis
        present = 0
        for key, array in zip(keys, arrays, strict=True):
            start = key[0] * self.tile
            made[(*before, slice(start, start + array.shape[self.axis]))] = array
            present += array.shape[self.axis]
        if self.fill is None and present != extent:
            raise AlgebraError(f"{present} of {extent} indices are there to be concatenated; give it a fill")
        return made

    def __str__(self) -> str:
        return f"concatenation to {self.extent.tile}"


@dataclass(frozen=True, slots=True)
class MappedFold(Fold):
    """A fold, with a kernel before, of every array, or after, of the result.

    Attributes:
        inner: What folds.
        before: Of every array.
        after: Of the result, once.
    """

    inner: Fold
    before: Kernel | None = None
    after: Kernel | None = None

    def bound(self, bound: Bound) -> Bound:
        """As the kernels and the fold say."""
        given = bound if self.before is None else self.before.bound(bound)
        folded = self.inner.bound(given)
        return folded if self.after is None else self.after.bound(folded)

    def fold(self, group: Key, keys: Sequence[Key], arrays: Sequence[Array]) -> Array:
        """One after the other."""
        given = arrays if self.before is None else [self.before.apply(array) for array in arrays]
        folded = self.inner.fold(group, keys, given)
        return folded if self.after is None else self.after.apply(folded)

    def __str__(self) -> str:
        before = "" if self.before is None else f" of each ({self.before})"
        return f"{self.inner}{before}" if self.after is None else f"({self.after}) of ({self.inner}{before})"


def as_fold(value: Fold | Kernel | str) -> Fold:
    """A fold, or what a kernel of two arrays or an aggregate's name stands for."""
    if isinstance(value, str):
        return AggregateFold(value)
    return KernelFold(value) if isinstance(value, Kernel) else value

"""Algebra, relational: folds: what an aggregation makes of the arrays of a group."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType

import numpy as np

from sparseeinsum.algebra.relational.absence import TileExtent
from sparseeinsum.algebra.relational.kernels import ArrayBound, Kernel
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
    def bound(self, bound: ArrayBound) -> ArrayBound:
        """The bound of the result, from that of the arrays."""

    @abstractmethod
    def fold(self, group: Key, keys: Sequence[Key], arrays: Sequence[Array]) -> Array:
        """The result of folding a group.

        Args:
            group: The parts of the keys that all tuples of the group share.
            keys: For every array, the parts of its key that the group does not share.
            arrays: The arrays, at least one.
        """

    @property
    def lacking_parts(self) -> int | None:
        """How many parts of the keys of their tuples groups lack; None if it may be any number."""
        return None

    @property
    def makes_ragged(self) -> bool:
        """Whether results can be smaller than their bound, though the arrays of a group are not."""
        return False

    @property
    def is_decomposable(self) -> bool:
        """Whether parts of a group can be folded first, and then the results of the parts: in two phases."""
        return False

    @property
    def law(self) -> Law | None:
        """The law with which a kernel of one array must commute to be moved through the fold; None if none can be."""
        return None


@dataclass(frozen=True, slots=True)
class AggregateFold(Fold):
    """An aggregate of numbers, applied element by element.

    Attributes:
        name: The name of the aggregate, one of AGGREGATES.
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in AGGREGATES:
            raise AlgebraError(f"{self.name!r} is no aggregate; there are {', '.join(_NAMES)}")

    def bound(self, bound: ArrayBound) -> ArrayBound:
        """The bound of the arrays."""
        return bound

    def fold(self, group: Key, keys: Sequence[Key], arrays: Sequence[Array]) -> Array:
        """The aggregate of the arrays, computed by numpy."""
        bounds = {array.shape for array in arrays}
        if len(bounds) > 1:
            raise AlgebraError(f"arrays of one group have several bounds: {', '.join(map(str, sorted(bounds)))}")
        stacked = np.stack(arrays)
        dtype = aggregated_dtype(self.name, str(stacked.dtype))
        with np.errstate(all="ignore"):
            values = stacked.astype(dtype) if AGGREGATES[self.name].returns_float else stacked
            return np.asarray(AGGREGATES[self.name].numpy(values, axis=(0,)))

    @property
    def is_decomposable(self) -> bool:
        """True: all aggregates are associative and commutative."""
        return True

    @property
    def law(self) -> Law | None:
        """The law of the function of two numbers that the aggregate repeats."""
        return FUNCTIONS[AGGREGATES[self.name].combine].law

    def __str__(self) -> str:
        return self.name


EXTREMES: Mapping[str, tuple[str, Callable[..., Array]]] = MappingProxyType(
    {"argmin": ("min", np.argmin), "argmax": ("max", np.argmax)}
)
_NAMES = (*AGGREGATES, *EXTREMES)


@dataclass(frozen=True, slots=True)
class PositionFold(Fold):
    """For every element, where it is least or greatest in a group: the part of the key that the group lacks.

    Of several such positions, it is the first; NaN counts as the least and as the greatest, as in numpy.

    Attributes:
        name: The name of the fold, one of EXTREMES.
    """

    name: str

    @property
    def aggregate(self) -> str:
        """The name of the aggregate that returns the least or the greatest element itself."""
        return EXTREMES[self.name][0]

    @property
    def lacking_parts(self) -> int:
        """One: the part that is returned."""
        return 1

    def bound(self, bound: ArrayBound) -> ArrayBound:
        """The bound of the arrays."""
        return bound

    def fold(self, group: Key, keys: Sequence[Key], arrays: Sequence[Array]) -> Array:
        """Return, for every element of arrays, the key of the array that has the extreme; the first of equal ones."""
        order = sorted(range(len(keys)), key=lambda at: keys[at])
        first = EXTREMES[self.name][1](np.stack([arrays[at] for at in order]), axis=0)
        positions = np.array([keys[at][0] for at in order], np.float64)
        return np.asarray(positions[first])

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class KernelFold(Fold):
    """A kernel of two arrays, applied until one array is left.

    Attributes:
        kernel: The kernel: associative and commutative, with a result of the bound of its operands.
    """

    kernel: Kernel

    def __post_init__(self) -> None:
        if self.kernel.operands != 2 or not self.kernel.is_foldable:
            raise AlgebraError(
                f"an aggregation needs a kernel of two arrays that is associative and commutative, or its result would "
                f"depend on an order that relations do not have; {self.kernel} is not known to be"
            )

    def bound(self, bound: ArrayBound) -> ArrayBound:
        """The bound of the arrays."""
        if self.kernel.bound(bound, bound) != bound:
            raise AlgebraError(f"{self.kernel} makes arrays {self.kernel.bound(bound, bound)} of two {bound}")
        return bound

    def fold(self, group: Key, keys: Sequence[Key], arrays: Sequence[Array]) -> Array:
        """The arrays combined one after the other."""
        return reduce(self.kernel.apply, arrays)

    @property
    def is_decomposable(self) -> bool:
        """True: the kernel is associative and commutative."""
        return True

    @property
    def law(self) -> Law | None:
        """The law of the kernel."""
        return self.kernel.law

    def __str__(self) -> str:
        return str(self.kernel)


@dataclass(frozen=True, slots=True)
class CompensatedFold(Fold):
    """An aggregate of groups that lack arrays which hold one number at every index.

    Attributes:
        aggregate: The aggregate.
        constant: The number that the missing arrays hold.
        indices: How many indices a group has with the missing arrays: so many numbers are folded into each of the
            result.
        extents: For every label that a kernel has aggregated, the extent of the arrays, by the parts of the key that
            the group does not share.
    """

    aggregate: AggregateFold
    constant: Number
    indices: int
    extents: tuple[TileExtent, ...]

    def bound(self, bound: ArrayBound) -> ArrayBound:
        """The bound of the arrays."""
        return bound

    def fold(self, group: Key, keys: Sequence[Key], arrays: Sequence[Array]) -> Array:
        """The aggregate of the arrays and of the missing ones."""
        folded = self.aggregate.fold(group, keys, arrays)
        present = sum(math.prod(extent.at(key) for extent in self.extents) for key in keys)
        missing = self.indices - present
        if missing <= 0:
            return folded
        name, dtype = self.aggregate.name, str(folded.dtype)
        contribution = np.full(folded.shape, aggregate_repeated(name, np.asarray(self.constant), missing, dtype))
        return self.aggregate.fold(group, [(), ()], [folded, contribution])

    def __str__(self) -> str:
        return f"{self.aggregate} of {self.indices} indices, {self.constant!r} where nothing is"


@dataclass(frozen=True, slots=True)
class ConcatFold(Fold):
    """Arrays concatenated along an axis, in the order of their keys: the paper's arrayConcatOp.

    Attributes:
        axis: The axis.
        tile: The number of indices that each array has along it; the last one may have fewer.
        extent: The number of indices of the result, by the key of the group.
        fill: The value in place of absent arrays; None if no array may be absent.
    """

    axis: int
    tile: int
    extent: TileExtent
    fill: Number | None

    def bound(self, bound: ArrayBound) -> ArrayBound:
        """The bound of the arrays, with the extent of the result along the axis."""
        return self._with_extent(bound, self.extent.tile)

    @property
    def makes_ragged(self) -> bool:
        """Whether the extent differs between groups."""
        return self.extent.varies

    def _with_extent(self, bound: ArrayBound, extent: int) -> ArrayBound:
        return tuple(extent if at == self.axis else size for at, size in enumerate(bound))

    def fold(self, group: Key, keys: Sequence[Key], arrays: Sequence[Array]) -> Array:
        """The arrays, each at the place of its key."""
        extent = self.extent.at(group)
        shape = self._with_extent(arrays[0].shape, extent)
        result: Array = np.full(shape, 0 if self.fill is None else self.fill, arrays[0].dtype)
        before = (slice(None),) * self.axis
        present = 0
        for key, array in zip(keys, arrays, strict=True):
            start = key[0] * self.tile
            result[(*before, slice(start, start + array.shape[self.axis]))] = array
            present += array.shape[self.axis]
        if self.fill is None and present != extent:
            raise AlgebraError(f"{present} of {extent} indices are there to be concatenated; give it a fill")
        return result

    def __str__(self) -> str:
        return f"concatenation to {self.extent.tile}"


@dataclass(frozen=True, slots=True)
class MappedFold(Fold):
    """A fold with a kernel of every array before it, or a kernel of the result after it.

    Attributes:
        inner: The fold.
        before: The kernel of every array, or None.
        after: The kernel of the result, or None.
    """

    inner: Fold
    before: Kernel | None = None
    after: Kernel | None = None

    def bound(self, bound: ArrayBound) -> ArrayBound:
        """The bound of the result of the kernels and the fold."""
        mapped = bound if self.before is None else self.before.bound(bound)
        folded = self.inner.bound(mapped)
        return folded if self.after is None else self.after.bound(folded)

    def fold(self, group: Key, keys: Sequence[Key], arrays: Sequence[Array]) -> Array:
        """The fold of the mapped arrays, mapped."""
        mapped = arrays if self.before is None else [self.before.apply(array) for array in arrays]
        folded = self.inner.fold(group, keys, mapped)
        return folded if self.after is None else self.after.apply(folded)

    def __str__(self) -> str:
        before = "" if self.before is None else f" of each ({self.before})"
        return f"{self.inner}{before}" if self.after is None else f"({self.after}) of ({self.inner}{before})"


def as_fold(value: Fold | Kernel | str) -> Fold:
    """A fold, or the fold of an aggregate's name or of a kernel of two arrays.

    Raises:
        AlgebraError: It is none of these.
    """
    if isinstance(value, str):
        return PositionFold(value) if value in EXTREMES else AggregateFold(value)
    if not isinstance(value, Kernel | Fold):
        raise AlgebraError(f"the fold is {value!r}; give the name of an aggregate: {', '.join(_NAMES)}")
    return KernelFold(value) if isinstance(value, Kernel) else value

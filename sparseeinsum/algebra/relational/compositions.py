"""Algebra, relational: kernels made of kernels, and those that make several arrays of one."""

from dataclasses import dataclass

from sparseeinsum.algebra.relational.kernels import Bound, Kernel
from sparseeinsum.algebra.relational.laws import EVERYTHING
from sparseeinsum.errors import AlgebraError
from sparseeinsum.operators.dtypes import Array
from sparseeinsum.operators.records import Law


@dataclass(frozen=True, slots=True)
class ComposedKernel(Kernel):
    """A kernel of one array, of what another kernel gives.

    Attributes:
        outer: Of one array.
        inner: Of one or two.
    """

    outer: Kernel
    inner: Kernel

    @property
    def operands(self) -> int:
        """The inner one's."""
        return self.inner.operands

    def bound(self, *bounds: Bound) -> Bound:
        """The outer one's."""
        return self.outer.bound(self.inner.bound(*bounds))

    def apply(self, *arrays: Array) -> Array:
        """One after the other."""
        return self.outer.apply(self.inner.apply(*arrays))

    def operations(self, *bounds: Bound) -> float:
        """Of both."""
        return self.inner.operations(*bounds) + self.outer.operations(self.inner.bound(*bounds))

    @property
    def commutes_with(self) -> frozenset[Law]:
        """What both commute with."""
        return self.outer.commutes_with & self.inner.commutes_with

    def __str__(self) -> str:
        return f"({self.outer}) of ({self.inner})"


@dataclass(frozen=True, slots=True)
class OperandwiseKernel(Kernel):
    """A kernel of two arrays, each taken through a kernel of one before.

    Attributes:
        outer: Of two arrays.
        inner: Of one.
    """

    outer: Kernel
    inner: Kernel

    @property
    def operands(self) -> int:
        """Two."""
        return self.outer.operands

    def bound(self, *bounds: Bound) -> Bound:
        """The outer one's."""
        self.check(*bounds)
        return self.outer.bound(*map(self.inner.bound, bounds))

    def apply(self, *arrays: Array) -> Array:
        """One after the other."""
        return self.outer.apply(*map(self.inner.apply, arrays))

    def operations(self, *bounds: Bound) -> float:
        """Of all."""
        before = sum(map(self.inner.operations, bounds))
        return before + self.outer.operations(*map(self.inner.bound, bounds))

    def __str__(self) -> str:
        return f"({self.outer}) of each ({self.inner})"


def compose(outer: Kernel, inner: Kernel) -> Kernel:
    """A kernel of what another one gives; identities vanish."""
    if outer.is_identity:
        return inner
    return outer if inner.is_identity else ComposedKernel(outer, inner)


class _Moving(Kernel):
    """Of one array, whose elements it moves: nothing is computed."""

    __slots__ = ()

    @property
    def operands(self) -> int:
        """One."""
        return 1

    def operations(self, *bounds: Bound) -> float:
        """None."""
        return 0.0


@dataclass(frozen=True, slots=True)
class Duplicate(_Moving):
    """Copies of an array: the paper's duplicate.

    Attributes:
        count: How many.
    """

    count: int

    @property
    def is_single(self) -> bool:
        """It makes several."""
        return False

    @property
    def copies(self) -> int:
        """As many as it was made for."""
        return self.count

    def bound(self, *bounds: Bound) -> Bound:
        """The array's."""
        self.check(*bounds)
        return bounds[0]

    def apply(self, *arrays: Array) -> Array:
        """One of them."""
        return arrays[0]

    def outputs(self, array: Array) -> list[Array]:
        """All of them."""
        return [array] * self.count

    @property
    def commutes_with(self) -> frozenset[Law]:
        """Everything."""
        return EVERYTHING

    def __str__(self) -> str:
        return f"{self.count} copies"


@dataclass(frozen=True, slots=True)
class SplitAxis(_Moving):
    """An array in pieces along an axis: the paper's arrayTileOp; the last one may be shorter.

    Attributes:
        axis: That is cut.
        size: Of a piece.
        count: Pieces of the largest array.
    """

    axis: int
    size: int
    count: int

    @property
    def is_single(self) -> bool:
        """It makes several."""
        return False

    @property
    def copies(self) -> int:
        """As many as the largest array has."""
        return self.count

    def bound(self, *bounds: Bound) -> Bound:
        """That of the array, but for the axis."""
        self.check(*bounds)
        return tuple(min(size, self.size) if at == self.axis else size for at, size in enumerate(bounds[0]))

    def apply(self, *arrays: Array) -> Array:
        """The first piece."""
        return self.outputs(arrays[0])[0]

    def outputs(self, array: Array) -> list[Array]:
        """All of them; fewer of an array that is shorter."""
        starts = range(0, array.shape[self.axis], self.size)
        before = (slice(None),) * self.axis
        return [array[(*before, slice(start, start + self.size))] for start in starts]

    def output_bounds(self, bound: Bound) -> list[Bound]:
        """The last one is what is left."""
        extents = [min(self.size, bound[self.axis] - start) for start in range(0, bound[self.axis], self.size)]
        return [(*bound[: self.axis], extent, *bound[self.axis + 1 :]) for extent in extents]

    def __str__(self) -> str:
        return f"axis {self.axis} in pieces of {self.size}"


@dataclass(frozen=True, slots=True)
class DropAxis(_Moving):
    """An axis of one index left out.

    Attributes:
        axis: Of the array.
    """

    axis: int

    def bound(self, *bounds: Bound) -> Bound:
        """That of the array, without the axis."""
        self.check(*bounds)
        (bound,) = bounds
        if bound[self.axis] > 1:
            raise AlgebraError(f"the axis {self.axis} of {bound} has several indices, and cannot be left out")
        return (*bound[: self.axis], *bound[self.axis + 1 :])

    def apply(self, *arrays: Array) -> Array:
        """The array without it."""
        return arrays[0].reshape(self.bound(arrays[0].shape))

    @property
    def commutes_with(self) -> frozenset[Law]:
        """Everything."""
        return EVERYTHING

    def __str__(self) -> str:
        return f"without axis {self.axis}"


@dataclass(frozen=True, slots=True)
class InsertAxis(_Moving):
    """An axis of one index put in.

    Attributes:
        axis: Of the result.
    """

    axis: int

    def bound(self, *bounds: Bound) -> Bound:
        """That of the array, with the axis."""
        self.check(*bounds)
        return (*bounds[0][: self.axis], 1, *bounds[0][self.axis :])

    def apply(self, *arrays: Array) -> Array:
        """The array with it."""
        return arrays[0].reshape(self.bound(arrays[0].shape))

    @property
    def commutes_with(self) -> frozenset[Law]:
        """Everything."""
        return EVERYTHING

    def __str__(self) -> str:
        return f"with an axis {self.axis}"

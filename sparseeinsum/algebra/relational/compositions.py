"""Algebra, relational: kernels that are composed of others, and kernels that only rearrange elements."""

from dataclasses import dataclass

from sparseeinsum.algebra.relational.kernels import ArrayBound, Kernel
from sparseeinsum.algebra.relational.laws import EVERYTHING
from sparseeinsum.errors import AlgebraError
from sparseeinsum.operators.dtypes import Array
from sparseeinsum.operators.records import Law


@dataclass(frozen=True, slots=True)
class ComposedKernel(Kernel):
    """A kernel of one array, applied to the result of another kernel.

    Attributes:
        outer: The kernel of one array.
        inner: The kernel of one array or two, which is applied first.
    """

    outer: Kernel
    inner: Kernel

    @property
    def operands(self) -> int:
        """The number of arrays that the inner kernel takes."""
        return self.inner.operands

    def bound(self, *bounds: ArrayBound) -> ArrayBound:
        """The bound of the outer kernel's result."""
        return self.outer.bound(self.inner.bound(*bounds))

    def apply(self, *arrays: Array) -> Array:
        """The result of the outer kernel."""
        return self.outer.apply(self.inner.apply(*arrays))

    def operations(self, *bounds: ArrayBound) -> float:
        """The operations of both kernels."""
        return self.inner.operations(*bounds) + self.outer.operations(self.inner.bound(*bounds))

    @property
    def commutes_with(self) -> frozenset[Law]:
        """The laws with which both kernels commute."""
        return self.outer.commutes_with & self.inner.commutes_with

    def __str__(self) -> str:
        return f"({self.outer}) of ({self.inner})"


@dataclass(frozen=True, slots=True)
class OperandwiseKernel(Kernel):
    """A kernel of two arrays, applied to the results of a kernel of one array on each operand.

    Attributes:
        outer: The kernel of two arrays.
        inner: The kernel of one array, which is applied to both operands first.
    """

    outer: Kernel
    inner: Kernel

    @property
    def operands(self) -> int:
        """Two, as for the outer kernel."""
        return self.outer.operands

    def bound(self, *bounds: ArrayBound) -> ArrayBound:
        """The bound of the outer kernel's result."""
        self.check(*bounds)
        return self.outer.bound(*map(self.inner.bound, bounds))

    def apply(self, *arrays: Array) -> Array:
        """The result of the outer kernel."""
        return self.outer.apply(*map(self.inner.apply, arrays))

    def operations(self, *bounds: ArrayBound) -> float:
        """The operations of the outer kernel, and of the inner one on both operands."""
        inner_operations = sum(map(self.inner.operations, bounds))
        return inner_operations + self.outer.operations(*map(self.inner.bound, bounds))

    def __str__(self) -> str:
        return f"({self.outer}) of each ({self.inner})"


def compose(outer: Kernel, inner: Kernel) -> Kernel:
    """The kernel that applies `inner` and then `outer`; identities are left out."""
    if outer.is_identity:
        return inner
    return outer if inner.is_identity else ComposedKernel(outer, inner)


class _RearrangingKernel(Kernel):
    """A kernel of one array that moves its elements, and computes nothing."""

    __slots__ = ()

    @property
    def operands(self) -> int:
        """One: it takes a single array."""
        return 1

    def operations(self, *bounds: ArrayBound) -> float:
        """It computes nothing, so 0."""
        return 0.0


@dataclass(frozen=True, slots=True)
class Duplicate(_RearrangingKernel):
    """Several copies of an array: the paper's duplicate.

    Attributes:
        count: The number of copies.
    """

    count: int

    @property
    def is_single(self) -> bool:
        """False: it makes several arrays."""
        return False

    @property
    def copies(self) -> int:
        """The number of copies that it makes."""
        return self.count

    def bound(self, *bounds: ArrayBound) -> ArrayBound:
        """The bound of the array."""
        self.check(*bounds)
        return bounds[0]

    def apply(self, *arrays: Array) -> Array:
        """The array, which is the first copy."""
        return arrays[0]

    def outputs(self, array: Array) -> list[Array]:
        """A list of the copies."""
        return [array] * self.count

    @property
    def commutes_with(self) -> frozenset[Law]:
        """It commutes with all functions."""
        return EVERYTHING

    def __str__(self) -> str:
        return f"{self.count} copies"


@dataclass(frozen=True, slots=True)
class SplitAxis(_RearrangingKernel):
    """An array cut into tiles along an axis: the paper's arrayTileOp. The last tile may be shorter.

    Attributes:
        axis: The axis.
        size: The number of indices of a tile.
        count: The number of tiles of the largest array.
    """

    axis: int
    size: int
    count: int

    @property
    def is_single(self) -> bool:
        """False: it makes several arrays."""
        return False

    @property
    def copies(self) -> int:
        """The number of tiles of the largest array."""
        return self.count

    def bound(self, *bounds: ArrayBound) -> ArrayBound:
        """The bound of the array, but at most `size` along the axis."""
        self.check(*bounds)
        return tuple(min(size, self.size) if at == self.axis else size for at, size in enumerate(bounds[0]))

    def apply(self, *arrays: Array) -> Array:
        """The first tile of the array."""
        return self.outputs(arrays[0])[0]

    def outputs(self, array: Array) -> list[Array]:
        """The tiles of the array; a shorter array has fewer."""
        starts = range(0, array.shape[self.axis], self.size)
        before = (slice(None),) * self.axis
        return [array[(*before, slice(start, start + self.size))] for start in starts]

    def output_bounds(self, bound: ArrayBound) -> list[ArrayBound]:
        """The bounds of the tiles; the last one has the remaining indices."""
        extents = [min(self.size, bound[self.axis] - start) for start in range(0, bound[self.axis], self.size)]
        return [(*bound[: self.axis], extent, *bound[self.axis + 1 :]) for extent in extents]

    def __str__(self) -> str:
        return f"axis {self.axis} in pieces of {self.size}"


class _ReshapingKernel(_RearrangingKernel):
    """A kernel that keeps the elements in C order, and changes the bound of the array."""

    __slots__ = ()

    def apply(self, *arrays: Array) -> Array:
        """The array, reshaped to the bound of the result."""
        return arrays[0].reshape(self.bound(arrays[0].shape))

    @property
    def commutes_with(self) -> frozenset[Law]:
        """It commutes with all functions."""
        return EVERYTHING


@dataclass(frozen=True, slots=True)
class DropAxis(_ReshapingKernel):
    """An array without an axis that has one index.

    Attributes:
        axis: The position of the axis.
    """

    axis: int

    def bound(self, *bounds: ArrayBound) -> ArrayBound:
        """The bound of the array, without the axis.

        Raises:
            AlgebraError: The axis has several indices.
        """
        self.check(*bounds)
        (bound,) = bounds
        if bound[self.axis] > 1:
            raise AlgebraError(f"the axis {self.axis} of {bound} has several indices, and cannot be left out")
        return (*bound[: self.axis], *bound[self.axis + 1 :])

    def __str__(self) -> str:
        return f"without axis {self.axis}"


@dataclass(frozen=True, slots=True)
class InsertAxis(_ReshapingKernel):
    """An array with an additional axis of one index.

    Attributes:
        axis: The position of the axis in the result.
    """

    axis: int

    def bound(self, *bounds: ArrayBound) -> ArrayBound:
        """The bound of the array, with the additional axis."""
        self.check(*bounds)
        return (*bounds[0][: self.axis], 1, *bounds[0][self.axis :])

    def __str__(self) -> str:
        return f"with an axis {self.axis}"

"""Algebra, relational: kernels: functions of arrays, and their properties.

The rules of the implementation algebra ask for properties, not for names: with what a kernel of one array commutes,
whether a kernel of two arrays is associative, how large results are.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from sparseeinsum.algebra.relational.laws import is_foldable, law_of, laws_of, laws_of_aggregate
from sparseeinsum.errors import AlgebraError
from sparseeinsum.language.eingraph import EinSum, Reference, write_einsum
from sparseeinsum.language.scalar import (
    PRODUCT,
    axis_bounds_of,
    count_operations,
    evaluate,
    functions_of,
    operands_of,
    write,
)
from sparseeinsum.operators.dtypes import Array
from sparseeinsum.operators.expressions import Call, Operand, Scalar
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.records import Law
from sparseeinsum.presentation.spelling import did_you_mean
from sparseeinsum.semantics.dense import evaluate_einsum

ArrayBound: TypeAlias = tuple[int, ...]

NAMES = ("u", "v")


class Kernel(ABC):
    """A function of one or two arrays that makes one array, or several of the same bound."""

    __slots__ = ()

    @property
    @abstractmethod
    def operands(self) -> int:
        """The number of arrays that it takes."""

    @abstractmethod
    def bound(self, *bounds: ArrayBound) -> ArrayBound:
        """The bound of the results, from those of the operands.

        Raises:
            AlgebraError: The kernel takes no arrays of these bounds.
        """

    @abstractmethod
    def apply(self, *arrays: Array) -> Array:
        """The result; if it makes several, the first."""

    @abstractmethod
    def operations(self, *bounds: ArrayBound) -> float:
        """The number of scalar operations on arrays of these bounds."""

    @property
    def copies(self) -> int:
        """The most arrays that it makes of one."""
        return 1

    @property
    def is_single(self) -> bool:
        """Whether it makes one array by definition, and not several, which may happen to be one."""
        return True

    @property
    def functions(self) -> frozenset[str]:
        """The names of the scalar functions that it calls."""
        return frozenset()

    def outputs(self, array: Array) -> list[Array]:
        """All arrays that it makes of one."""
        return [self.apply(array)]

    def output_bounds(self, bound: ArrayBound) -> list[ArrayBound]:
        """The bounds of all arrays that it makes of one."""
        return [self.bound(bound)] * self.copies

    @property
    def commutes_with(self) -> frozenset[Law]:
        """For a kernel f of one array: the laws of the functions g with f(g(u, v)) = g(f(u), f(v))."""
        return frozenset()

    @property
    def law(self) -> Law | None:
        """The law with which a kernel of one array must commute to be moved through this kernel of two, or None."""
        return None

    @property
    def is_foldable(self) -> bool:
        """Whether a kernel of two arrays is associative and commutative, so that it can fold a group in any order."""
        return False

    @property
    def is_identity(self) -> bool:
        """Whether it returns the array that it takes."""
        return False

    def check(self, *bounds: ArrayBound) -> None:
        """Raise an error if the number of arrays is not the number that it takes."""
        if len(bounds) != self.operands:
            raise AlgebraError(f"the kernel {self} takes {self.operands} arrays, and is given {len(bounds)}")


class HasLaw(Protocol):
    """A kernel of two arrays, or a fold."""

    @property
    def law(self) -> Law | None:
        """The law with which a kernel of one array must commute to be moved through it; None if none can be."""


def commutes(mapping: Kernel, combination: HasLaw) -> bool:
    """Whether a kernel of one array can be moved through a kernel of two or a fold: f(g(u, v)) = g(f(u), f(v))."""
    return combination.law is not None and combination.law in mapping.commutes_with


@dataclass(frozen=True, slots=True)
class Elementwise(Kernel):
    """A scalar expression, applied element by element to arrays of one bound.

    Attributes:
        expression: The expression, of one operand or two.
    """

    expression: Scalar

    def __post_init__(self) -> None:
        if operands_of(self.expression) not in ({0}, {0, 1}):
            raise AlgebraError(f"{write(self.expression)} is no expression of u, or of u and v")

    @property
    def operands(self) -> int:
        """One or two, by the expression."""
        return len(operands_of(self.expression))

    def bound(self, *bounds: ArrayBound) -> ArrayBound:
        """The bound that all arrays have."""
        self.check(*bounds)
        if len(set(bounds)) > 1:
            raise AlgebraError(f"{self} needs arrays of one bound, and they have {' and '.join(map(str, bounds))}")
        return bounds[0]

    def apply(self, *arrays: Array) -> Array:
        """The expression of each element."""
        self.bound(*(array.shape for array in arrays))
        return np.broadcast_to(evaluate(self.expression, arrays), arrays[0].shape)

    @property
    def functions(self) -> frozenset[str]:
        """The functions that the expression calls."""
        return functions_of(self.expression)

    def operations(self, *bounds: ArrayBound) -> float:
        """The operations of the expression, for every element."""
        return count_operations(self.expression) * float(math.prod(bounds[0]))

    @property
    def commutes_with(self) -> frozenset[Law]:
        """What the expression commutes with, if it has one operand."""
        return laws_of(self.expression) if self.operands == 1 else frozenset()

    @property
    def law(self) -> Law | None:
        """The law of the expression, if it has two operands."""
        return law_of(self.expression) if self.operands == 2 else None

    @property
    def is_foldable(self) -> bool:
        """Whether the expression is a sum, a product, or one of max, min, and, or."""
        return self.operands == 2 and is_foldable(self.expression)

    @property
    def is_identity(self) -> bool:
        """Whether the expression is its operand."""
        return self.expression == Operand(0)

    def __str__(self) -> str:
        return write(self.expression, NAMES)


IDENTITY = Elementwise(Operand(0))
ADD = Elementwise(Call("add", (Operand(0), Operand(1))))
MULTIPLY = Elementwise(PRODUCT)
SUBTRACT = Elementwise(Call("sub", (Operand(0), Operand(1))))


@dataclass(frozen=True, slots=True)
class EinSumKernel(Kernel):
    """An EinSum over the labels of one array or two; an operand with a label twice is read along its diagonal.

    Attributes:
        einsum: The EinSum, whose operands are named u and v, and whose output is w.
    """

    einsum: EinSum

    @property
    def operands(self) -> int:
        """The number of operands of the EinSum."""
        return len(self.einsum.operands)

    def bound(self, *bounds: ArrayBound) -> ArrayBound:
        """The bounds of the labels of the output."""
        sizes = self._sizes(*bounds)
        return tuple(sizes[label] for label in self.einsum.output.labels)

    def _sizes(self, *bounds: ArrayBound) -> dict[str, int]:
        self.check(*bounds)
        sizes: dict[str, int] = {}
        for operand, bound in zip(self.einsum.operands, bounds, strict=True):
            if len(bound) != len(operand.labels):
                raise AlgebraError(f"{self}: {operand.tensor} has {len(operand.labels)} labels, and an array {bound}")
            for label, size in zip(operand.labels, bound, strict=True):
                if sizes.setdefault(label, size) != size:
                    raise AlgebraError(f"{self}: the label {label} has {sizes[label]} indices, and {size}")
        return sizes

    def apply(self, *arrays: Array) -> Array:
        """The result by the definition of an EinSum."""
        self._sizes(*(array.shape for array in arrays))
        return evaluate_einsum(self.einsum, dict(zip(NAMES, arrays, strict=False)))

    @property
    def functions(self) -> frozenset[str]:
        """The functions that the join expression calls."""
        return functions_of(self.einsum.join)

    def operations(self, *bounds: ArrayBound) -> float:
        """The operations of the join expression and of the aggregate, for every index of all labels."""
        per_index = count_operations(self.einsum.join) + (self.einsum.aggregate is not None)
        return per_index * float(math.prod(self._sizes(*bounds).values()))

    @property
    def commutes_with(self) -> frozenset[Law]:
        """The laws with which both the join expression and the aggregate commute, for one array."""
        if self.operands == 2:
            return frozenset()
        return laws_of(self.einsum.join) & laws_of_aggregate(self.einsum.aggregate)

    def __str__(self) -> str:
        return write_einsum(self.einsum, {})


def kernel_of(einsum: EinSum) -> Elementwise | EinSumKernel:
    """The kernel of an EinSum; one of elements at the same place is elementwise, so that it has a law, at any rank."""
    is_aligned = einsum.along is None and all(operand.labels == einsum.output.labels for operand in einsum.operands)
    return Elementwise(einsum.join) if is_aligned and not any(axis_bounds_of(einsum.join)) else EinSumKernel(einsum)


def einsum_kernel(spec: str, join: Scalar | None = None, aggregate: str | None = None) -> Elementwise | EinSumKernel:
    """The kernel of a specification in single letters, such as `ij,jk->ik`.

    Args:
        spec: The labels of the operands and of the result.
        join: The scalar expression of the operands; by default their product, or the operand.
        aggregate: The aggregate over the labels that the result lacks; by default their sum.

    >>> str(einsum_kernel("ij,jk->ik"))
    'w[i, k] = sum(u[i, j] * v[j, k])'
    """
    inputs, arrow, output = spec.replace(" ", "").partition("->")
    operands = tuple(Reference(name, tuple(labels)) for name, labels in zip(NAMES, inputs.split(","), strict=False))
    labels = {label for operand in operands for label in operand.labels}
    if not arrow or inputs.count(",") > 1 or not set(output) <= labels or len(set(output)) < len(output):
        raise AlgebraError(f"{spec!r} specifies no kernel; write the labels of one or two arrays, as in 'ij,jk->ik'")
    expression = join if join is not None else (PRODUCT if len(operands) == 2 else Operand(0))
    fold = (aggregate or "sum") if labels != set(output) else None
    return kernel_of(EinSum(Reference("w", tuple(output)), operands, expression, fold))


MATRIX_PRODUCT = einsum_kernel("ij,jk->ik")


def elementwise(name: str, operands: int, others: Iterable[str] = ()) -> Elementwise:
    """The kernel that applies a function of programs element by element.

    Args:
        name: The name of the function.
        operands: The number of arrays.
        others: Names of other kernels, for the hint in an error.

    Raises:
        AlgebraError: Programs have no such function of so many numbers.
    """
    names = [function.name for function in FUNCTIONS.values() if function.operands == operands]
    if name not in names:
        raise AlgebraError(
            f"a kernel is an EinSum, as in 'w[i] = 2 * u[i]', or the name of a function of {operands} operands, which "
            f"{name!r} is not; {did_you_mean(name, (*names, *others))}"
        )
    return Elementwise(Call(name, tuple(map(Operand, range(operands)))))

"""Algebra, relational: kernels: functions of arrays, and what rules need to know of them.

Rules ask for properties, not for names: what a kernel of one array commutes with, whether one of two arrays is
associative, how large results are.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sparseeinsum.algebra.relational.laws import law_of, laws_of
from sparseeinsum.errors import AlgebraError
from sparseeinsum.language.eingraph import EinSum, Reference, write_einsum
from sparseeinsum.language.scalar import PRODUCT, count_operations, evaluate, operands_of, write
from sparseeinsum.operators.dtypes import Array
from sparseeinsum.operators.expressions import Call, Operand, Scalar
from sparseeinsum.operators.records import Law
from sparseeinsum.semantics.dense import evaluate_einsum

Bound: TypeAlias = tuple[int, ...]

NAMES = ("u", "v")


class Kernel(ABC):
    """A function of one or two arrays that makes one or more arrays of the same bound."""

    __slots__ = ()

    @property
    @abstractmethod
    def operands(self) -> int:
        """Arrays that it takes."""

    @abstractmethod
    def bound(self, *bounds: Bound) -> Bound:
        """Bound of the results.

        Raises:
            AlgebraError: It takes no arrays of these bounds.
        """

    @abstractmethod
    def apply(self, *arrays: Array) -> Array:
        """The result; the first one of several."""

    @abstractmethod
    def operations(self, *bounds: Bound) -> float:
        """Scalar operations on arrays of these bounds."""

    @property
    def copies(self) -> int:
        """Arrays that it makes at most."""
        return 1

    @property
    def is_single(self) -> bool:
        """Whether it is a function to one array, not to several, of which there may be one by chance."""
        return True

    def outputs(self, array: Array) -> list[Array]:
        """All arrays that it makes of one."""
        return [self.apply(array)]

    def output_bounds(self, bound: Bound) -> list[Bound]:
        """Bounds of all arrays that it makes of one."""
        return [self.bound(bound)] * self.copies

    @property
    def commutes_with(self) -> frozenset[Law]:
        """For a kernel f of one array, laws of those g with f(g(u, v)) = g(f(u), f(v))."""
        return frozenset()

    @property
    def law(self) -> Law | None:
        """For a kernel of two arrays, what a kernel of one must commute with to be moved through it."""
        return None

    @property
    def is_foldable(self) -> bool:
        """Whether a kernel of two arrays is associative and commutative, so that a group of any order can be folded."""
        return False

    @property
    def is_identity(self) -> bool:
        """Whether it gives the array that it takes."""
        return False

    def check(self, *bounds: Bound) -> None:
        """Refuse another number of arrays than it takes."""
        if len(bounds) != self.operands:
            raise AlgebraError(f"the kernel {self} takes {self.operands} arrays, and is given {len(bounds)}")


def commutes(mapping: Kernel, over: Law | None) -> bool:
    """Whether a kernel of one array can be moved through what has a law."""
    return over is not None and over in mapping.commutes_with


@dataclass(frozen=True, slots=True)
class Elementwise(Kernel):
    """A scalar expression of the elements of arrays of one bound, whatever that is.

    Attributes:
        expression: Of one operand or two.
    """

    expression: Scalar

    def __post_init__(self) -> None:
        if operands_of(self.expression) not in ({0}, {0, 1}):
            raise AlgebraError(f"{write(self.expression)} is no expression of u, or of u and v")

    @property
    def operands(self) -> int:
        """One or two."""
        return len(operands_of(self.expression))

    def bound(self, *bounds: Bound) -> Bound:
        """The one that all have."""
        self.check(*bounds)
        if len(set(bounds)) > 1:
            raise AlgebraError(f"{self} needs arrays of one bound, and they have {' and '.join(map(str, bounds))}")
        return bounds[0]

    def apply(self, *arrays: Array) -> Array:
        """Element by element."""
        self.bound(*(array.shape for array in arrays))
        return np.broadcast_to(evaluate(self.expression, arrays), arrays[0].shape)

    def operations(self, *bounds: Bound) -> float:
        """Of the expression, for every element."""
        return count_operations(self.expression) * float(math.prod(bounds[0]))

    @property
    def commutes_with(self) -> frozenset[Law]:
        """What the expression, of one operand, commutes with."""
        return laws_of(self.expression) if self.operands == 1 else frozenset()

    @property
    def law(self) -> Law | None:
        """Of the expression of two."""
        return law_of(self.expression) if self.operands == 2 else None

    @property
    def is_foldable(self) -> bool:
        """Whether the expression is a sum, a product, or one of max, min, and, or."""
        return self.operands == 2 and law_of(self.expression) in (Law.SUM, Law.PRODUCT, Law.ORDER, Law.TRUTH)

    @property
    def is_identity(self) -> bool:
        """Whether the expression is the operand."""
        return self.expression == Operand(0)

    def __str__(self) -> str:
        return write(self.expression, NAMES)


IDENTITY = Elementwise(Operand(0))
ADD = Elementwise(Call("add", (Operand(0), Operand(1))))
MULTIPLY = Elementwise(PRODUCT)
SUBTRACT = Elementwise(Call("sub", (Operand(0), Operand(1))))


@dataclass(frozen=True, slots=True)
class EinSumKernel(Kernel):
    """An EinSum over the labels of one array or two; a label that an operand has twice walks its diagonal.

    Attributes:
        einsum: Of operands that are named u and v, into w.
    """

    einsum: EinSum

    @property
    def operands(self) -> int:
        """One or two."""
        return len(self.einsum.operands)

    def bound(self, *bounds: Bound) -> Bound:
        """Those of the output's labels."""
        sizes = self._sizes(*bounds)
        return tuple(sizes[label] for label in self.einsum.output.labels)

    def _sizes(self, *bounds: Bound) -> dict[str, int]:
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
        """As the definition of an EinSum says."""
        self._sizes(*(array.shape for array in arrays))
        return evaluate_einsum(self.einsum, dict(zip(NAMES, arrays, strict=False)))

    def operations(self, *bounds: Bound) -> float:
        """Of the expression and the aggregate, for every index of all labels."""
        each = count_operations(self.einsum.join) + (self.einsum.aggregate is not None)
        return each * float(math.prod(self._sizes(*bounds).values()))

    @property
    def commutes_with(self) -> frozenset[Law]:
        """Everything, if it only moves elements; sums, if it is linear."""
        if self.operands == 2:
            return frozenset()
        if self.einsum.aggregate is None:
            return laws_of(self.einsum.join)
        return laws_of(self.einsum.join) & {Law.SUM} if self.einsum.aggregate == "sum" else frozenset()

    @property
    def is_identity(self) -> bool:
        """Whether it copies one operand, axis by axis."""
        einsum = self.einsum
        is_moved = einsum.along is None and einsum.join == Operand(0)
        is_copy = is_moved and einsum.operands[0].labels == einsum.output.labels
        return is_copy and len(set(einsum.output.labels)) == len(einsum.output.labels)

    def __str__(self) -> str:
        return write_einsum(self.einsum, {})


def einsum_kernel(spec: str, join: Scalar | None = None, aggregate: str | None = None) -> EinSumKernel:
    """The kernel of a specification in single letters, as in `ij,jk->ik`.

    Args:
        spec: Labels of the operands and of the result.
        join: Of the operands; by default their product, or the operand.
        aggregate: Over the labels that the result lacks; by default their sum.

    >>> str(einsum_kernel("ij,jk->ik"))
    'w[i, k] = sum(u[i, j] * v[j, k])'
    """
    given, arrow, kept = spec.replace(" ", "").partition("->")
    operands = tuple(Reference(name, tuple(labels)) for name, labels in zip(NAMES, given.split(","), strict=False))
    known = {label for operand in operands for label in operand.labels}
    if not arrow or given.count(",") > 1 or not set(kept) <= known or len(set(kept)) < len(kept):
        raise AlgebraError(f"{spec!r} specifies no kernel; write the labels of one or two arrays, as in 'ij,jk->ik'")
    expression = join if join is not None else (PRODUCT if len(operands) == 2 else Operand(0))
    folded = (aggregate or "sum") if known != set(kept) else None
    return EinSumKernel(EinSum(Reference("w", tuple(kept)), operands, expression, folded))


MATRIX_PRODUCT = einsum_kernel("ij,jk->ik")


@dataclass(frozen=True, slots=True)
class PythonKernel(Kernel):
    """A function of the user's, with what it is declared to be; nothing of that is checked but bounds.

    Attributes:
        name: That plans show.
        function: Of numpy arrays.
        result: Bound of the result, from those of the operands.
        operands: One or two.
        laws: What it commutes with, if it has one operand.
        own_law: What a kernel of one operand must commute with, if it has two; None where none can be moved through it.
        is_foldable: Whether it is associative and commutative, if it has two.
        work: Scalar operations, from the bounds of the operands; by default one for each element read.
    """

    name: str
    function: Callable[..., Array]
    result: Callable[..., Bound]
    operands: int = 1
    laws: frozenset[Law] = frozenset()
    own_law: Law | None = None
    is_foldable: bool = False
    work: Callable[..., float] | None = None

    def bound(self, *bounds: Bound) -> Bound:
        """As declared."""
        self.check(*bounds)
        return self.result(*bounds)

    def apply(self, *arrays: Array) -> Array:
        """What the function returns."""
        found = np.asarray(self.function(*arrays))
        declared = self.bound(*(array.shape for array in arrays))
        if found.shape != declared:
            raise AlgebraError(f"{self.name} returned an array of shape {found.shape}; it is declared to be {declared}")
        return found

    def operations(self, *bounds: Bound) -> float:
        """As declared."""
        return self.work(*bounds) if self.work is not None else float(sum(map(math.prod, bounds)))

    @property
    def commutes_with(self) -> frozenset[Law]:
        """As declared."""
        return self.laws

    @property
    def law(self) -> Law | None:
        """As declared."""
        return self.own_law

    def __str__(self) -> str:
        return self.name


def as_kernel(value: Kernel | str, operands: int) -> Kernel:
    """A kernel, or the elementwise one of a function that programs have: `add`, `relu`.

    Raises:
        AlgebraError: It is none, or takes another number of arrays.
    """
    kernel = value if isinstance(value, Kernel) else elementwise(value, operands)
    if kernel.operands != operands:
        raise AlgebraError(f"the kernel {kernel} takes {kernel.operands} arrays, where {operands} are given")
    return kernel


def elementwise(name: str, operands: int) -> Elementwise:
    """The kernel of a function of programs, element by element."""
    return Elementwise(Call(name, tuple(map(Operand, range(operands)))))

"""Kernels in Python, for laws that no EinSum has."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sparseeinsum.algebra.relational.kernels import ArrayBound, Kernel
from sparseeinsum.errors import AlgebraError
from sparseeinsum.operators.dtypes import Array
from sparseeinsum.operators.records import Law


@dataclass(frozen=True, slots=True)
class PythonKernel(Kernel):
    """A function in Python, with declared properties; only its bounds are checked.

    Attributes:
        name: The name that plans show.
        function: The function of numpy arrays.
        result: The bound of the result, from those of the operands.
        operands: One or two.
        laws: The laws that it commutes with, if it has one operand.
        own_law: If it has two operands, the law with which a kernel of one must commute to be moved through it, or
            None.
        is_foldable: Whether it is associative and commutative, if it has two operands.
        work: The number of scalar operations, from the bounds of the operands; by default one for each element read.
    """

    name: str
    function: Callable[..., Array]
    result: Callable[..., ArrayBound]
    operands: int = 1
    laws: frozenset[Law] = frozenset()
    own_law: Law | None = None
    is_foldable: bool = False
    work: Callable[..., float] | None = None

    def bound(self, *bounds: ArrayBound) -> ArrayBound:
        """The bound that is declared."""
        self.check(*bounds)
        return self.result(*bounds)

    def apply(self, *arrays: Array) -> Array:
        """The array that the function returns."""
        result = np.asarray(self.function(*arrays))
        declared_bound = self.bound(*(array.shape for array in arrays))
        if result.shape != declared_bound:
            raise AlgebraError(
                f"{self.name} returned an array of shape {result.shape}; it is declared to be {declared_bound}"
            )
        return result

    def operations(self, *bounds: ArrayBound) -> float:
        """The operations that are declared."""
        return self.work(*bounds) if self.work is not None else float(sum(map(math.prod, bounds)))

    @property
    def commutes_with(self) -> frozenset[Law]:
        """The laws that are declared."""
        return self.laws

    @property
    def law(self) -> Law | None:
        """The law that is declared."""
        return self.own_law

    def __str__(self) -> str:
        return self.name

"""Algebra, relational: kernels of whole arrays, such as inverses and sorts, which no scalar expression computes.

A kernel more is a record of ARRAY_KERNELS, and a function of the same name, `tensor_...`, in udfs/functions.toml.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from sparseeinsum.algebra.relational.kernels import ArrayBound, Kernel
from sparseeinsum.errors import AlgebraError
from sparseeinsum.operators.dtypes import Array

SqlArgument: TypeAlias = int | ArrayBound

_LAST_AXIS = -1
_CALL = re.compile(r"\s*(\w+)\s*(?:\((.*)\))?\s*")


@dataclass(frozen=True, slots=True)
class ArrayKernelRecord:
    """A function of an array, and of whole numbers that a kernel fixes.

    Attributes:
        parameters: The names of these numbers, with their defaults; None if there is none.
        bound: The bound of the result, from the bound of the array, which is checked, and the numbers.
        numpy: The result by numpy.
        operations: The number of scalar operations.
        sql: What the SQL function takes after the array.
    """

    parameters: Mapping[str, int | None]
    bound: Callable[..., ArrayBound]
    numpy: Callable[..., Array]
    operations: Callable[..., float]
    sql: Callable[..., tuple[SqlArgument, ...]]


def _axis(bound: ArrayBound, axis: int) -> int:
    """The axis, counted from 0."""
    if not -len(bound) <= axis < len(bound):
        raise AlgebraError(f"arrays of {len(bound)} axes have no axis {axis} to be sorted along")
    return axis % len(bound)


def _sorted_bound(bound: ArrayBound, axis: int) -> ArrayBound:
    _axis(bound, axis)
    return bound


def _sort_operations(bound: ArrayBound, axis: int) -> float:
    return math.prod(bound) * math.log2(max(bound[_axis(bound, axis)], 2))


def _largest_bound(bound: ArrayBound, count: int, axis: int) -> ArrayBound:
    position = _axis(bound, axis)
    if not 0 <= count <= bound[position]:
        raise AlgebraError(f"{count} elements are wanted of an axis of {bound[position]}")
    return (*bound[:position], count, *bound[position + 1 :])


def _largest(array: Array, count: int, axis: int) -> Array:
    descending = np.flip(np.sort(array, axis=axis), axis=axis)
    return np.take(descending, range(count), axis=axis)


def _largest_operations(bound: ArrayBound, count: int, axis: int) -> float:
    return math.prod(bound) * math.log2(max(count, 2))


def _square_bound(bound: ArrayBound) -> ArrayBound:
    if len(bound) < 2 or bound[-1] != bound[-2]:
        raise AlgebraError(f"a matrix that is inverted is square, and arrays have the bound {list(bound)}")
    return bound


def _inverse(array: Array) -> Array:
    try:
        return np.linalg.inv(array)
    except np.linalg.LinAlgError as error:
        raise AlgebraError("a matrix has no inverse: its columns depend on each other") from error


ARRAY_KERNELS: Mapping[str, ArrayKernelRecord] = MappingProxyType(
    {
        "inverse": ArrayKernelRecord(
            {}, _square_bound, _inverse, lambda bound: 2.0 * math.prod(bound) * bound[-1], lambda bound: (bound,)
        ),
        "sort": ArrayKernelRecord(
            {"axis": _LAST_AXIS},
            _sorted_bound,
            lambda array, axis: np.sort(array, axis=axis),
            _sort_operations,
            lambda bound, axis: (_axis(bound, axis), bound),
        ),
        "largest": ArrayKernelRecord(
            {"count": None, "axis": _LAST_AXIS},
            _largest_bound,
            _largest,
            _largest_operations,
            lambda bound, count, axis: (_axis(bound, axis), bound, count),
        ),
    }
)


@dataclass(frozen=True, slots=True)
class ArrayKernel(Kernel):
    """A function of whole arrays.

    Attributes:
        name: One of ARRAY_KERNELS.
        arguments: The numbers that it takes beside the array.
    """

    name: str
    arguments: tuple[int, ...]

    @property
    def _function(self) -> ArrayKernelRecord:
        return ARRAY_KERNELS[self.name]

    @property
    def operands(self) -> int:
        """One: it takes a single array."""
        return 1

    def bound(self, *bounds: ArrayBound) -> ArrayBound:
        """The bound of the function's result."""
        self.check(*bounds)
        return self._function.bound(bounds[0], *self.arguments)

    def apply(self, *arrays: Array) -> Array:
        """Return what numpy computes of the only array, whose shape is checked first."""
        self.bound(*(array.shape for array in arrays))
        return self._function.numpy(arrays[0], *self.arguments)

    def operations(self, *bounds: ArrayBound) -> float:
        """The operations of the function."""
        return self._function.operations(bounds[0], *self.arguments)

    def sql_arguments(self, bound: ArrayBound) -> tuple[SqlArgument, ...]:
        """What the SQL function takes after an array of this bound."""
        return self._function.sql(bound, *self.arguments)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.arguments))})" if self.arguments else self.name


def array_kernel(text: str) -> ArrayKernel | None:
    """The kernel that a call names, such as `inverse`, `sort` or `largest(3, 0)`; None if it names another function.

    Raises:
        AlgebraError: The function takes other arguments.
    """
    call = _CALL.fullmatch(text)
    if call is None or call[1] not in ARRAY_KERNELS:
        return None
    name, parameters = call[1], ARRAY_KERNELS[call[1]].parameters
    try:
        arguments = [int(argument) for argument in call[2].split(",")] if (call[2] or "").strip() else []
    except ValueError:
        arguments = None
    defaults = list(parameters.values())
    if arguments is None or len(arguments) > len(defaults) or None in defaults[len(arguments) :]:
        raise AlgebraError(f"the kernel {text!r} is not {_signature(name)}, whose arguments are whole numbers")
    return ArrayKernel(name, (*arguments, *(value for value in defaults[len(arguments) :] if value is not None)))


def _signature(name: str) -> str:
    parameters = ARRAY_KERNELS[name].parameters.items()
    shown = (parameter if default is None else f"{parameter}={default}" for parameter, default in parameters)
    return f"{name}({', '.join(shown)})"

"""Language: generated tensors, such as index(k: 10), and the substitution of axis bounds once tensors have shapes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from sparseeinsum.errors import ShapeError
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.operators.dtypes import Array
from sparseeinsum.operators.expressions import AxisBound, Call, Literal, Scalar

# The dtypes of the kinds of generated tensors.
_DTYPES = {"ones": "bool", "index": "int64"}


@dataclass(frozen=True, slots=True)
class GeneratedTensor:
    """A vector whose values follow from its index, so that no database needs to store it.

    Attributes:
        name: A name that no other tensor of the program has.
        kind: `ones`: bool, true at every index, fill false; or `index`: int64, the index itself, fill 0. The index of
            an axis with a dictionary is the position of the key.
        label: The label of its axis.
        bound: The bound of its axis: a number, or an axis of another tensor that has the same bound.
    """

    name: str
    kind: str
    label: str
    bound: int | AxisBound

    def tensor(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """The tensor; `tensors` are those of the program that have shapes already."""
        if isinstance(self.bound, int):
            axis = Axis(self.label, self.bound)
        else:
            axis = replace(axis_of(self.bound, tensors), name=self.label)
        return Tensor(self.name, (axis,), _DTYPES[self.kind], 0)

    def bounding_axes(self) -> Iterator[AxisBound]:
        """The axes of tensors on whose bounds the shape depends."""
        if isinstance(self.bound, AxisBound):
            yield self.bound

    def array(self, tensor: Tensor) -> Array:
        """The values of the tensor that `tensor` returned."""
        return np.ones(tensor.shape, bool) if self.kind == "ones" else np.arange(*tensor.shape)


def axis_of(bound: AxisBound, tensors: Mapping[str, Tensor]) -> Axis:
    """The axis whose bound an expression asks for; `tensors` are those that have shapes.

    Raises:
        ShapeError: The tensor lacks that axis.
    """
    axes = tensors[bound.tensor].axes
    if bound.axis >= len(axes):
        raise ShapeError(
            f"bound({bound.tensor}, {bound.axis}) asks for axis {bound.axis}, but tensor {bound.tensor} has "
            f"{len(axes)}, counted from 0"
        )
    return axes[bound.axis]


def with_axis_bounds(expression: Scalar, tensors: Mapping[str, Tensor]) -> Scalar:
    """The expression with numbers in place of the bounds of tensors' axes.

    Raises:
        ShapeError: A tensor lacks the axis.
    """
    match expression:
        case AxisBound():
            return Literal(axis_of(expression, tensors).bound)
        case Call(function, arguments):
            return Call(function, tuple(with_axis_bounds(argument, tensors) for argument in arguments))
        case _:
            return expression

"""Language: tensors that no user stores, and bounds of other tensors' axes, put in once those have shapes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sparseeinsum.errors import ShapeError
from sparseeinsum.language.tensors import Axis, Tensor
from sparseeinsum.operators.expressions import AxisBound, Call, Literal, Scalar

# Kinds of generated tensors, and the dtype of each.
KINDS = {"ones": "bool", "index": "int64"}


@dataclass(frozen=True, slots=True)
class GeneratedTensor:
    """A vector whose values follow from the index, so that a program reads it though nobody stores it.

    Attributes:
        name: That no tensor of the program has.
        kind: `ones`: bool, true for every index, fill false; `index`: int64, the index itself, fill 0. The index of an
            axis with a dictionary is a position there.
        label: Of its axis.
        bound: Of its axis: a number, or the same as that of an axis of another tensor.
    """

    name: str
    kind: str
    label: str
    bound: int | AxisBound

    def tensor(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """What it is, beside tensors that have shapes."""
        if isinstance(self.bound, int):
            axis = Axis(self.label, self.bound)
        else:
            axis = replace(_axis_of(self.bound, tensors), name=self.label)
        return Tensor(self.name, (axis,), KINDS[self.kind], 0)


def _axis_of(wanted: AxisBound, tensors: Mapping[str, Tensor]) -> Axis:
    """The axis that a bound is asked of.

    Raises:
        ShapeError: The tensor has no such axis.
    """
    axes = tensors[wanted.tensor].axes
    if wanted.axis >= len(axes):
        raise ShapeError(
            f"bound({wanted.tensor}, {wanted.axis}) asks for axis {wanted.axis}, but tensor {wanted.tensor} has "
            f"{len(axes)}, counted from 0"
        )
    return axes[wanted.axis]


def with_axis_bounds(expression: Scalar, tensors: Mapping[str, Tensor]) -> Scalar:
    """The expression with the bounds of other tensors' axes as numbers.

    Raises:
        ShapeError: A tensor has no such axis.
    """
    match expression:
        case AxisBound():
            return Literal(_axis_of(expression, tensors).bound)
        case Call(function, arguments):
            return Call(function, tuple(with_axis_bounds(argument, tensors) for argument in arguments))
        case _:
            return expression

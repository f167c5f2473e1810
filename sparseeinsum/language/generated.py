"""Language: tensors that no user stores, and bounds of other tensors' axes, put in once those have shapes."""

from collections.abc import Mapping
from dataclasses import dataclass

from sparseeinsum.errors import ShapeError
from sparseeinsum.language.scalar import AxisBound, Call, Literal, Scalar
from sparseeinsum.language.tensors import Axis, Tensor

# Kinds of generated tensors, and the dtype of each.
KINDS = {"ones": "bool", "index": "int64"}


@dataclass(frozen=True, slots=True)
class GeneratedTensor:
    """A vector whose values follow from the index, so that a program reads it though nobody stores it.

    Attributes:
        name: That no tensor of the program has.
        kind: `ones`: bool, true for every index, fill false; `index`: int64, the index itself, fill 0.
        label: Of its axis.
        bound: Of its axis: a number, or the same as that of an axis of another tensor.
    """

    name: str
    kind: str
    label: str
    bound: int | AxisBound

    def tensor(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """What it is, beside tensors that have shapes."""
        bound = self.bound if isinstance(self.bound, int) else bound_of_axis(self.bound, tensors)
        return Tensor(self.name, (Axis(self.label, bound),), KINDS[self.kind], 0)


def bound_of_axis(wanted: AxisBound, tensors: Mapping[str, Tensor]) -> int:
    """The bound of an axis.

    Raises:
        ShapeError: The tensor has no such axis.
    """
    shape = tensors[wanted.tensor].shape
    if wanted.axis >= len(shape):
        raise ShapeError(
            f"bound({wanted.tensor}, {wanted.axis}) asks for axis {wanted.axis}, but tensor {wanted.tensor} has "
            f"{len(shape)}, counted from 0"
        )
    return shape[wanted.axis]


def with_axis_bounds(expression: Scalar, tensors: Mapping[str, Tensor]) -> Scalar:
    """The expression with the bounds of other tensors' axes as numbers.

    Raises:
        ShapeError: A tensor has no such axis.
    """
    match expression:
        case AxisBound():
            return Literal(bound_of_axis(expression, tensors))
        case Call(function, arguments):
            return Call(function, tuple(with_axis_bounds(argument, tensors) for argument in arguments))
        case _:
            return expression

"""Operators: scalar expressions: functions, by their names, of operands and numbers."""

from dataclasses import dataclass

from sparseeinsum.operators.dtypes import Number


@dataclass(frozen=True, slots=True)
class Operand:
    """The value of an operand, by its position: 0 is u, 1 is v."""

    index: int


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A number written in the program; as in numpy, a whole one keeps the dtype of an int64 beside it.

    Two are equal if they are of one kind, too: 1, 1.0 and true give results of different dtypes.
    """

    value: Number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and type(other.value) is type(self.value) and other.value == self.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound of a label, a whole number that is known once tensors are: `bound(j)`."""

    label: str


@dataclass(frozen=True, slots=True)
class AxisBound:
    """The bound of an axis of a tensor: `bound(A, 1)`. Binding puts the number in its place."""

    tensor: str
    axis: int


@dataclass(frozen=True, slots=True)
class Call:
    """A function, or an operator by its name in FUNCTIONS, of scalar expressions."""

    function: str
    arguments: tuple["Scalar", ...]


Scalar = Operand | Literal | Bound | AxisBound | Call

U, V = Operand(0), Operand(1)

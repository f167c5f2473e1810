"""Operators: scalar expressions: functions, by name, of operands and numbers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from sparseeinsum.operators.dtypes import Number


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of the expression, by its position: 0 is u, 1 is v."""

    index: int


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A number that is written in the program; as in numpy, an integer does not change the dtype of an int64.

    Two literals are equal only if their types and texts are: 1, 1.0 and true give results of different dtypes, and
    0.0 and -0.0 infinities of different signs.
    """

    value: Number

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal) or type(other.value) is not type(self.value):
            return False
        return repr(other.value) == repr(self.value)

    def __hash__(self) -> int:
        return hash((type(self.value), repr(self.value)))


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound of a label, `bound(j)`: an integer that is known once the tensors are."""

    label: str


@dataclass(frozen=True, slots=True)
class AxisBound:
    """The bound of an axis of a tensor, `bound(A, 1)`. Binding replaces it by the number."""

    tensor: str
    axis: int


@dataclass(frozen=True, slots=True)
class Call:
    """A function of scalar expressions, by its name in FUNCTIONS; operators such as + have names, too."""

    function: str
    arguments: tuple["Scalar", ...]
    _hash: int = field(init=False, repr=False, compare=False)  # of the whole expression, which caches ask for often

    def __post_init__(self) -> None:
        """Hash the expression once."""
        object.__setattr__(self, "_hash", hash((self.function, self.arguments)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type["Call"], tuple[object, ...]]:
        return Call, (self.function, self.arguments)  # hashes of texts differ from process to process


Scalar = Operand | Literal | Bound | AxisBound | Call

U, V = Operand(0), Operand(1)

Term = TypeVar("Term")


def joined_in_halves(terms: Sequence[Term], join: Callable[[Term, Term], Term]) -> Term:
    """One expression of at least one term, which is no deeper than need be.

    >>> joined_in_halves("abcde", "({}{})".format)
    '(((ab)c)(de))'
    """
    if len(terms) == 1:
        return terms[0]
    middle = (len(terms) + 1) // 2
    return join(joined_in_halves(terms[:middle], join), joined_in_halves(terms[middle:], join))

"""Operators: the pairs of an aggregate and a function in which products of sparse matrices are computed."""

from dataclasses import dataclass

from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.expressions import Call, Operand, Scalar
from sparseeinsum.operators.functions import FUNCTIONS


@dataclass(frozen=True, slots=True)
class Semiring:
    """An aggregate of products; no kernel relies on more than that the aggregate is commutative and associative.

    Attributes:
        aggregate: The name of the aggregate.
        function: The name of the function of two numbers that multiplies.
        is_distributive: Whether aggregate(a * x, a * y) = a * aggregate(x, y) for all finite numbers.
    """

    aggregate: str
    function: str
    is_distributive: bool = True

    @property
    def text(self) -> str:
        """How functions of the database call it, such as `sum(u * v)`."""
        symbol = FUNCTIONS[self.function].symbol
        product = f"u {symbol} v" if symbol else f"{self.function}(u, v)"
        return f"{self.aggregate}({product})"

    def multiplies(self, join: Scalar) -> bool:
        """Whether an expression is its product of two operands."""
        orders = (Operand(0), Operand(1)), (Operand(1), Operand(0))
        return join in [Call(self.function, order) for order in orders]

    def computes(self, aggregate: str | None, join: Scalar) -> bool:
        """Whether it is that aggregate of that expression of two operands."""
        return aggregate == self.aggregate and self.multiplies(join)


SEMIRINGS = (
    Semiring("sum", "mul"),
    Semiring("min", "add"),
    Semiring("max", "add"),
    Semiring("max", "mul", is_distributive=False),
    Semiring("min", "mul", is_distributive=False),
    Semiring("max", "min"),
    Semiring("min", "max"),
    Semiring("any", "and"),
)

assert all(FUNCTIONS[semiring.function].is_commutative for semiring in SEMIRINGS)
assert all(semiring.aggregate in AGGREGATES for semiring in SEMIRINGS)

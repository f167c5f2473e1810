"""Algebra, relational: which scalar functions f commute with which functions g: f(g(a, b)) = g(f(a), f(b)).

The laws hold for real numbers; computed in floating point, both sides differ by rounding.
"""

from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar, U, V
from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.operators.picks import PICKS
from sparseeinsum.operators.records import Law
from sparseeinsum.operators.scans import SCANS

EVERYTHING = frozenset(Law)


def law_of(expression: Scalar) -> Law:
    """The law of an expression of two operands."""
    match expression:
        case Call(function, (first, second)) if {first, second} == {U, V}:
            return FUNCTIONS[function].law
        case _:
            return Law.ANY


def is_foldable(expression: Scalar) -> bool:
    """Whether an expression of two operands is associative and commutative: a sum, a product, max, min, and, or."""
    match expression:
        case Call(function, _) if law_of(expression) != Law.ANY:
            return FUNCTIONS[function].is_commutative
        case _:
            return False


def laws_of_aggregate(name: str | None) -> frozenset[Law]:
    """The laws of all functions with which an aggregate, a scan or a pick of the elements of an array commutes."""
    if name is None or name in PICKS:
        return EVERYTHING
    aggregate = SCANS[name].aggregate if name in SCANS else name
    law = FUNCTIONS[AGGREGATES[aggregate].combine].law
    return frozenset((law,)) & {Law.SUM, Law.PRODUCT}  # a maximum does not commute with min, which has the same law


def laws_of(expression: Scalar) -> frozenset[Law]:
    """The laws of all functions with which an expression of one operand commutes."""
    if expression == U:
        return EVERYTHING
    tests = ((Law.SUM, _is_additive), (Law.PRODUCT, _is_multiplicative), (Law.ORDER, _is_increasing))
    return frozenset(law for law, test in tests if test(expression))


def _is_additive(expression: Scalar) -> bool:
    match expression:
        case Operand():
            return True
        case Call(function, (part,)) if Law.SUM in FUNCTIONS[function].preserves:
            return _is_additive(part)
        case Call("add" | "sub", (first, second)):
            return _is_additive(first) and _is_additive(second)
        case Call("mul", (Literal(), part)) | Call("mul" | "div", (part, Literal())):
            return _is_additive(part)
        case _:
            return False


def _is_multiplicative(expression: Scalar) -> bool:
    match expression:
        case Operand():
            return True
        case Call(function, (part,)) if Law.PRODUCT in FUNCTIONS[function].preserves:
            return _is_multiplicative(part)
        case Call("pow", (part, Literal(exponent))):
            return isinstance(exponent, int) and exponent >= 1 and _is_multiplicative(part)
        case Call("mul", (first, second)):
            return _is_multiplicative(first) and _is_multiplicative(second)
        case _:
            return False


def _is_increasing(expression: Scalar) -> bool:
    match expression:
        case Operand():
            return True
        case Literal(value):
            return not isinstance(value, complex)
        case Call(function, (part,)) if FUNCTIONS[function].is_increasing:
            return _is_increasing(part)
        case Call("add", (first, second)):
            return _is_increasing(first) and _is_increasing(second)
        case Call("sub", (part, Literal(value))):
            return not isinstance(value, complex) and _is_increasing(part)
        case Call("pow", (part, Literal(exponent))):
            return isinstance(exponent, int) and exponent % 2 == 1 and exponent > 0 and _is_increasing(part)
        case Call("mul" | "div", (part, Literal(value))) | Call("mul", (Literal(value), part)):
            return not isinstance(value, complex) and value > 0 and _is_increasing(part)
        case _:
            return False

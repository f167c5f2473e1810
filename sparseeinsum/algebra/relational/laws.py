"""Algebra, relational: which functions of numbers can be moved through which others: f(g(a, b)) = g(f(a), f(b)).

Of real numbers; computed in floating point, both sides differ by rounding.
"""

from enum import StrEnum

from sparseeinsum.language.scalar import Call, Literal, Operand, Scalar


class Law(StrEnum):
    """What a function g of two numbers is, as far as a function f of one must respect it to be moved through it."""

    SUM = "sum"  # f must be additive
    PRODUCT = "product"  # f must be multiplicative
    ORDER = "order"  # g is max or min: f must not decrease
    TRUTH = "truth"  # g is and, or: of 0 and 1
    ANY = "any"  # g goes element by element: f must only move elements


EVERYTHING = frozenset(Law)

_LAWS = {
    "add": Law.SUM,
    "mul": Law.PRODUCT,
    "max": Law.ORDER,
    "min": Law.ORDER,
    "and": Law.TRUTH,
    "or": Law.TRUTH,
}
_INCREASING = frozenset(("exp", "relu", "sigmoid", "tanh", "sign"))  # sqrt and log give NaN, which max keeps
_U, _V = Operand(0), Operand(1)


def law_of(expression: Scalar) -> Law:
    """Of an expression of two operands."""
    match expression:
        case Call(function, (first, second)) if {first, second} == {_U, _V} and function in _LAWS:
            return _LAWS[function]
        case _:
            return Law.ANY


def laws_of(expression: Scalar) -> frozenset[Law]:
    """What an expression of one operand commutes with."""
    if expression == _U:
        return EVERYTHING
    tests = ((Law.SUM, _is_additive), (Law.PRODUCT, _is_multiplicative), (Law.ORDER, _is_increasing))
    return frozenset(law for law, test in tests if test(expression))


def _is_additive(expression: Scalar) -> bool:
    match expression:
        case Operand():
            return True
        case Call("neg" | "conj", (part,)):
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
        case Call("abs" | "conj", (part,)):
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
        case Call(function, (part,)) if function in _INCREASING:
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

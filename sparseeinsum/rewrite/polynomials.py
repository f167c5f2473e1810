"""Rewriting: expressions of two operands as polynomials with exact coefficients."""

from fractions import Fraction

from sparseeinsum.operators.dtypes import Number
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar

# Coefficients by the powers of u and v.
OperandPolynomial = dict[tuple[int, int], Fraction]

_MOST_DEGREE = 4  # of either operand


def polynomial_of(expression: Scalar) -> OperandPolynomial | None:
    """The polynomial of u = Operand(0) and v = Operand(1) that an expression equals; None if none of low degree."""
    match expression:
        case Operand(index):
            return {(1, 0) if index == 0 else (0, 1): Fraction(1)}
        case Literal(value):
            number = as_fraction(value)
            return None if number is None else {(0, 0): number}
        case Call("neg", (argument,)):
            return _combined("mul", argument, Literal(-1))
        case Call("div", (dividend, Literal(divisor))) if divisor != 0:
            number = as_fraction(divisor)
            polynomial = polynomial_of(dividend)
            return None if number is None or polynomial is None else _product(polynomial, {(0, 0): 1 / number})
        case Call("pow", (base, Literal(exponent))) if exponent in range(_MOST_DEGREE + 1):
            return _power(polynomial_of(base), exponent)
        case Call("add" | "sub" | "mul" as function, (first, second)):
            return _combined(function, first, second)
        case _:
            return None


def as_fraction(value: Number) -> Fraction | None:
    """The exact value of a finite real number; None for other numbers."""
    if isinstance(value, complex):
        return as_fraction(value.real) if value.imag == 0 else None
    try:
        return Fraction(value)
    except (ValueError, OverflowError):
        return None


def _combined(function: str, first: Scalar, second: Scalar) -> OperandPolynomial | None:
    left, right = polynomial_of(first), polynomial_of(second)
    if left is None or right is None:
        return None
    if function == "mul":
        return _product(left, right)
    sign = -1 if function == "sub" else 1
    powers = left.keys() | right.keys()
    return {power: left.get(power, Fraction(0)) + sign * right.get(power, Fraction(0)) for power in powers}


def _product(left: OperandPolynomial, right: OperandPolynomial) -> OperandPolynomial | None:
    product: OperandPolynomial = {}
    for (i, j), first in left.items():
        for (k, n), second in right.items():
            product[i + k, j + n] = product.get((i + k, j + n), Fraction(0)) + first * second
    return product if all(max(powers) <= _MOST_DEGREE for powers in product) else None


def _power(base: OperandPolynomial | None, exponent: Number) -> OperandPolynomial | None:
    result: OperandPolynomial | None = {(0, 0): Fraction(1)}
    for _ in range(int(exponent.real)):
        result = None if base is None or result is None else _product(result, base)
    return result if base is not None else None


def split_by_operands(
    polynomial: OperandPolynomial, fills: tuple[Fraction, Fraction]
) -> "tuple[OperandPolynomial, OperandPolynomial, OperandPolynomial]":
    """A polynomial in terms of u^i - fu^i and v^j - fv^j: the terms of both, of u alone, and of v alone.

    The constant is left out. The part of u^i v^j that depends on both operands is (u^i - fu^i)(v^j - fv^j), which is 0
    where either operand holds its fill.
    """
    fill_u, fill_v = fills
    of_both = {powers: factor for powers, factor in polynomial.items() if all(powers) and factor}
    of_u, of_v = OperandPolynomial(), OperandPolynomial()
    for (i, j), factor in polynomial.items():
        if i:
            of_u[i, 0] = of_u.get((i, 0), Fraction(0)) + factor * fill_v**j
        if j:
            of_v[0, j] = of_v.get((0, j), Fraction(0)) + factor * fill_u**i
    return of_both, _nonzero(of_u), _nonzero(of_v)


def _nonzero(polynomial: OperandPolynomial) -> OperandPolynomial:
    return {powers: factor for powers, factor in polynomial.items() if factor}


def polynomial_expression(polynomial: OperandPolynomial, fills: tuple[Fraction, Fraction], is_integer: bool) -> Scalar:
    """A sum of products of u^i - fu^i and v^j - fv^j as an expression.

    Args:
        polynomial: The coefficients, none of them 0.
        fills: The fills of u and v.
        is_integer: Whether the expression is of int64, so that all numbers are integers.
    """
    total: Scalar | None = None
    for powers, factor in sorted(polynomial.items(), reverse=True):
        sign, size = ("sub" if factor < 0 else "add"), abs(factor)
        term = _term(powers, fills, is_integer)
        if size != 1:
            term = Call("mul", (_literal(size, is_integer), term))
        first = Call("neg", (term,)) if factor < 0 else term
        total = first if total is None else Call(sign, (total, term))
    return Literal(0) if total is None else total


def _term(powers: tuple[int, int], fills: tuple[Fraction, Fraction], is_integer: bool) -> Scalar:
    factors: list[Scalar] = []
    for index, (power, fill) in enumerate(zip(powers, fills, strict=True)):
        if power:
            value: Scalar = Operand(index) if power == 1 else Call("pow", (Operand(index), Literal(power)))
            factors.append(Call("sub", (value, _literal(fill**power, is_integer))) if fill else value)
    return factors[0] if len(factors) == 1 else Call("mul", tuple(factors))


def _literal(value: Fraction, is_integer: bool) -> Literal:
    return Literal(int(value) if is_integer else float(value))

"""Rewriting: an expression of two operands in, its coefficients as a polynomial of them out, where it is one."""

from fractions import Fraction

from sparseeinsum.operators.dtypes import Number
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar

# Coefficients by the powers of u and v.
Polynomial = dict[tuple[int, int], Fraction]

_MOST_DEGREE = 4  # of either operand


def polynomial_of(expression: Scalar) -> Polynomial | None:
    """The polynomial that an expression is, exactly; None where it is none, or one of a high degree."""
    match expression:
        case Operand(index):
            return {(1, 0) if index == 0 else (0, 1): Fraction(1)}
        case Literal(value):
            number = as_fraction(value)
            return None if number is None else {(0, 0): number}
        case Call("neg", (argument,)):
            return _of_two("mul", argument, Literal(-1))
        case Call("div", (dividend, Literal(divisor))) if divisor != 0:
            number = as_fraction(divisor)
            found = polynomial_of(dividend)
            return None if number is None or found is None else _product(found, {(0, 0): 1 / number})
        case Call("pow", (base, Literal(exponent))) if exponent in range(_MOST_DEGREE + 1):
            return _power(polynomial_of(base), exponent)
        case Call("add" | "sub" | "mul" as function, (first, second)):
            return _of_two(function, first, second)
        case _:
            return None


def as_fraction(value: Number) -> Fraction | None:
    """A finite real number, exactly; None for others."""
    if isinstance(value, complex):
        return as_fraction(value.real) if value.imag == 0 else None
    try:
        return Fraction(value)
    except (ValueError, OverflowError):
        return None


def _of_two(function: str, first: Scalar, second: Scalar) -> Polynomial | None:
    left, right = polynomial_of(first), polynomial_of(second)
    if left is None or right is None:
        return None
    if function == "mul":
        return _product(left, right)
    sign = -1 if function == "sub" else 1
    powers = left.keys() | right.keys()
    return {each: left.get(each, Fraction(0)) + sign * right.get(each, Fraction(0)) for each in powers}


def _product(left: Polynomial, right: Polynomial) -> Polynomial | None:
    product: Polynomial = {}
    for (i, j), first in left.items():
        for (k, n), second in right.items():
            product[i + k, j + n] = product.get((i + k, j + n), Fraction(0)) + first * second
    return product if all(max(powers) <= _MOST_DEGREE for powers in product) else None


def _power(base: Polynomial | None, exponent: Number) -> Polynomial | None:
    result: Polynomial | None = {(0, 0): Fraction(1)}
    for _ in range(int(exponent.real)):
        result = None if base is None or result is None else _product(result, base)
    return result if base is not None else None


def without_fills(
    polynomial: Polynomial, fills: tuple[Fraction, Fraction]
) -> "tuple[Polynomial, Polynomial, Polynomial]":
    """A polynomial as three of u^i - fu^i and v^j - fv^j: of both, of u alone, of v alone; the constant is left out.

    What is left of u^i v^j after both compensations is (u^i - fu^i)(v^j - fv^j), which is 0 at either fill.
    """
    fill_u, fill_v = fills
    both = {powers: factor for powers, factor in polynomial.items() if all(powers) and factor}
    of_u, of_v = Polynomial(), Polynomial()
    for (i, j), factor in polynomial.items():
        if i:
            of_u[i, 0] = of_u.get((i, 0), Fraction(0)) + factor * fill_v**j
        if j:
            of_v[0, j] = of_v.get((0, j), Fraction(0)) + factor * fill_u**i
    return both, _nonzero(of_u), _nonzero(of_v)


def _nonzero(polynomial: Polynomial) -> Polynomial:
    return {powers: factor for powers, factor in polynomial.items() if factor}


def written(polynomial: Polynomial, fills: tuple[Fraction, Fraction], are_whole: bool) -> Scalar:
    """A sum of products of u^i - fu^i and v^j - fv^j as an expression.

    Args:
        polynomial: Its coefficients, none of them 0.
        fills: The fills of u and v.
        are_whole: Whether all is int64, so that numbers are whole.
    """
    total: Scalar | None = None
    for powers, factor in sorted(polynomial.items(), reverse=True):
        sign, size = ("sub" if factor < 0 else "add"), abs(factor)
        term = _term(powers, fills, are_whole)
        if size != 1:
            term = Call("mul", (_literal(size, are_whole), term))
        first = Call("neg", (term,)) if factor < 0 else term
        total = first if total is None else Call(sign, (total, term))
    return Literal(0) if total is None else total


def _term(powers: tuple[int, int], fills: tuple[Fraction, Fraction], are_whole: bool) -> Scalar:
    factors: list[Scalar] = []
    for index, (power, fill) in enumerate(zip(powers, fills, strict=True)):
        if power:
            value: Scalar = Operand(index) if power == 1 else Call("pow", (Operand(index), Literal(power)))
            factors.append(Call("sub", (value, _literal(fill**power, are_whole))) if fill else value)
    return factors[0] if len(factors) == 1 else Call("mul", tuple(factors))


def _literal(value: Fraction, are_whole: bool) -> Literal:
    return Literal(int(value) if are_whole else float(value))

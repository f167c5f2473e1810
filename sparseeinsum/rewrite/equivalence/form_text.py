"""Rewriting: writes normal forms as text for users, such as 2 * sum[a, b](X[i, a]^2 * Y[a, b])."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import count

from sparseeinsum.rewrite.equivalence.normal_form import (
    ONLY_INDEX,
    AggregateAtom,
    Atom,
    BoundAtom,
    FunctionAtom,
    Monomial,
    Polynomial,
    TensorAtom,
    labels_of,
)


def write_form(polynomial: Polynomial, labels: Sequence[str]) -> str:
    """A normal form as text.

    Args:
        polynomial: The normal form.
        labels: Names of its free labels 0, 1 and so on.
    """
    return _write(polynomial, {str(axis): label for axis, label in enumerate(labels)})


def _write(polynomial: Polynomial, names: Mapping[str, str]) -> str:
    if not polynomial.monomials:
        return "0"
    text = ""
    for monomial in polynomial.monomials:
        sign = "-" if monomial.coefficient < 0 else "+"
        term = _write_monomial(monomial, names)
        if text:
            text += f" {sign} {term}"
        else:
            text = f"-{term}" if sign == "-" else term
    return text


def _write_monomial(monomial: Monomial, names: Mapping[str, str]) -> str:
    unnamed = {**names, **dict.fromkeys(monomial.bound, "")}
    powers = sorted(monomial.powers, key=lambda power: _write_power(power[0], power[1], unnamed))
    order = dict.fromkeys(label for factor, _ in powers for label in _in_order(factor) if label in monomial.bound)
    inner = {**names, **dict(zip(order, _unused(names), strict=False))}
    body = " * ".join(_write_power(factor, exponent, inner) for factor, exponent in powers)
    if monomial.bound:
        body = f"sum[{', '.join(inner[label] for label in order)}]({body})"
    size = abs(monomial.coefficient)
    if not monomial.powers:
        return _write_number(size)
    return body if size == 1 else f"{_write_number(size)} * {body}"


def _in_order(factor: Atom) -> Sequence[str]:
    """The labels of an atom, those of a tensor in its order, others sorted."""
    return factor.labels if isinstance(factor, TensorAtom) else sorted(labels_of(factor))


def _unused(names: Mapping[str, str]) -> Iterator[str]:
    used = set(names.values())
    letters = "abcdefghijklmnopqrstuvwxyz"
    for number in count():
        name = letters[number % 26] + (str(number // 26) if number >= 26 else "")
        if name not in used:
            yield name


def _write_number(number: Fraction) -> str:
    return str(number.numerator) if number.denominator == 1 else f"{float(number):g}"


def _write_power(factor: Atom, exponent: int, names: Mapping[str, str]) -> str:
    text = _write_atom(factor, names)
    return text if exponent == 1 else f"{text}^{exponent}"


def _write_atom(factor: Atom, names: Mapping[str, str]) -> str:
    match factor:
        case TensorAtom(tensor, labels):
            return f"{tensor}[{', '.join('0' if label == ONLY_INDEX else names[label] for label in labels)}]"
        case BoundAtom(position):
            return f"bound({position[0]}, {position[1]})"
        case FunctionAtom(function, arguments):
            inside = ", ".join(_write(argument, names) for argument in arguments)
            return f"{function}({inside})" if arguments else function
        case AggregateAtom(aggregate, labels, body):
            inner = {**names, **dict(zip(sorted(labels), _unused(names), strict=False))}
            return f"{aggregate}[{', '.join(inner[label] for label in sorted(labels))}]({_write(body, inner)})"

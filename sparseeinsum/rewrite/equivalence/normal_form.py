"""Rewriting: sums of monomials, the normal form of expressions of +, * and sums over labels (SPORES, section 2.3).

A monomial is a number times a sum, over labels of its own, of a product of powers of atoms. Everything that is neither
a sum nor a product is an atom: a tensor with labels, a function of normal forms, another aggregate of one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from sparseeinsum.errors import SemanticsError

MOST_MONOMIALS = 4096
"""The most monomials that an expression may have."""

ONLY_INDEX = "@"
"""Replaces a label whose bound is 1, because a sum over it is its only term."""

AxisPosition = tuple[str, int]  # a tensor and the number of one of its axes


@dataclass(frozen=True, slots=True)
class TensorAtom:
    """A factor of a monomial: a tensor, with a label for each of its axes."""

    tensor: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BoundAtom:
    """The unknown bound of an axis, which all axes of its group share."""

    position: AxisPosition


@dataclass(frozen=True, slots=True)
class FunctionAtom:
    """A function other than + and * of normal forms. A literal that is not rational has its text and no arguments."""

    function: str
    arguments: tuple["Polynomial", ...]


@dataclass(frozen=True, slots=True)
class AggregateAtom:
    """An aggregate other than sum over labels of a normal form."""

    aggregate: str
    labels: frozenset[str]
    body: "Polynomial"


Atom = TensorAtom | BoundAtom | FunctionAtom | AggregateAtom


@dataclass(frozen=True, slots=True)
class Monomial:
    """coefficient * sum over `bound` of the product of atoms with their powers; every bound label is in an atom."""

    coefficient: Fraction
    bound: frozenset[str]
    powers: tuple[tuple[Atom, int], ...]


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A sum of monomials; the sum of none is 0."""

    monomials: tuple[Monomial, ...]


def constant(value: Fraction | int) -> Polynomial:
    """The normal form of a number."""
    return Polynomial((Monomial(Fraction(value), frozenset(), ()),) if value else ())


def atom(factor: Atom) -> Polynomial:
    """The normal form of an atom."""
    return Polynomial((Monomial(Fraction(1), frozenset(), ((factor, 1),)),))


def labels_of(part: Atom | Monomial | Polynomial) -> frozenset[str]:
    """The free labels of an atom, a monomial or a polynomial."""
    match part:
        case TensorAtom(_, labels):
            return frozenset(labels) - {ONLY_INDEX}
        case BoundAtom():
            return frozenset()
        case FunctionAtom(_, arguments):
            return frozenset().union(*map(labels_of, arguments))
        case AggregateAtom(_, labels, body):
            return labels_of(body) - labels
        case Monomial(_, bound, powers):
            return frozenset().union(*(labels_of(factor) for factor, _ in powers)) - bound
        case Polynomial(monomials):
            return frozenset().union(*map(labels_of, monomials))


class FreshLabels:
    """Invents labels that no user can write."""

    def __init__(self) -> None:
        self._count = 0

    def new_label(self) -> str:
        """A label that was not returned before."""
        self._count += 1
        return f"#{self._count}"


def add_all(terms: Iterable[Polynomial]) -> Polynomial:
    """The sum of normal forms."""
    return _combine_equal_monomials(monomial for term in terms for monomial in term.monomials)


def scale(polynomial: Polynomial, factor: Fraction) -> Polynomial:
    """A number times a normal form."""
    if not factor:
        return constant(0)
    return Polynomial(
        tuple(replace(monomial, coefficient=monomial.coefficient * factor) for monomial in polynomial.monomials)
    )


def multiply(left: Polynomial, right: Polynomial, fresh: FreshLabels) -> Polynomial:
    """The product: * is distributed over + (rule 1); sums are pulled out, with new labels (rule 3)."""
    _check_size(len(left.monomials) * len(right.monomials))
    return _combine_equal_monomials(_multiply_monomials(u, v, fresh) for u in left.monomials for v in right.monomials)


def power(base: Polynomial, exponent: int, fresh: FreshLabels) -> Polynomial:
    """A normal form to the power of a natural number."""
    result = constant(1)
    for _ in range(exponent):
        result = multiply(result, base, fresh)
    return result


def sum_over(polynomial: Polynomial, labels: Mapping[str, Atom | Fraction], fresh: FreshLabels) -> Polynomial:
    """The sum over labels (rules 2, 4 and 5).

    Args:
        polynomial: What is summed.
        labels: The bound of each label; monomials that lack the label are multiplied by it.
        fresh: Invents the labels that the sums bind.
    """
    return Polynomial(tuple(_sum_monomial_over(monomial, labels, fresh) for monomial in polynomial.monomials))


def rename_labels(polynomial: Polynomial, names: Mapping[str, str], fresh: FreshLabels) -> Polynomial:
    """A normal form with other names of free labels; bound labels get new names."""
    return Polynomial(tuple(_rename_monomial(monomial, names, fresh) for monomial in polynomial.monomials))


def _check_size(monomials: int) -> None:
    if monomials > MOST_MONOMIALS:
        raise SemanticsError(
            f"multiplied out, the expression has more than {MOST_MONOMIALS:,} products, which are too many to compare; "
            "compare parts of it"
        )


def _combine_equal_monomials(monomials: Iterable[Monomial]) -> Polynomial:
    """Monomials with the same atoms become one. Isomorphic ones with other bound labels are not found."""
    by_factors: dict[tuple[frozenset[str], frozenset[tuple[Atom, int]]], Monomial] = {}
    for monomial in monomials:
        key = monomial.bound, frozenset(monomial.powers)
        equal = by_factors.get(key)
        if equal is not None:
            monomial = replace(equal, coefficient=equal.coefficient + monomial.coefficient)
        by_factors[key] = monomial
    terms = tuple(monomial for monomial in by_factors.values() if monomial.coefficient)
    _check_size(len(terms))
    return Polynomial(terms)


def _multiply_monomials(left: Monomial, right: Monomial, fresh: FreshLabels) -> Monomial:
    other = _rename_monomial(right, {}, fresh)
    bound = left.bound | other.bound
    powers = _combine_powers((*left.powers, *other.powers), bound)
    return Monomial(left.coefficient * other.coefficient, bound, powers)


def _combine_powers(powers: Iterable[tuple[Atom, int]], bound: frozenset[str]) -> tuple[tuple[Atom, int], ...]:
    """Equal atoms become one whose power is the sum of theirs.

    An atom of the power 0, as of exp(x) * exp(-x), is dropped unless a sum binds a label of it.
    """
    exponents: dict[Atom, int] = {}
    for factor, exponent in powers:
        exponents[factor] = exponents.get(factor, 0) + exponent
    return tuple((factor, exponent) for factor, exponent in exponents.items() if exponent or labels_of(factor) & bound)


def _sum_monomial_over(monomial: Monomial, labels: Mapping[str, Atom | Fraction], fresh: FreshLabels) -> Monomial:
    free = labels_of(monomial)
    coefficient, bounds = monomial.coefficient, []
    for label in labels.keys() - free:
        bound_of_label = labels[label]
        if isinstance(bound_of_label, Fraction):
            coefficient *= bound_of_label
        else:
            bounds.append((bound_of_label, 1))
    names = {label: fresh.new_label() for label in sorted(labels.keys() & free)}
    named = _rename_monomial(monomial, names, fresh)
    bound = named.bound | frozenset(names.values())
    return Monomial(coefficient, bound, _combine_powers((*named.powers, *bounds), bound))


def _rename_monomial(monomial: Monomial, names: Mapping[str, str], fresh: FreshLabels) -> Monomial:
    inner = {**names, **{label: fresh.new_label() for label in sorted(monomial.bound)}}
    bound = frozenset(inner[label] for label in monomial.bound)
    powers = _combine_powers(
        ((_rename_atom(factor, inner, fresh), exponent) for factor, exponent in monomial.powers), bound
    )
    return Monomial(monomial.coefficient, bound, powers)


def _rename_atom(factor: Atom, names: Mapping[str, str], fresh: FreshLabels) -> Atom:
    match factor:
        case TensorAtom(tensor, labels):
            return TensorAtom(tensor, tuple(names.get(label, label) for label in labels))
        case FunctionAtom(function, arguments):
            return FunctionAtom(function, tuple(rename_labels(argument, names, fresh) for argument in arguments))
        case AggregateAtom(aggregate, labels, body):
            inner = {**names, **{label: fresh.new_label() for label in sorted(labels)}}
            return AggregateAtom(
                aggregate, frozenset(inner[label] for label in labels), rename_labels(body, inner, fresh)
            )
        case BoundAtom():
            return factor

"""Rewriting: sums of monomials, the normal form of expressions of + and * and sums over labels (SPORES, section 2.3).

A monomial is a number times a sum, over labels of its own, of a product of powers of atoms. What is neither a sum nor a
product is an atom: a tensor under labels, a function of normal forms, another aggregate of one.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from sparseeinsum.errors import SemanticsError

MOST_MONOMIALS = 4096
"""Beyond which an expression is refused."""

ONLY_INDEX = "@"
"""In the place of a label of the bound 1, over which a sum is its one term."""

Place = tuple[str, int]  # a tensor, and the position of one of its axes


@dataclass(frozen=True, slots=True)
class Entry:
    """A tensor under labels."""

    tensor: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Extent:
    """How many indices an axis has, and every other axis that shares a label with it."""

    place: Place


@dataclass(frozen=True, slots=True)
class Applied:
    """A function, not + or *, of normal forms; a literal that is no rational number is one of none, by its text."""

    function: str
    arguments: tuple["Polynomial", ...]


@dataclass(frozen=True, slots=True)
class Folded:
    """An aggregate that is no sum, over labels of a normal form."""

    aggregate: str
    labels: frozenset[str]
    body: "Polynomial"


Atom = Entry | Extent | Applied | Folded


@dataclass(frozen=True, slots=True)
class Monomial:
    """coefficient * sum over `bound` of the product of atoms with their powers; every bound label is in an atom."""

    coefficient: Fraction
    bound: frozenset[str]
    powers: tuple[tuple[Atom, int], ...]


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A sum of monomials; none for 0."""

    monomials: tuple[Monomial, ...]


def constant(value: Fraction | int) -> Polynomial:
    """A number."""
    return Polynomial((Monomial(Fraction(value), frozenset(), ()),) if value else ())


def atom(of: Atom) -> Polynomial:
    """An atom alone."""
    return Polynomial((Monomial(Fraction(1), frozenset(), ((of, 1),)),))


def labels_of(part: Atom | Monomial | Polynomial) -> frozenset[str]:
    """Labels that are free in a part."""
    match part:
        case Entry(_, labels):
            return frozenset(labels) - {ONLY_INDEX}
        case Extent():
            return frozenset()
        case Applied(_, arguments):
            return frozenset().union(*map(labels_of, arguments))
        case Folded(_, labels, body):
            return labels_of(body) - labels
        case Monomial(_, bound, powers):
            return frozenset().union(*(labels_of(each) for each, _ in powers)) - bound
        case Polynomial(monomials):
            return frozenset().union(*map(labels_of, monomials))


class FreshLabels:
    """Labels that no user can write, each of them once."""

    def __init__(self) -> None:
        self._count = 0

    def take(self) -> str:
        """The next one."""
        self._count += 1
        return f"#{self._count}"


def total(terms: Iterable[Polynomial]) -> Polynomial:
    """The sum."""
    return _collected_terms(monomial for term in terms for monomial in term.monomials)


def scaled(polynomial: Polynomial, factor: Fraction) -> Polynomial:
    """A number times a normal form."""
    if not factor:
        return constant(0)
    return Polynomial(tuple(replace(each, coefficient=each.coefficient * factor) for each in polynomial.monomials))


def product(left: Polynomial, right: Polynomial, fresh: FreshLabels) -> Polynomial:
    """The product: * over + (rule 1), sums pulled out, their labels renamed (rule 3)."""
    _check_size(len(left.monomials) * len(right.monomials))
    return _collected_terms(_times(u, v, fresh) for u in left.monomials for v in right.monomials)


def power(base: Polynomial, exponent: int, fresh: FreshLabels) -> Polynomial:
    """A normal form times itself so many times."""
    result = constant(1)
    for _ in range(exponent):
        result = product(result, base, fresh)
    return result


def summed(polynomial: Polynomial, labels: Mapping[str, Atom | Fraction], fresh: FreshLabels) -> Polynomial:
    """The sum over labels (rules 2, 4 and 5).

    Args:
        polynomial: What is summed.
        labels: Its extent for every label, by which what lacks the label is multiplied.
        fresh: Names for the labels.
    """
    return Polynomial(tuple(_summed(monomial, labels, fresh) for monomial in polynomial.monomials))


def renamed(polynomial: Polynomial, names: Mapping[str, str], fresh: FreshLabels) -> Polynomial:
    """The same under other labels; those that sums bind get new ones."""
    return Polynomial(tuple(_renamed(monomial, names, fresh) for monomial in polynomial.monomials))


def _check_size(monomials: int) -> None:
    if monomials > MOST_MONOMIALS:
        raise SemanticsError(
            f"multiplied out, the expression has more than {MOST_MONOMIALS:,} products, which are too many to compare; "
            "compare parts of it"
        )


def _collected_terms(monomials: Iterable[Monomial]) -> Polynomial:
    """Monomials of the same atoms as one; others may still be isomorphic."""
    found: dict[tuple[frozenset[str], frozenset[tuple[Atom, int]]], Monomial] = {}
    for monomial in monomials:
        key = monomial.bound, frozenset(monomial.powers)
        same = found.get(key)
        if same is not None:
            monomial = replace(same, coefficient=same.coefficient + monomial.coefficient)
        found[key] = monomial
    terms = tuple(monomial for monomial in found.values() if monomial.coefficient)
    _check_size(len(terms))
    return Polynomial(terms)


def _times(left: Monomial, right: Monomial, fresh: FreshLabels) -> Monomial:
    other = _renamed(right, {}, fresh)
    bound = left.bound | other.bound
    powers = _collected((*left.powers, *other.powers), bound)
    return Monomial(left.coefficient * other.coefficient, bound, powers)


def _collected(powers: Iterable[tuple[Atom, int]], bound: frozenset[str]) -> tuple[tuple[Atom, int], ...]:
    """Equal atoms as one, with the sum of their powers; exp(x) and exp(-x) go, unless a sum binds a label of theirs."""
    exponents: dict[Atom, int] = {}
    for each, exponent in powers:
        exponents[each] = exponents.get(each, 0) + exponent
    return tuple((each, exponent) for each, exponent in exponents.items() if exponent or labels_of(each) & bound)


def _summed(monomial: Monomial, labels: Mapping[str, Atom | Fraction], fresh: FreshLabels) -> Monomial:
    free = labels_of(monomial)
    coefficient, extents = monomial.coefficient, []
    for label in labels.keys() - free:
        extent = labels[label]
        if isinstance(extent, Fraction):
            coefficient *= extent
        else:
            extents.append((extent, 1))
    names = {label: fresh.take() for label in sorted(labels.keys() & free)}
    named = _renamed(monomial, names, fresh)
    bound = named.bound | frozenset(names.values())
    return Monomial(coefficient, bound, _collected((*named.powers, *extents), bound))


def _renamed(monomial: Monomial, names: Mapping[str, str], fresh: FreshLabels) -> Monomial:
    inner = {**names, **{label: fresh.take() for label in sorted(monomial.bound)}}
    bound = frozenset(inner[label] for label in monomial.bound)
    powers = _collected(((_renamed_atom(each, inner, fresh), exponent) for each, exponent in monomial.powers), bound)
    return Monomial(monomial.coefficient, bound, powers)


def _renamed_atom(of: Atom, names: Mapping[str, str], fresh: FreshLabels) -> Atom:
    match of:
        case Entry(tensor, labels):
            return Entry(tensor, tuple(names.get(label, label) for label in labels))
        case Applied(function, arguments):
            return Applied(function, tuple(renamed(argument, names, fresh) for argument in arguments))
        case Folded(aggregate, labels, body):
            inner = {**names, **{label: fresh.take() for label in sorted(labels)}}
            return Folded(aggregate, frozenset(inner[label] for label in labels), renamed(body, inner, fresh))
        case Extent():
            return of


def entries_of(polynomial: Polynomial) -> Iterator[Entry]:
    """All entries of tensors that a normal form is of, those inside functions, too."""
    for monomial in polynomial.monomials:
        for each, _ in monomial.powers:
            match each:
                case Entry():
                    yield each
                case Applied(_, arguments):
                    for argument in arguments:
                        yield from entries_of(argument)
                case Folded(_, _, body):
                    yield from entries_of(body)
                case Extent():
                    pass

"""Rewriting: keys of normal forms, which are equal if the forms are isomorphic (SPORES, appendix A).

Labels that sums bind have no names; a key numbers them. It is the least of the keys of all numberings that are left
after labels were ordered by how they are used.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.rewrite.equivalence.normal_form import (
    AggregateAtom,
    Atom,
    BoundAtom,
    FunctionAtom,
    Monomial,
    Polynomial,
    TensorAtom,
    labels_of,
)

CanonicalKey: TypeAlias = tuple[Any, ...]

_Powers: TypeAlias = tuple[tuple[Atom, int], ...]


def key_of(polynomial: Polynomial, names: Mapping[str, Hashable]) -> CanonicalKey:
    """A key of a normal form, after isomorphic monomials are added up.

    Args:
        polynomial: The normal form.
        names: Names of its free labels.
    """
    coefficients: dict[CanonicalKey, Fraction] = {}
    for monomial in polynomial.monomials:
        key = _key_of_monomial(monomial, names)
        coefficients[key] = coefficients.get(key, Fraction(0)) + monomial.coefficient
    return tuple(sorted((key, value) for key, value in coefficients.items() if value))


def combine_like_terms(polynomial: Polynomial, names: Mapping[str, Hashable]) -> Polynomial:
    """A normal form in which isomorphic monomials are added up, in the order of their keys."""
    by_key: dict[CanonicalKey, Monomial] = {}
    for monomial in polynomial.monomials:
        key = _key_of_monomial(monomial, names)
        isomorphic = by_key.get(key)
        coefficient = monomial.coefficient + (isomorphic.coefficient if isomorphic is not None else 0)
        by_key[key] = Monomial(coefficient, monomial.bound, monomial.powers)
    return Polynomial(tuple(by_key[key] for key in sorted(by_key) if by_key[key].coefficient))


def _key_of_monomial(monomial: Monomial, names: Mapping[str, Hashable]) -> CanonicalKey:
    without_bound: Counter[CanonicalKey] = Counter()
    with_bound: list[tuple[Atom, int]] = []
    for factor, exponent in monomial.powers:
        if labels_of(factor) & monomial.bound:
            with_bound.append((factor, exponent))
        else:
            without_bound[_key_of_atom(factor, names)] += exponent
    components: Counter[CanonicalKey] = Counter(
        _Component(labels, powers, names).key() for labels, powers in _components(monomial.bound, with_bound)
    )
    return tuple(sorted(without_bound.items())), tuple(sorted(components.items()))


def _components(bound: frozenset[str], powers: Iterable[tuple[Atom, int]]) -> Iterator[tuple[frozenset[str], _Powers]]:
    """The connected components of the factors, which are linked by common bound labels; each with its labels."""
    groups: list[tuple[frozenset[str], _Powers]] = []
    for factor, exponent in powers:
        labels = labels_of(factor) & bound
        members: _Powers = ((factor, exponent),)
        linked = [group for group in groups if group[0] & labels]
        for group in linked:
            labels, members = labels | group[0], group[1] + members
            groups.remove(group)
        groups.append((labels, members))
    yield from groups


def _key_of_atom(factor: Atom, names: Mapping[str, Hashable]) -> CanonicalKey:
    match factor:
        case TensorAtom(tensor, labels):
            return "entry", tensor, tuple(_name(label, names) for label in labels)
        case BoundAtom(position):
            return "extent", *position
        case FunctionAtom(function, arguments):
            keys = [key_of(argument, names) for argument in arguments]
            record = FUNCTIONS.get(function)  # None for a literal, which is also written as a function
            return "applied", function, tuple(sorted(keys) if record is not None and record.is_commutative else keys)
        case AggregateAtom(aggregate, labels, body):
            monomial = Monomial(Fraction(1), labels, ((FunctionAtom(aggregate, (body,)), 1),))
            return "folded", _key_of_monomial(monomial, names)


def _name(label: str, names: Mapping[str, Hashable]) -> CanonicalKey:
    """The name of a label; names and numbers are kept apart, because they cannot be compared with each other."""
    name = names.get(label, label)
    return ("", name) if isinstance(name, str) else ("#", name)


@dataclass(frozen=True, slots=True)
class _Component:
    """A component of factors that bound labels link, and which needs a numbering of those labels."""

    labels: frozenset[str]
    powers: _Powers
    names: Mapping[str, Hashable]

    def key(self) -> CanonicalKey:
        """The least key of all numberings of the bound labels."""
        return self._least_key(self._refine_colors(dict.fromkeys(sorted(self.labels), 0)))

    def _least_key(self, colors: Mapping[str, int]) -> CanonicalKey:
        shared = [color for color, count in sorted(Counter(colors.values()).items()) if count > 1]
        if not shared:
            return self._key_with(colors)
        equal_labels = self._without_symmetric([label for label, color in colors.items() if color == shared[0]])
        # Try each of the labels of one color as the first of them; the least key decides.
        choices = ({label: 2 * color + (label != first) for label, color in colors.items()} for first in equal_labels)
        return min(self._least_key(self._refine_colors(choice)) for choice in choices)

    def _without_symmetric(self, labels: list[str]) -> list[str]:
        """Labels of which none can be exchanged with an earlier one without a change; others give the same key."""
        own = self._key_with({label: number for number, label in enumerate(sorted(self.labels))})
        distinct: list[str] = []
        for label in labels:
            if not any(self._key_with(self._swapped(label, other)) == own for other in distinct):
                distinct.append(label)
        return distinct

    def _swapped(self, first: str, second: str) -> dict[str, int]:
        numbers = {label: number for number, label in enumerate(sorted(self.labels))}
        return {**numbers, first: numbers[second], second: numbers[first]}

    def _refine_colors(self, colors: Mapping[str, int]) -> dict[str, int]:
        """Colors that distinguish labels of one color by how they are used, until that changes nothing."""
        current = dict(colors)
        while True:
            uses = {label: (color, self._use(label, current)) for label, color in current.items()}
            order = {use: number for number, use in enumerate(sorted(set(uses.values())))}
            finer = {label: order[use] for label, use in uses.items()}
            if len(set(finer.values())) == len(set(current.values())):
                return finer
            current = finer

    def _use(self, label: str, colors: Mapping[str, int]) -> CanonicalKey:
        marked = {**self.names, **colors, label: -1}
        return tuple(
            sorted(
                (_key_of_atom(factor, marked), exponent)
                for factor, exponent in self.powers
                if label in labels_of(factor)
            )
        )

    def _key_with(self, colors: Mapping[str, int]) -> CanonicalKey:
        factors: Counter[CanonicalKey] = Counter()
        for factor, exponent in self.powers:
            factors[_key_of_atom(factor, {**self.names, **colors})] += exponent
        return tuple(sorted(factors.items()))

"""Rewriting: normal forms in, keys out that are equal where the forms are isomorphic (SPORES, appendix A).

Labels that sums bind have no names: a key numbers them. It is the least of the keys that any order of them gives, among
the orders that how they are used leaves open.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from sparseeinsum.operators.functions import FUNCTIONS
from sparseeinsum.rewrite.equivalence.normal_form import (
    Applied,
    Atom,
    Entry,
    Extent,
    Folded,
    Monomial,
    Polynomial,
    labels_of,
)

Key: TypeAlias = tuple[Any, ...]

_Powers: TypeAlias = tuple[tuple[Atom, int], ...]


def key_of(polynomial: Polynomial, names: Mapping[str, Hashable]) -> Key:
    """A key of a normal form, whose isomorphic monomials are added up.

    Args:
        polynomial: The form.
        names: What free labels are called.
    """
    coefficients: dict[Key, Fraction] = {}
    for monomial in polynomial.monomials:
        key = _key_of_monomial(monomial, names)
        coefficients[key] = coefficients.get(key, Fraction(0)) + monomial.coefficient
    return tuple(sorted((key, value) for key, value in coefficients.items() if value))


def reduced(polynomial: Polynomial, names: Mapping[str, Hashable]) -> Polynomial:
    """A normal form with isomorphic monomials added up, in the order of their keys."""
    found: dict[Key, Monomial] = {}
    for monomial in polynomial.monomials:
        key = _key_of_monomial(monomial, names)
        same = found.get(key)
        coefficient = monomial.coefficient + (same.coefficient if same is not None else 0)
        found[key] = Monomial(coefficient, monomial.bound, monomial.powers)
    return Polynomial(tuple(found[key] for key in sorted(found) if found[key].coefficient))


def _key_of_monomial(monomial: Monomial, names: Mapping[str, Hashable]) -> Key:
    apart: Counter[Key] = Counter()
    linked: list[tuple[Atom, int]] = []
    for each, exponent in monomial.powers:
        if labels_of(each) & monomial.bound:
            linked.append((each, exponent))
        else:
            apart[_key_of_atom(each, names)] += exponent
    components: Counter[Key] = Counter(
        _Component(labels, powers, names).key() for labels, powers in _components(monomial.bound, linked)
    )
    return tuple(sorted(apart.items())), tuple(sorted(components.items()))


def _components(bound: frozenset[str], powers: Iterable[tuple[Atom, int]]) -> Iterator[tuple[frozenset[str], _Powers]]:
    """Factors that bound labels tie together, each group with its labels."""
    groups: list[tuple[frozenset[str], _Powers]] = []
    for each, exponent in powers:
        labels = labels_of(each) & bound
        members: _Powers = ((each, exponent),)
        tied = [group for group in groups if group[0] & labels]
        for group in tied:
            labels, members = labels | group[0], group[1] + members
            groups.remove(group)
        groups.append((labels, members))
    yield from groups


def _key_of_atom(of: Atom, names: Mapping[str, Hashable]) -> Key:
    match of:
        case Entry(tensor, labels):
            return "entry", tensor, tuple(_name(label, names) for label in labels)
        case Extent(place):
            return "extent", *place
        case Applied(function, arguments):
            keys = [key_of(argument, names) for argument in arguments]
            known = FUNCTIONS.get(function)  # literals are written as functions, too
            return "applied", function, tuple(sorted(keys) if known is not None and known.is_commutative else keys)
        case Folded(aggregate, labels, body):
            whole = Monomial(Fraction(1), labels, ((Applied(aggregate, (body,)), 1),))
            return "folded", _key_of_monomial(whole, names)


def _name(label: str, names: Mapping[str, Hashable]) -> Key:
    """What a label is called; of two kinds, so that names and numbers are never compared with each other."""
    name = names.get(label, label)
    return ("", name) if isinstance(name, str) else ("#", name)


@dataclass(frozen=True, slots=True)
class _Component:
    """Factors that bound labels tie together, to be numbered."""

    labels: frozenset[str]
    powers: _Powers
    names: Mapping[str, Hashable]

    def key(self) -> Key:
        """The least key of all numberings."""
        return self._least(self._refined(dict.fromkeys(sorted(self.labels), 0)))

    def _least(self, colors: Mapping[str, int]) -> Key:
        tied = [color for color, count in sorted(Counter(colors.values()).items()) if count > 1]
        if not tied:
            return self._written(colors)
        alike = self._different([label for label, color in colors.items() if color == tied[0]])
        # One of those alike goes first, whichever gives the least key.
        choices = ({label: 2 * color + (label != first) for label, color in colors.items()} for first in alike)
        return min(self._least(self._refined(choice)) for choice in choices)

    def _different(self, alike: list[str]) -> list[str]:
        """Those of some labels that are no mere exchange of one before, which would give the same key."""
        own = self._written({label: number for number, label in enumerate(sorted(self.labels))})
        kept: list[str] = []
        for label in alike:
            if not any(self._written(self._exchanged(label, other)) == own for other in kept):
                kept.append(label)
        return kept

    def _exchanged(self, one: str, other: str) -> dict[str, int]:
        numbers = {label: number for number, label in enumerate(sorted(self.labels))}
        return {**numbers, one: numbers[other], other: numbers[one]}

    def _refined(self, colors: Mapping[str, int]) -> dict[str, int]:
        """Colors that tell labels apart by how they are used, among labels of these colors."""
        known = dict(colors)
        while True:
            uses = {label: (color, self._use(label, known)) for label, color in known.items()}
            order = {use: number for number, use in enumerate(sorted(set(uses.values())))}
            finer = {label: order[use] for label, use in uses.items()}
            if len(set(finer.values())) == len(set(known.values())):
                return finer
            known = finer

    def _use(self, label: str, colors: Mapping[str, int]) -> Key:
        marked = {**self.names, **colors, label: -1}
        return tuple(sorted((_key_of_atom(each, marked), n) for each, n in self.powers if label in labels_of(each)))

    def _written(self, colors: Mapping[str, int]) -> Key:
        factors: Counter[Key] = Counter()
        for each, exponent in self.powers:
            factors[_key_of_atom(each, {**self.names, **colors})] += exponent
        return tuple(sorted(factors.items()))

"""Saturation: EinSums that read one another in, the terms that some of them compute out."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.rewrite.chains import expression_dtype
from sparseeinsum.rewrite.saturation.labels import common_names
from sparseeinsum.rewrite.saturation.terms import (
    Add,
    Apply,
    Fold,
    Leaf,
    Mul,
    Number,
    Sum,
    Term,
    bound_labels,
    children,
    renamed,
)

# Of these, sums and products are the same in any order, but for rounding.
ROUNDED = frozenset(("float64", "float32"))

_MOST_POWER = 3
_MOST_ARGUMENTS = 3


@dataclass(frozen=True, slots=True)
class Root:
    """What one EinSum computes.

    Attributes:
        term: It, under names of labels that all roots share; no two sums in it take the same label.
        labels: Those of its result, by these names.
        output: Its result as it was written.
    """

    term: Term
    labels: tuple[str, ...]
    output: Reference


@dataclass(frozen=True, slots=True)
class Reading:
    """What EinSums compute.

    Attributes:
        roots: Of those that were asked for.
        bounds: Of all labels.
        equal_pairs: Terms that differ in the labels of their sums alone.
    """

    roots: tuple[Root, ...]
    bounds: Mapping[str, int]
    equal_pairs: tuple[tuple[Term, Term], ...]

    @property
    def terms(self) -> list[Term]:
        """The terms of all roots."""
        return [root.term for root in self.roots]

    def same_of(self, root: Root) -> tuple[tuple[Term, Term], ...]:
        """Those terms that are the same as parts of a root."""
        inside: set[Term] = set(_parts_of(root.term))
        found: dict[tuple[Term, Term], None] = {}
        grows = True
        while grows:
            new = [pair for pair in self.equal_pairs if pair not in found and not inside.isdisjoint(pair)]
            inside.update(part for pair in new for term in pair for part in _parts_of(term))
            found |= dict.fromkeys(new)
            grows = bool(new)
        return tuple(found)


def _parts_of(term: Term) -> Iterator[Term]:
    yield term
    for child in children(term):
        yield from _parts_of(child)


def is_readable(einsum: EinSum, graph: EinGraph) -> bool:
    """Whether an EinSum is of real numbers of one dtype throughout, and nothing in it was promoted by hand."""
    dtypes = [graph.tensors[operand.tensor].dtype for operand in einsum.operands]
    one = {*dtypes, graph.tensors[einsum.output.tensor].dtype}
    is_free = not einsum.promoted and einsum.is_rewritable
    return is_free and len(one) == 1 and one <= ROUNDED and _is_of(dtypes[0], einsum.join, dtypes)


def _is_of(dtype: str, expression: Scalar, dtypes: Sequence[str]) -> bool:
    match expression:
        case Literal(value):
            return not isinstance(value, bool | complex) and bool(np.isfinite(value))
        case Call(_, arguments):
            is_small = len(arguments) <= _MOST_ARGUMENTS and all(_is_of(dtype, each, dtypes) for each in arguments)
            return is_small and (_is_number(expression) or expression_dtype(expression, dtypes) == dtype)
        case _:
            return True


def _is_number(expression: Scalar) -> bool:
    match expression:
        case Call(_, arguments):
            return all(map(_is_number, arguments))
        case _:
            return isinstance(expression, Literal)


def read(einsums: Sequence[EinSum], roots: Sequence[EinSum], graph: EinGraph) -> Reading:
    """The terms of some readable EinSums, those before them in their readers; what several read is in each of them.

    Args:
        einsums: In topological order.
        roots: Those whose terms to read.
        graph: Has the tensors.
    """
    reader = _Reader({einsum.output.tensor: einsum for einsum in einsums}, graph, common_names(einsums))
    reader.taken.update(label for root in roots for label in reader.common(root))
    found = tuple(map(reader.root, roots))
    return Reading(found, reader.bounds, tuple(reader.equal_pairs))


@dataclass(slots=True)
class _Reader:
    inside: Mapping[str, EinSum]
    graph: EinGraph
    names: Mapping[tuple[str, str], str]
    bounds: dict[str, int] = field(default_factory=dict)
    equal_pairs: list[tuple[Term, Term]] = field(default_factory=list)
    copies: dict[tuple[str, tuple[str, ...]], list[Term]] = field(default_factory=dict)
    used: dict[tuple[str, tuple[str, ...]], int] = field(default_factory=dict)  # copies, in the current root
    shared: set[str] = field(default_factory=set)  # labels of results that several read
    taken: set[str] = field(default_factory=set)  # labels that sums in terms cannot take

    def __post_init__(self) -> None:
        readers = Counter(operand.tensor for einsum in self.inside.values() for operand in einsum.operands)
        for name, einsum in self.inside.items():
            for label in einsum.labels:
                self.bounds[self.names[name, label]] = self.graph.bound_of(einsum, label)
            if readers[name] > 1:
                self.shared |= {self.names[name, label] for label in einsum.output.labels}
        self.taken |= self.shared

    def root(self, einsum: EinSum) -> Root:
        """What an EinSum computes, on its own."""
        self.used.clear()
        labels = self.common(einsum)
        return Root(self._result(einsum, labels), labels, einsum.output)

    def common(self, einsum: EinSum) -> tuple[str, ...]:
        """The labels of a result, as all roots name them."""
        return tuple(self.names[einsum.output.tensor, label] for label in einsum.output.labels)

    def _result(self, einsum: EinSum, own: tuple[str, ...]) -> Term:
        """What an EinSum computes, the labels of its result under other names.

        What is read again in the same term has sums over other labels, as products of sums are sums of products.
        """
        place = einsum.output.tensor, own
        number = self.used.get(place, 0)
        self.used[place] = number + 1
        copies = self.copies.setdefault(place, [])
        if number == len(copies):
            copies.append(self._again(copies[0]) if copies else self._written_out(einsum, own))
        return copies[number]

    def _written_out(self, einsum: EinSum, own: tuple[str, ...]) -> Term:
        labels = dict(zip(einsum.output.labels, own, strict=True))
        for label in einsum.aggregated:
            labels[label] = self._fresh(self.names[einsum.output.tensor, label], self.graph.bound_of(einsum, label))
        term = self._term(einsum.join, einsum, labels)
        for label in reversed(einsum.aggregated):
            taken = labels[label]
            term = Sum(taken, term) if einsum.aggregate == "sum" else Fold(str(einsum.aggregate), taken, term)
        self._align(einsum, own, labels, term)
        return term

    def _align(self, einsum: EinSum, own: tuple[str, ...], labels: Mapping[str, str], term: Term) -> None:
        """Say the same with the labels of results that others read, too, so that they are seen to be shared."""
        if own != self.common(einsum):
            return
        common = {labels[label]: self.names[einsum.output.tensor, label] for label in einsum.aggregated}
        aligned = {fresh: name for fresh, name in common.items() if name in self.shared}
        if aligned:
            self.equal_pairs.append((term, renamed(term, aligned)))

    def _fresh(self, label: str, bound: int) -> str:
        """A label that no sum takes yet: the one given, or with a number."""
        name, number = label, 1
        while name in self.taken or (number > 1 and name in self.bounds):
            number += 1
            name = f"{label}{number}"
        self.taken.add(name)
        self.bounds[name] = bound
        return name

    def _term(self, expression: Scalar, einsum: EinSum, labels: Mapping[str, str]) -> Term:
        match expression:
            case Operand(index):
                return self._operand(einsum.operands[index], labels)
            case Literal(value):
                assert not isinstance(value, complex)
                return Number(float(value))
            case Call("pow", (base, Literal(exponent))) if exponent in range(2, _MOST_POWER + 1):
                return self._power(self._term(base, einsum, labels), int(exponent.real))
            case Call(function, arguments):
                return _called(function, [self._term(argument, einsum, labels) for argument in arguments])
        raise AssertionError(f"{expression} should be a number by now")

    def _operand(self, reference: Reference, labels: Mapping[str, str]) -> Term:
        own = tuple(labels[label] for label in reference.labels)
        einsum = self.inside.get(reference.tensor)
        if einsum is None:
            return Leaf(Reference(reference.tensor, own))
        return self._result(einsum, own)

    def _power(self, base: Term, exponent: int) -> Term:
        """A product of a term with itself, the labels of sums being others each time."""
        term = base
        for _ in range(exponent - 1):
            term = Mul(term, self._again(base))
        return term

    def _again(self, base: Term) -> Term:
        """The same term, the labels of sums being others."""
        names = {label: self._fresh(label, self.bounds[label]) for label in bound_labels(base)}
        again = renamed(base, names)
        if names:
            self.equal_pairs.extend(zip(_sums_in(base), _sums_in(again), strict=True))
        return again


def _sums_in(term: Term) -> list[Term]:
    """The outermost aggregates in a term."""
    match term:
        case Sum() | Fold():
            return [term]
        case Add(left, right) | Mul(left, right):
            return _sums_in(left) + _sums_in(right)
        case Apply(_, arguments):
            return [each for argument in arguments for each in _sums_in(argument)]
        case Leaf() | Number():
            return []


def _called(function: str, arguments: list[Term]) -> Term:
    match function, arguments:
        case "add", [left, right]:
            return Add(left, right)
        case "sub", [left, right]:
            return Add(left, Mul(Number(-1.0), right))
        case "neg", [only]:
            return Mul(Number(-1.0), only)
        case "mul", [left, right]:
            return Mul(left, right)
        case "div", [left, Number(value)] if value != 0:
            return Mul(Number(1 / value), left)
        case "div", [left, right]:
            return Mul(left, Apply("reciprocal", (right,)))
        case "lt" | "le", [left, right]:
            return Apply({"lt": "gt", "le": "ge"}[function], (right, left))
        case _:
            return Apply(function, tuple(arguments))

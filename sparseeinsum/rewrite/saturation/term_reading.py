"""Saturation: reads EinSums that read each other as terms."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.language.scalar import evaluated_dtype
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.rewrite.saturation.labels import common_names
from sparseeinsum.rewrite.saturation.terms import (
    Add,
    AggregateTerm,
    Apply,
    Leaf,
    Mul,
    NumberTerm,
    Sum,
    Term,
    bound_labels,
    children,
    rename_labels,
)

_FLOAT_DTYPES = frozenset(("float64", "float32"))  # of which other orders of sums and products differ by rounding only

_MOST_POWER = 3
_MOST_ARGUMENTS = 3


@dataclass(frozen=True, slots=True)
class Root:
    """The term of one EinSum.

    Attributes:
        term: The term, with names of labels that all roots share. No two sums in it bind the same label.
        labels: The labels of its result, by these names.
        output: The result as it was written.
    """

    term: Term
    labels: tuple[str, ...]
    output: Reference


@dataclass(frozen=True, slots=True)
class GroupTerms:
    """The terms of a group of EinSums.

    Attributes:
        roots: The terms of the roots of the group.
        bounds: Bounds of all labels.
        equal_pairs: Pairs of terms that differ only in the labels of their sums.
    """

    roots: tuple[Root, ...]
    bounds: Mapping[str, int]
    equal_pairs: tuple[tuple[Term, Term], ...]

    @property
    def terms(self) -> list[Term]:
        """The terms of all roots."""
        return [root.term for root in self.roots]

    def equal_pairs_of(self, root: Root) -> tuple[tuple[Term, Term], ...]:
        """The pairs whose terms occur in the term of a root, or in other such pairs."""
        subterms: set[Term] = set(_subterms(root.term))
        pairs: dict[tuple[Term, Term], None] = {}
        grows = True
        while grows:
            new = [pair for pair in self.equal_pairs if pair not in pairs and not subterms.isdisjoint(pair)]
            subterms.update(subterm for pair in new for term in pair for subterm in _subterms(term))
            pairs |= dict.fromkeys(new)
            grows = bool(new)
        return tuple(pairs)


def _subterms(term: Term) -> Iterator[Term]:
    yield term
    for child in children(term):
        yield from _subterms(child)


def is_readable(einsum: EinSum, graph: EinGraph) -> bool:
    """Whether an EinSum is of float64 or float32 throughout, has no promoted labels, and no aggregate of users."""
    dtypes = [graph.tensors[operand.tensor].dtype for operand in einsum.operands]
    all_dtypes = {*dtypes, graph.tensors[einsum.output.tensor].dtype}
    is_free = not einsum.promoted and einsum.is_rewritable
    return (
        is_free and len(all_dtypes) == 1 and all_dtypes <= _FLOAT_DTYPES and _has_dtype(dtypes[0], einsum.join, dtypes)
    )


def _has_dtype(dtype: str, expression: Scalar, dtypes: Sequence[str]) -> bool:
    match expression:
        case Literal(value):
            return not isinstance(value, bool | complex) and bool(np.isfinite(value))
        case Call(_, arguments):
            is_small = len(arguments) <= _MOST_ARGUMENTS and all(
                _has_dtype(dtype, argument, dtypes) for argument in arguments
            )
            return is_small and (_is_number(expression) or evaluated_dtype(expression, dtypes) == dtype)
        case _:
            return True


def _is_number(expression: Scalar) -> bool:
    match expression:
        case Call(_, arguments):
            return all(map(_is_number, arguments))
        case _:
            return isinstance(expression, Literal)


def read_terms(einsums: Sequence[EinSum], roots: Sequence[EinSum], graph: EinGraph) -> GroupTerms:
    """The terms of some readable EinSums. A result that several EinSums read is written out in each of them.

    Args:
        einsums: In topological order.
        roots: The EinSums whose terms to read.
        graph: Has the tensors.
    """
    reader = _TermReader({einsum.output.tensor: einsum for einsum in einsums}, graph, common_names(einsums))
    reader.reserved.update(label for root in roots for label in reader.root_labels(root))
    terms = tuple(map(reader.root, roots))
    return GroupTerms(terms, reader.bounds, tuple(reader.equal_pairs))


@dataclass(slots=True)
class _TermReader:
    """Reads the EinSums of a group as terms.

    Attributes:
        producers: The EinSums of the group by their results.
        graph: Has the tensors.
        names: Names of labels that all terms share, by the result and the label of an EinSum.
        bounds: Bounds of the labels of terms.
        equal_pairs: Pairs of terms that differ only in the labels of their sums.
        copies: The terms of a result with some labels; their sums bind different labels.
        uses: The number of copies that the current root uses.
        shared: Labels of results that several EinSums read.
        reserved: Labels that no further sum may bind.
    """

    producers: Mapping[str, EinSum]
    graph: EinGraph
    names: Mapping[tuple[str, str], str]
    bounds: dict[str, int] = field(default_factory=dict)
    equal_pairs: list[tuple[Term, Term]] = field(default_factory=list)
    copies: dict[tuple[str, tuple[str, ...]], list[Term]] = field(default_factory=dict)
    uses: dict[tuple[str, tuple[str, ...]], int] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)
    reserved: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        readers = Counter(operand.tensor for einsum in self.producers.values() for operand in einsum.operands)
        for name, einsum in self.producers.items():
            for label in einsum.labels:
                self.bounds[self.names[name, label]] = self.graph.bound_of(einsum, label)
            if readers[name] > 1:
                self.shared |= {self.names[name, label] for label in einsum.output.labels}
        self.reserved |= self.shared

    def root(self, einsum: EinSum) -> Root:
        """The term of one EinSum."""
        self.uses.clear()
        labels = self.root_labels(einsum)
        return Root(self._result(einsum, labels), labels, einsum.output)

    def root_labels(self, einsum: EinSum) -> tuple[str, ...]:
        """The labels of a result, by the names that all roots share."""
        return tuple(self.names[einsum.output.tensor, label] for label in einsum.output.labels)

    def _result(self, einsum: EinSum, labels: tuple[str, ...]) -> Term:
        """The term of an EinSum whose result has the labels `labels`.

        If a root reads it again, the sums in its term bind new labels, so that a product of sums can become a sum of
        products.
        """
        key = einsum.output.tensor, labels
        number = self.uses.get(key, 0)
        self.uses[key] = number + 1
        copies = self.copies.setdefault(key, [])
        if number == len(copies):
            copies.append(self._with_fresh_labels(copies[0]) if copies else self._written_out(einsum, labels))
        return copies[number]

    def _written_out(self, einsum: EinSum, result_labels: tuple[str, ...]) -> Term:
        labels = dict(zip(einsum.output.labels, result_labels, strict=True))
        for label in einsum.aggregated:
            labels[label] = self._fresh_label(
                self.names[einsum.output.tensor, label], self.graph.bound_of(einsum, label)
            )
        term = self._term(einsum.join, einsum, labels)
        for label in reversed(einsum.aggregated):
            bound = labels[label]
            term = Sum(bound, term) if einsum.aggregate == "sum" else AggregateTerm(str(einsum.aggregate), bound, term)
        self._equate_with_shared_labels(einsum, result_labels, labels, term)
        return term

    def _equate_with_shared_labels(
        self, einsum: EinSum, result_labels: tuple[str, ...], labels: Mapping[str, str], term: Term
    ) -> None:
        """Add that the term equals one with labels of results that several EinSums read, so that sharing is found."""
        if result_labels != self.root_labels(einsum):
            return
        shared_names = {labels[label]: self.names[einsum.output.tensor, label] for label in einsum.aggregated}
        renamings = {fresh: name for fresh, name in shared_names.items() if name in self.shared}
        if renamings:
            self.equal_pairs.append((term, rename_labels(term, renamings)))

    def _fresh_label(self, label: str, bound: int) -> str:
        """A label that no sum binds yet: `label`, or `label` with a number."""
        name, number = label, 1
        while name in self.reserved or (number > 1 and name in self.bounds):
            number += 1
            name = f"{label}{number}"
        self.reserved.add(name)
        self.bounds[name] = bound
        return name

    def _term(self, expression: Scalar, einsum: EinSum, labels: Mapping[str, str]) -> Term:
        """The term of an expression of the operands of `einsum`, whose labels get the names in `labels`."""
        match expression:
            case Operand(index):
                return self._operand(einsum.operands[index], labels)
            case Literal(value):
                assert not isinstance(value, complex)
                return NumberTerm(float(value))
            case Call("pow", (base, Literal(exponent))) if exponent in range(2, _MOST_POWER + 1):
                return self._power(self._term(base, einsum, labels), int(exponent.real))
            case Call(function, arguments):
                return _call_term(function, [self._term(argument, einsum, labels) for argument in arguments])
        raise AssertionError(f"{expression} should be a number by now")

    def _operand(self, reference: Reference, labels: Mapping[str, str]) -> Term:
        names = tuple(labels[label] for label in reference.labels)
        einsum = self.producers.get(reference.tensor)
        if einsum is None:
            return Leaf(Reference(reference.tensor, names))
        return self._result(einsum, names)

    def _power(self, base: Term, exponent: int) -> Term:
        """A power as a product, each factor of which has sums over labels of its own."""
        term = base
        for _ in range(exponent - 1):
            term = Mul(term, self._with_fresh_labels(base))
        return term

    def _with_fresh_labels(self, term: Term) -> Term:
        """The same term, whose sums bind new labels."""
        names = {label: self._fresh_label(label, self.bounds[label]) for label in bound_labels(term)}
        renamed = rename_labels(term, names)
        if names:
            self.equal_pairs.extend(zip(_outermost_aggregates(term), _outermost_aggregates(renamed), strict=True))
        return renamed


def _outermost_aggregates(term: Term) -> list[Term]:
    """The aggregates of a term that are not inside another one."""
    match term:
        case Sum() | AggregateTerm():
            return [term]
        case Add(left, right) | Mul(left, right):
            return _outermost_aggregates(left) + _outermost_aggregates(right)
        case Apply(_, arguments):
            return [aggregate for argument in arguments for aggregate in _outermost_aggregates(argument)]
        case Leaf() | NumberTerm():
            return []


def _call_term(function: str, arguments: list[Term]) -> Term:
    """A call of a function as a term: - and / become + and *, and comparisons are written with > and >=."""
    match function, arguments:
        case "add", [left, right]:
            return Add(left, right)
        case "sub", [left, right]:
            return Add(left, Mul(NumberTerm(-1.0), right))
        case "neg", [argument]:
            return Mul(NumberTerm(-1.0), argument)
        case "mul", [left, right]:
            return Mul(left, right)
        case "div", [left, NumberTerm(value)] if value != 0:
            return Mul(NumberTerm(1 / value), left)
        case "div", [left, right]:
            return Mul(left, Apply("reciprocal", (right,)))
        case "lt" | "le", [left, right]:
            return Apply({"lt": "gt", "le": "ge"}[function], (right, left))
        case _:
            return Apply(function, tuple(arguments))

"""Saturation: writes the EinSums that compute terms; each EinSum has at most one kind of aggregate."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.scalar import evaluate, operands_of
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.rewrite.result_labels import labels_in_order
from sparseeinsum.rewrite.saturation.term_reading import Root
from sparseeinsum.rewrite.saturation.terms import (
    Add,
    AggregateTerm,
    Apply,
    Leaf,
    Mul,
    NumberTerm,
    Sum,
    Term,
    children,
    free_labels,
)
from sparseeinsum.rewrite.unique_names import UniqueNames, unused_label


def build_einsums(
    terms: Sequence[Term],
    roots: Sequence[Root],
    bounds: Mapping[str, int],
    names: UniqueNames,
    keeps_shared: bool = False,
) -> list[EinSum] | None:
    """EinSums in topological order that compute terms; None where a term is no function of tensors.

    Args:
        terms: The terms to compute.
        roots: For every term, the result that it becomes, and the labels of that.
        bounds: Bounds of all labels.
        names: Invents names of further results.
        keeps_shared: Whether functions that several terms contain become results of their own, as aggregates always do.
    """
    simplified = [_without_constant_aggregates(term, bounds) for term in terms]
    builder = _EinSumBuilder(names)
    for term, root in zip(simplified, roots, strict=True):
        if term is None or free_labels(term) != frozenset(root.labels):
            return None
        builder.roots.setdefault(term, Reference(root.output.tensor, root.labels))
    if keeps_shared:
        builder.kept_shared = _shared(builder.roots)
    for term, root in zip(simplified, roots, strict=True):
        assert term is not None
        if not builder.add(term, Reference(root.output.tensor, root.labels)):
            return None
    written = {root.output.tensor: root for root in roots}
    return [_as_written(einsum, written.get(einsum.output.tensor)) for einsum in builder.einsums]


def _shared(terms: Iterable[Term]) -> frozenset[Term]:
    """The functions of tensors that occur several times in `terms`."""
    occurrences: Counter[Term] = Counter()
    waiting = list(terms)
    while waiting:
        term = waiting.pop()
        occurrences[term] += 1
        if occurrences[term] == 1:
            waiting.extend(children(term))
    repeated = [term for term, count in occurrences.items() if count > 1 and isinstance(term, Apply | Mul | Add)]
    return frozenset(term for term in repeated if free_labels(term))


def _as_written(einsum: EinSum, root: Root | None) -> EinSum:
    """An EinSum whose result has the labels that were written in the program."""
    if root is None or root.labels == root.output.labels:
        return einsum
    names = dict(zip(root.labels, root.output.labels, strict=True))
    for label in einsum.labels:
        if label not in names:
            names[label] = unused_label(label, names.values())
    return einsum.relabelled(names)


def _without_constant_aggregates(term: Term, bounds: Mapping[str, int]) -> Term | None:
    """A term without aggregates over labels that their argument lacks; None where one has no values.

    Such aggregates come from classes that are equal to terms of fewer labels: 3 * x is a sum of x over three indices.
    """
    simplified = [_without_constant_aggregates(child, bounds) for child in children(term)]
    match term, [child for child in simplified if child is not None]:
        case _, complete if len(complete) < len(simplified):
            return None
        case ((Leaf() | NumberTerm()), _):
            return term
        case Add(), [left, right]:
            return Add(left, right)
        case Mul(), [left, right]:
            return Mul(left, right)
        case Apply(function), arguments:
            return Apply(function, tuple(arguments))
        case Sum(label), [body]:
            return Sum(label, body) if label in free_labels(body) else Mul(NumberTerm(float(bounds[label])), body)
        case AggregateTerm(aggregate, label), [body]:
            return (
                AggregateTerm(aggregate, label, body)
                if label in free_labels(body)
                else _aggregate_of_constant(aggregate, body, bounds[label])
            )
    raise AssertionError(f"{term} has other parts")


def _aggregate_of_constant(aggregate: str, value: Term, count: int) -> Term | None:
    """The aggregate, other than a sum, of `count` equal values; None where `count` is 0."""
    if count == 0:
        return None
    return _repetition_term(AGGREGATES[aggregate].repeat_expression, value, count)


def _repetition_term(expression: Scalar, value: Term, count: int) -> Term:
    """The term of an expression of Operand(0), which is `value`, and Operand(1), which is `count`."""
    if 0 not in operands_of(expression):
        return NumberTerm(float(evaluate(expression, (0, count))))
    match expression:
        case Call(function, arguments):
            terms = tuple(_repetition_term(argument, value, count) for argument in arguments)
            match function, terms:
                case "add", (first, second):
                    return Add(first, second)
                case "mul", (first, second):
                    return Mul(first, second)
            return Apply(function, terms)
        case _:
            return value


@dataclass(slots=True)
class _EinSumBuilder:
    names: UniqueNames
    roots: dict[Term, Reference] = field(default_factory=dict)
    kept_shared: frozenset[Term] = frozenset()
    einsums: list[EinSum] = field(default_factory=list)
    references: dict[Term, Reference] = field(default_factory=dict)
    base: str = ""  # the name that names of further results begin with

    def add(self, term: Term, output: Reference) -> bool:
        """Add the EinSum of a root after those that it reads; returns whether it is a function of tensors."""
        self.base = output.tensor
        if term not in self.references:
            return self._compute(term, output.tensor, output.labels, output.labels)
        if self.references[term] != output:  # an earlier EinSum computes the same
            self.einsums.append(EinSum(output, (self.references[term],), Operand(0), None))
        return True

    def _compute(self, term: Term, name: str, labels: tuple[str, ...] | None, reader: tuple[str, ...]) -> bool:
        """Add the EinSum of a term; returns whether it is a function of tensors.

        Args:
            term: The term.
            name: The name of its result.
            labels: The labels of the result; None where they may have any order.
            reader: The labels of what is computed from the result.
        """
        aggregate, body = _split_aggregate(term)
        free = free_labels(term)
        operands: list[Reference] = []
        likely = labels or (*sorted(free - frozenset(reader)), *(label for label in reader if label in free))
        join = self._scalar(body, operands, likely, is_whole=aggregate is None)
        read = frozenset(label for operand in operands for label in operand.labels)
        if not operands or not read >= free:
            return False
        output = Reference(name, labels if labels is not None else labels_in_order(free, operands, reader))
        self.einsums.append(EinSum(output, tuple(operands), join, aggregate if read - free else None))
        self.references[term] = output
        return True

    def _scalar(self, term: Term, operands: list[Reference], reader: tuple[str, ...], is_whole: bool = False) -> Scalar:
        """A term as an expression of `operands`, to which it adds the references that the term reads.

        The reader is the result with this expression, by its labels.
        """
        match term:
            case Leaf(reference):
                if reference not in operands:
                    operands.append(reference)
                return Operand(operands.index(reference))
            case NumberTerm(value):
                return Literal(value)
            case Add() | Mul() | Apply():
                if not is_whole and (term in self.references or term in self.roots or term in self.kept_shared):
                    return self._scalar(self._as_leaf(term, reader), operands, reader)
                function, arguments = as_call(term)
                return Call(function, tuple(self._scalar(argument, operands, reader) for argument in arguments))
            case Sum() | AggregateTerm():
                return self._scalar(self._as_leaf(term, reader), operands, reader)

    def _as_leaf(self, term: Term, reader: tuple[str, ...]) -> Leaf:
        """The reference to the result of a term, which becomes an EinSum of its own for a reader of these labels."""
        if term not in self.references:
            root = self.roots.get(term)
            name = self.names.invent(self.base) if root is None else root.tensor
            self._compute(term, name, None if root is None else root.labels, reader)
        return Leaf(self.references[term])


def as_call(term: Add | Mul | Apply) -> tuple[str, tuple[Term, ...]]:
    """The function of the language at the top of a term, and its arguments; it recognises differences and quotients."""
    match term:
        case Add(left, Mul(NumberTerm(-1.0), right)) | Add(Mul(NumberTerm(-1.0), right), left):
            return "sub", (left, right)
        case Add(left, right):
            return "add", (left, right)
        case Mul(Apply("reciprocal", (divisor,)), dividend) | Mul(dividend, Apply("reciprocal", (divisor,))):
            return "div", (dividend, divisor)
        case Mul(left, right):
            return "mul", (left, right)
        case Apply("reciprocal", (divisor,)):
            return "div", (NumberTerm(1.0), divisor)
        case Apply(function, arguments):
            return function, arguments


def _split_aggregate(term: Term) -> tuple[str | None, Term]:
    """The aggregate at the top of a term, or None, and the term that it aggregates."""
    aggregate, body = None, term
    while True:
        match body:
            case Sum(_, inner) if aggregate in (None, "sum"):
                aggregate, body = "sum", inner
            case AggregateTerm(other, _, inner) if aggregate in (None, other):
                aggregate, body = other, inner
            case _:
                return aggregate, body

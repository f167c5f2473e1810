"""Saturation: terms in, the EinSums that compute them out, a sum each."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.scalar import evaluate, operands_of
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.expressions import Call, Literal, Operand, Scalar
from sparseeinsum.rewrite.saturation.reading import Root
from sparseeinsum.rewrite.saturation.terms import Add, Apply, Fold, Leaf, Mul, Number, Sum, Term, children, free_labels
from sparseeinsum.rewrite.unique_names import UniqueNames


def build(
    terms: Sequence[Term],
    roots: Sequence[Root],
    bounds: Mapping[str, int],
    names: UniqueNames,
    keeps_shared: bool = False,
) -> list[EinSum] | None:
    """EinSums in topological order that compute terms; None where one is no function of tensors.

    Args:
        terms: What to compute.
        roots: For every term the result that it becomes, and its labels.
        bounds: Of all labels.
        names: For further results.
        keeps_shared: Whether a function that several terms read is a result of its own, too; sums always are.
    """
    plain = [_without_idle(term, bounds) for term in terms]
    builder = _Builder(names)
    for term, root in zip(plain, roots, strict=True):
        if term is None or free_labels(term) != frozenset(root.labels):
            return None
        builder.roots.setdefault(term, Reference(root.output.tensor, root.labels))
    if keeps_shared:
        builder.kept = _shared(builder.roots)
    for term, root in zip(plain, roots, strict=True):
        assert term is not None
        if not builder.add(term, Reference(root.output.tensor, root.labels)):
            return None
    written = {root.output.tensor: root for root in roots}
    return [_as_written(einsum, written.get(einsum.output.tensor)) for einsum in builder.einsums]


def _shared(terms: Iterable[Term]) -> frozenset[Term]:
    """Functions of tensors that stand in several places."""
    places: Counter[Term] = Counter()
    waiting = list(terms)
    while waiting:
        term = waiting.pop()
        places[term] += 1
        if places[term] == 1:
            waiting.extend(children(term))
    several = [term for term, count in places.items() if count > 1 and isinstance(term, Apply | Mul | Add)]
    return frozenset(term for term in several if free_labels(term))


def _as_written(einsum: EinSum, root: Root | None) -> EinSum:
    """An EinSum whose result has the labels that were written for it."""
    if root is None or root.labels == root.output.labels:
        return einsum
    names = dict(zip(root.labels, root.output.labels, strict=True))
    for label in einsum.labels:
        number, name = 1, label
        while label not in names and name in names.values():
            number += 1
            name = f"{label}{number}"
        names.setdefault(label, name)

    def renamed(reference: Reference) -> Reference:
        return Reference(reference.tensor, tuple(names[label] for label in reference.labels))

    return replace(einsum, output=renamed(einsum.output), operands=tuple(map(renamed, einsum.operands)))


def _without_idle(term: Term, bounds: Mapping[str, int]) -> Term | None:
    """A term without aggregates over labels that what they are of lacks; None where one is over nothing.

    Such come of classes that are equal to terms of fewer labels, as 3 * x is a sum of x over three indices.
    """
    parts = [_without_idle(part, bounds) for part in children(term)]
    match term, [part for part in parts if part is not None]:
        case _, known if len(known) < len(parts):
            return None
        case ((Leaf() | Number()), _):
            return term
        case Add(), [left, right]:
            return Add(left, right)
        case Mul(), [left, right]:
            return Mul(left, right)
        case Apply(function), arguments:
            return Apply(function, tuple(arguments))
        case Sum(label), [body]:
            return Sum(label, body) if label in free_labels(body) else Mul(Number(float(bounds[label])), body)
        case Fold(aggregate, label), [body]:
            return (
                Fold(aggregate, label, body)
                if label in free_labels(body)
                else _of_equals(aggregate, body, bounds[label])
            )
    raise AssertionError(f"{term} has other parts")


def _of_equals(aggregate: str, value: Term, count: int) -> Term | None:
    """An aggregate, not a sum, of equal numbers; None where there are none."""
    if count == 0:
        return None
    return _repeated(AGGREGATES[aggregate].repeated, value, count)


def _repeated(expression: Scalar, value: Term, count: int) -> Term:
    """An expression of a value and of how often it is folded, as a term."""
    if 0 not in operands_of(expression):
        return Number(float(evaluate(expression, (0, count))))
    match expression:
        case Call(function, arguments):
            parts = tuple(_repeated(argument, value, count) for argument in arguments)
            match function, parts:
                case "add", (first, second):
                    return Add(first, second)
                case "mul", (first, second):
                    return Mul(first, second)
            return Apply(function, parts)
        case _:
            return value


@dataclass(slots=True)
class _Builder:
    names: UniqueNames
    roots: dict[Term, Reference] = field(default_factory=dict)
    kept: frozenset[Term] = frozenset()
    einsums: list[EinSum] = field(default_factory=list)
    known: dict[Term, Reference] = field(default_factory=dict)
    base: str = ""  # whose name those of further results begin with

    def add(self, term: Term, output: Reference) -> bool:
        """Add the EinSum of a root, after those that it reads; whether it is a function of tensors."""
        self.base = output.tensor
        if term not in self.known:
            return self._compute(term, output)
        if self.known[term] != output:  # computed before for another one
            self.einsums.append(EinSum(output, (self.known[term],), Operand(0), None))
        return True

    def _compute(self, term: Term, output: Reference) -> bool:
        aggregate, body = _peeled(term)
        operands: list[Reference] = []
        join = self._scalar(body, operands, is_whole=aggregate is None)
        read = frozenset(label for operand in operands for label in operand.labels)
        if not operands or not read >= frozenset(output.labels):
            return False
        is_aggregated = bool(read - frozenset(output.labels))
        self.einsums.append(EinSum(output, tuple(operands), join, aggregate if is_aggregated else None))
        self.known[term] = output
        return True

    def _scalar(self, term: Term, operands: list[Reference], is_whole: bool = False) -> Scalar:
        """A term as an expression of operands, which are added to the list."""
        match term:
            case Leaf(reference):
                if reference not in operands:
                    operands.append(reference)
                return Operand(operands.index(reference))
            case Number(value):
                return Literal(value)
            case Add() | Mul() | Apply():
                if not is_whole and (term in self.known or term in self.roots or term in self.kept):
                    return self._scalar(self._named(term), operands)
                function, arguments = as_call(term)
                return Call(function, tuple(self._scalar(argument, operands) for argument in arguments))
            case Sum() | Fold():
                return self._scalar(self._named(term), operands)

    def _named(self, term: Term) -> Leaf:
        """A term as a result of its own."""
        if term not in self.known:
            invented = self.roots.get(term)
            if invented is None:
                invented = Reference(self.names.invent(self.base), tuple(_labels_in_order(term)))
            self._compute(term, invented)
        return Leaf(self.known[term])


def as_call(term: Add | Mul | Apply) -> tuple[str, tuple[Term, ...]]:
    """A function of the language, and what it is of; differences and quotients as such."""
    match term:
        case Add(left, Mul(Number(-1.0), right)) | Add(Mul(Number(-1.0), right), left):
            return "sub", (left, right)
        case Add(left, right):
            return "add", (left, right)
        case Mul(Apply("reciprocal", (divisor,)), dividend) | Mul(dividend, Apply("reciprocal", (divisor,))):
            return "div", (dividend, divisor)
        case Mul(left, right):
            return "mul", (left, right)
        case Apply("reciprocal", (divisor,)):
            return "div", (Number(1.0), divisor)
        case Apply(function, arguments):
            return function, arguments


def _peeled(term: Term) -> tuple[str | None, Term]:
    """The aggregate at the top of a term, and of what."""
    aggregate, body = None, term
    while True:
        match body:
            case Sum(_, inner) if aggregate in (None, "sum"):
                aggregate, body = "sum", inner
            case Fold(other, _, inner) if aggregate in (None, other):
                aggregate, body = other, inner
            case _:
                return aggregate, body


def _labels_in_order(term: Term) -> list[str]:
    """Free labels as they appear."""
    free, found = free_labels(term), dict[str, None]()
    waiting = [term]
    while waiting:
        current = waiting.pop()
        if isinstance(current, Leaf):
            found |= {label: None for label in current.reference.labels if label in free}
        waiting.extend(reversed(children(current)))
    return list(found)

"""Saturation: a term in, the EinSums that compute it out, a sum each."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.scalar import Call, Literal, Operand, Scalar
from sparseeinsum.rewrite.names import Names
from sparseeinsum.rewrite.saturation.terms import Add, Apply, Fold, Leaf, Mul, Number, Sum, Term, children, free_labels


def build(term: Term, output: Reference, bounds: Mapping[str, int], names: Names) -> list[EinSum] | None:
    """EinSums in topological order, the last one of which computes the term; None where it is no function of tensors.

    Args:
        term: What to compute.
        output: Of the last one, with the labels that are free in the term.
        bounds: Of all labels.
        names: For the results of the others.
    """
    plain = _without_idle(term, bounds)
    builder = _Builder(output.tensor, names)
    if plain is None or free_labels(plain) != frozenset(output.labels) or not builder.compute(plain, output):
        return None
    return builder.einsums


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
    match aggregate:
        case "prod":
            return Apply("pow", (value, Number(float(count))))
        case "logsumexp":
            return Add(value, Number(math.log(count)))
        case _:
            return value


@dataclass(slots=True)
class _Builder:
    base: str
    names: Names
    einsums: list[EinSum] = field(default_factory=list)
    known: dict[Term, Reference] = field(default_factory=dict)

    def compute(self, term: Term, output: Reference) -> bool:
        """Add the EinSum of a term, after those that it reads; whether it has operands of all its labels."""
        aggregate, body = _peeled(term)
        operands: list[Reference] = []
        join = self._scalar(body, operands)
        read = frozenset(label for operand in operands for label in operand.labels)
        if not operands or not read >= frozenset(output.labels):
            return False
        is_aggregated = bool(read - frozenset(output.labels))
        self.einsums.append(EinSum(output, tuple(operands), join, aggregate if is_aggregated else None))
        return True

    def _scalar(self, term: Term, operands: list[Reference]) -> Scalar:
        """A term as an expression of operands, which are added to the list."""
        match term:
            case Leaf(reference):
                if reference not in operands:
                    operands.append(reference)
                return Operand(operands.index(reference))
            case Number(value):
                return Literal(value)
            case Add() | Mul() | Apply():
                function, arguments = _as_call(term)
                return Call(function, tuple(self._scalar(argument, operands) for argument in arguments))
            case Sum() | Fold():
                return self._scalar(self._named(term), operands)

    def _named(self, term: Term) -> Term:
        """An aggregate as a result of its own."""
        if term not in self.known:
            reference = Reference(self.names.invent(self.base), tuple(_labels_in_order(term)))
            self.compute(term, reference)
            self.known[term] = reference
        return Leaf(self.known[term])


def _as_call(term: Add | Mul | Apply) -> tuple[str, tuple[Term, ...]]:
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

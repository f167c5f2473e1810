"""Saturation: EinSums that alone read one another in, the term that the last one computes out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.language.scalar import Call, Literal, Operand, Scalar
from sparseeinsum.rewrite.chains import dtype_of
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
    renamed,
)

# Of these, sums and products are the same in any order, but for rounding.
ROUNDED = frozenset(("float64", "float32"))

_MOST_POWER = 3
_MOST_ARGUMENTS = 3


@dataclass(frozen=True, slots=True)
class Reading:
    """What EinSums compute.

    Attributes:
        term: Of the last one; no two sums in it take the same label.
        bounds: Of all labels.
        same: Terms in it that differ in the labels of their sums alone.
    """

    term: Term
    bounds: Mapping[str, int]
    same: tuple[tuple[Term, Term], ...]


def is_readable(einsum: EinSum, graph: EinGraph) -> bool:
    """Whether an EinSum is of real numbers of one dtype throughout, and nothing in it was promoted by hand."""
    dtypes = [graph.tensors[operand.tensor].dtype for operand in einsum.operands]
    one = {*dtypes, graph.tensors[einsum.output.tensor].dtype}
    return not einsum.promoted and len(one) == 1 and one <= ROUNDED and _is_of(dtypes[0], einsum.join, dtypes)


def _is_of(dtype: str, expression: Scalar, dtypes: Sequence[str]) -> bool:
    match expression:
        case Literal(value):
            return not isinstance(value, bool | complex) and bool(np.isfinite(value))
        case Call(_, arguments):
            is_small = len(arguments) <= _MOST_ARGUMENTS and all(_is_of(dtype, each, dtypes) for each in arguments)
            return is_small and (_is_number(expression) or dtype_of(expression, dtypes) == dtype)
        case _:
            return True


def _is_number(expression: Scalar) -> bool:
    match expression:
        case Call(_, arguments):
            return all(map(_is_number, arguments))
        case _:
            return isinstance(expression, Literal)


def read(einsums: Sequence[EinSum], graph: EinGraph) -> Reading:
    """The term of the last of some readable EinSums, with those before it in their readers."""
    reader = _Reader({einsum.output.tensor: einsum for einsum in einsums[:-1]}, graph)
    term = reader.result(einsums[-1], {label: label for label in einsums[-1].output.labels})
    return Reading(term, reader.bounds, tuple(reader.same))


@dataclass(slots=True)
class _Reader:
    inside: Mapping[str, EinSum]
    graph: EinGraph
    bounds: dict[str, int] = field(default_factory=dict)
    same: list[tuple[Term, Term]] = field(default_factory=list)

    def result(self, einsum: EinSum, names: dict[str, str]) -> Term:
        """What an EinSum computes, its output's labels under other names."""
        labels = dict(names)
        for label in einsum.output.labels:
            self.bounds.setdefault(labels[label], self.graph.bound_of(einsum, label))
        for label in einsum.aggregated:
            labels[label] = self._fresh(label, self.graph.bound_of(einsum, label))
        term = self._term(einsum.join, einsum, labels)
        for label in reversed(einsum.aggregated):
            own = labels[label]
            term = Sum(own, term) if einsum.aggregate == "sum" else Fold(str(einsum.aggregate), own, term)
        return term

    def _fresh(self, label: str, bound: int) -> str:
        """A label that no sum takes yet: the one given, or with a number."""
        name, number = label, 1
        while name in self.bounds:
            number += 1
            name = f"{label}{number}"
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
        return self.result(einsum, dict(zip(einsum.output.labels, own, strict=True)))

    def _power(self, base: Term, exponent: int) -> Term:
        """A product of a term with itself, the labels of sums being others each time."""
        term = base
        for _ in range(exponent - 1):
            names = {label: self._fresh(label, self.bounds[label]) for label in bound_labels(base)}
            again = renamed(base, names)
            if names:
                self.same.extend(zip(_sums_in(base), _sums_in(again), strict=True))
            term = Mul(term, again)
        return term


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

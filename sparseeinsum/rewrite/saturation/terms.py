"""Saturation: terms: expression trees of tensors with labels, +, *, and aggregates over one label each."""

from dataclasses import dataclass

from sparseeinsum.language.eingraph import Reference


@dataclass(frozen=True, slots=True)
class Leaf:
    """A term that reads a tensor, with a label for each of its axes."""

    reference: Reference


@dataclass(frozen=True, slots=True)
class NumberTerm:
    """A term that is a finite real number, the same at every index."""

    value: float


@dataclass(frozen=True, slots=True)
class Add:
    """The sum of two terms."""

    left: "Term"
    right: "Term"


@dataclass(frozen=True, slots=True)
class Mul:
    """The product of two terms."""

    left: "Term"
    right: "Term"


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of a term over a label."""

    label: str
    body: "Term"


@dataclass(frozen=True, slots=True)
class AggregateTerm:
    """Another aggregate of a term over a label."""

    aggregate: str
    label: str
    body: "Term"


@dataclass(frozen=True, slots=True)
class Apply:
    """A function other than + and * of one to three arguments; `reciprocal` is 1 / x."""

    function: str
    arguments: tuple["Term", ...]


Term = Leaf | NumberTerm | Add | Mul | Sum | AggregateTerm | Apply


def children(term: Term) -> tuple[Term, ...]:
    """The direct subterms of a term."""
    match term:
        case Add(left, right) | Mul(left, right):
            return left, right
        case Sum(_, body) | AggregateTerm(_, _, body):
            return (body,)
        case Apply(_, arguments):
            return arguments
        case Leaf() | NumberTerm():
            return ()


def free_labels(term: Term) -> frozenset[str]:
    """The labels of a term that no aggregate in it binds."""
    of_children = frozenset[str]().union(*map(free_labels, children(term)))
    match term:
        case Leaf(reference):
            return frozenset(reference.labels)
        case Sum(label, _) | AggregateTerm(_, label, _):
            return of_children - {label}
        case _:
            return of_children


def rename_labels(term: Term, names: dict[str, str]) -> Term:
    """A term with other names of labels, those that aggregates bind included."""
    match term:
        case Leaf(reference):
            return Leaf(Reference(reference.tensor, tuple(names.get(label, label) for label in reference.labels)))
        case NumberTerm():
            return term
        case Add(left, right):
            return Add(rename_labels(left, names), rename_labels(right, names))
        case Mul(left, right):
            return Mul(rename_labels(left, names), rename_labels(right, names))
        case Sum(label, body):
            return Sum(names.get(label, label), rename_labels(body, names))
        case AggregateTerm(aggregate, label, body):
            return AggregateTerm(aggregate, names.get(label, label), rename_labels(body, names))
        case Apply(function, arguments):
            return Apply(function, tuple(rename_labels(argument, names) for argument in arguments))


def bound_labels(term: Term) -> tuple[str, ...]:
    """The labels that aggregates in a term bind, from the outside to the inside."""
    own = (term.label,) if isinstance(term, Sum | AggregateTerm) else ()
    return (*own, *(label for child in children(term) for label in bound_labels(child)))

"""Saturation: expressions of tensors under labels, of + and * and sums over one label each, as trees."""

from dataclasses import dataclass

from sparseeinsum.language.eingraph import Reference


@dataclass(frozen=True, slots=True)
class Leaf:
    """A tensor under labels."""

    reference: Reference


@dataclass(frozen=True, slots=True)
class Number:
    """A finite real number."""

    value: float


@dataclass(frozen=True, slots=True)
class Add:
    """The sum of two."""

    left: "Term"
    right: "Term"


@dataclass(frozen=True, slots=True)
class Mul:
    """The product of two."""

    left: "Term"
    right: "Term"


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum over a label."""

    label: str
    body: "Term"


@dataclass(frozen=True, slots=True)
class Fold:
    """Another aggregate over a label."""

    aggregate: str
    label: str
    body: "Term"


@dataclass(frozen=True, slots=True)
class Apply:
    """A function that is neither + nor *, of one to three arguments; `reciprocal` is 1 / x."""

    function: str
    arguments: tuple["Term", ...]


Term = Leaf | Number | Add | Mul | Sum | Fold | Apply


def children(term: Term) -> tuple[Term, ...]:
    """What a term is of."""
    match term:
        case Add(left, right) | Mul(left, right):
            return left, right
        case Sum(_, body) | Fold(_, _, body):
            return (body,)
        case Apply(_, arguments):
            return arguments
        case Leaf() | Number():
            return ()


def free_labels(term: Term) -> frozenset[str]:
    """Labels that no aggregate in a term takes."""
    inside = frozenset[str]().union(*map(free_labels, children(term)))
    match term:
        case Leaf(reference):
            return frozenset(reference.labels)
        case Sum(label, _) | Fold(_, label, _):
            return inside - {label}
        case _:
            return inside


def renamed(term: Term, names: dict[str, str]) -> Term:
    """A term under other labels, those of aggregates included."""
    match term:
        case Leaf(reference):
            return Leaf(Reference(reference.tensor, tuple(names.get(label, label) for label in reference.labels)))
        case Number():
            return term
        case Add(left, right):
            return Add(renamed(left, names), renamed(right, names))
        case Mul(left, right):
            return Mul(renamed(left, names), renamed(right, names))
        case Sum(label, body):
            return Sum(names.get(label, label), renamed(body, names))
        case Fold(aggregate, label, body):
            return Fold(aggregate, names.get(label, label), renamed(body, names))
        case Apply(function, arguments):
            return Apply(function, tuple(renamed(argument, names) for argument in arguments))


def bound_labels(term: Term) -> tuple[str, ...]:
    """Labels that aggregates in a term take, in order."""
    own = (term.label,) if isinstance(term, Sum | Fold) else ()
    return (*own, *(label for child in children(term) for label in bound_labels(child)))

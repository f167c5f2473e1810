"""Models: scalar terms over labels, from which the statements of a network are written."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from sparseeinsum.language.affine_indices import AffineIndex
from sparseeinsum.operators.dtypes import Number


@dataclass(frozen=True, slots=True)
class Read:
    """A tensor at an index for each axis; `shape` has the bounds of the axes."""

    tensor: str
    indices: tuple[AffineIndex, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class IndexValue:
    """An index as a number."""

    index: AffineIndex


@dataclass(frozen=True, slots=True)
class Ones:
    """True at every index of the labels, which other terms may lack."""

    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConstantTerm:
    """A term that is the same number at every index."""

    value: Number


@dataclass(frozen=True, slots=True)
class FormulaTerm:
    """A formula of arguments, which stand for {0}, {1}, ... in its text."""

    formula: str
    arguments: "tuple[IndexTerm, ...]"


IndexTerm: TypeAlias = Read | IndexValue | Ones | ConstantTerm | FormulaTerm


def plain(label: str) -> AffineIndex:
    """The index that is a label."""
    return AffineIndex(((label, 1),), 0)


def composed(index: AffineIndex, replacements: Mapping[str, AffineIndex]) -> AffineIndex:
    """The index with indices in place of some labels."""
    coefficients: dict[str, int] = {}
    offset = index.offset
    for label, times in index.terms:
        inner = replacements.get(label, plain(label))
        offset += times * inner.offset
        for other, coefficient in inner.terms:
            coefficients[other] = coefficients.get(other, 0) + times * coefficient
    return AffineIndex(tuple((label, times) for label, times in coefficients.items() if times), offset)


def substituted(term: IndexTerm, replacements: Mapping[str, AffineIndex]) -> IndexTerm:
    """The term with indices in place of some labels; those of Ones are replaced by labels or by nothing."""
    match term:
        case Read(_, indices):
            return replace(term, indices=tuple(composed(index, replacements) for index in indices))
        case IndexValue(index):
            return IndexValue(composed(index, replacements))
        case Ones(labels):
            new = (composed(plain(label), replacements).labels for label in labels)
            return Ones(tuple(dict.fromkeys(label for inner in new for label in inner)))
        case FormulaTerm(_, arguments):
            return replace(term, arguments=tuple(substituted(argument, replacements) for argument in arguments))
        case _:
            return term


def leaves(term: IndexTerm) -> Iterator[Read | IndexValue | Ones | ConstantTerm]:
    """The terms inside a term that have no arguments, in order."""
    if isinstance(term, FormulaTerm):
        for argument in term.arguments:
            yield from leaves(argument)
    else:
        yield term


def labels_of(term: IndexTerm) -> tuple[str, ...]:
    """The labels of a term, in order."""
    in_order: dict[str, None] = {}
    for leaf in leaves(term):
        match leaf:
            case Read(_, indices):
                in_order |= dict.fromkeys(label for index in indices for label in index.labels)
            case IndexValue(index):
                in_order |= dict.fromkeys(index.labels)
            case Ones(labels):
                in_order |= dict.fromkeys(labels)
    return tuple(in_order)


def tensors_of(term: IndexTerm) -> frozenset[str]:
    """The tensors that a term reads."""
    return frozenset(leaf.tensor for leaf in leaves(term) if isinstance(leaf, Read))

"""Models: values of a network: a term for each element of an array, whose axes consist of labels."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sparseeinsum.language.affine_indices import AffineIndex
from sparseeinsum.models.networks.index_terms import IndexTerm, Read, plain, substituted, tensors_of

KINDS = ("bool", "int", "float")  # of numbers, from narrow to wide

_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class SizedLabel:
    """A label, and the number of its indices, which is greater than 1."""

    label: str
    size: int


FactoredAxis = tuple[SizedLabel, ...]  # indices of all factors, in row-major order; an axis with one index has none


def new_axis(*sizes: int) -> FactoredAxis:
    """An axis of new labels with some numbers of indices; no label stands for the only index of an axis."""
    return tuple(SizedLabel(f"label{next(_numbers)}", size) for size in sizes if size != 1)


def axis_size(axis: FactoredAxis) -> int:
    """The number of indices of an axis."""
    return math.prod(factor.size for factor in axis)


@dataclass(frozen=True, slots=True)
class NetworkValue:
    """An array of a network.

    Attributes:
        axes: Its axes.
        term: The element at the indices that the labels of the axes stand for.
        kind: The kind of its numbers: `bool`, `int` or `float`.
        title: How the name of its tensor begins, if it gets one.
    """

    axes: tuple[FactoredAxis, ...]
    term: IndexTerm
    kind: str
    title: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        """The numbers of indices of the axes."""
        return tuple(map(axis_size, self.axes))

    @property
    def factors(self) -> tuple[SizedLabel, ...]:
        """The factors of all axes, in order."""
        return tuple(factor for axis in self.axes for factor in axis)

    @property
    def is_plain(self) -> bool:
        """Whether the term is only read, or has no tensor, so that it need not be computed before."""
        return isinstance(self.term, Read) or not tensors_of(self.term)

    def replaced(self, labels: Mapping[str, AffineIndex], axes: Sequence[FactoredAxis]) -> "NetworkValue":
        """The value with other axes, and with indices in place of labels."""
        return replace(self, axes=tuple(axes), term=substituted(self.term, labels))

    def with_axis(self, position: int, axis: FactoredAxis) -> "NetworkValue":
        """The value with other labels for an axis, each of whose factors becomes one of them or a product of some."""
        labels, rest = {}, list(axis)
        for factor in self.axes[position]:
            labels[factor.label], rest = _split(factor, rest)
        return self.replaced(labels, (*self.axes[:position], axis, *self.axes[position + 1 :]))

    def fresh(self) -> "NetworkValue":
        """The value with labels that no other value has."""
        axes = [new_axis(*(factor.size for factor in axis)) for axis in self.axes]
        new = (factor for axis in axes for factor in axis)
        return self.replaced({old.label: plain(now.label) for old, now in zip(self.factors, new, strict=True)}, axes)


def _split(factor: SizedLabel, parts: Sequence[SizedLabel]) -> tuple[AffineIndex, list[SizedLabel]]:
    """The index that a factor has in terms of the first of some parts, and the further parts."""
    count = next(count for count in range(1, len(parts) + 1) if axis_size(tuple(parts[:count])) == factor.size)
    terms, stride = [], 1
    for part in reversed(parts[:count]):
        terms.append((part.label, stride))
        stride *= part.size
    return AffineIndex(tuple(reversed(terms)), 0), list(parts[count:])


def cuts(sizes: Sequence[int]) -> Iterator[int]:
    """The strides at which factors begin and end: the products of the last sizes, from all to none."""
    for position in range(len(sizes) + 1):
        yield math.prod(sizes[position:])


def common_refinement(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...] | None:
    """Sizes of factors into which both lists of sizes, with the same product, can be split; None if there are none.

    >>> common_refinement((4, 6), (2, 12)), common_refinement((3, 4), (4, 3))
    ((2, 2, 6), None)
    """
    strides = sorted({*cuts(first), *cuts(second)}, reverse=True)
    pairs = list(itertools.pairwise(strides))
    if any(greater % less for greater, less in pairs):
        return None
    return tuple(greater // less for greater, less in pairs)


def widest(kinds: Sequence[str]) -> str:
    """The kind that holds the numbers of all kinds."""
    return max(kinds, key=KINDS.index)

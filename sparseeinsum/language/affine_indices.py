"""Language: indices that are labels times whole numbers, such as 2*i + 1, and the limits below which they stay."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from sparseeinsum.operators.expressions import AxisBound


@dataclass(frozen=True, slots=True)
class AffineIndex:
    """A whole number plus labels times whole numbers; without labels, an index that is fixed.

    Attributes:
        terms: Labels, no label twice, and their coefficients, which are not 0.
        offset: The whole number.
        key: The natural key whose index it is, as text; then there are no labels, and `offset` is 0 until the database
            has looked it up. None if it is no key.
    """

    terms: tuple[tuple[str, int], ...]
    offset: int
    key: str | None = None

    @classmethod
    def of_label(cls, label: str) -> "AffineIndex":
        """The index that is a label, written `i + 0`, which does not fix the bound of the label."""
        return cls(((label, 1),), 0)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its terms, in their order."""
        return tuple(label for label, _ in self.terms)

    @property
    def counts_from_end(self) -> bool:
        """Whether it counts from the end of its axis, as -1 and -1 - i do: it is below 0 whatever its labels are."""
        return self.offset < 0 and all(coefficient < 0 for _, coefficient in self.terms)

    def start(self, bound: int) -> int:
        """The index where all labels are 0, for an axis of that bound."""
        return self.offset + bound if self.counts_from_end else self.offset

    def extremes(self, label_bounds: Mapping[str, int], bound: int) -> tuple[int, int]:
        """The least and the greatest index, for labels of those bounds, and an axis of that bound."""
        least = greatest = self.start(bound)
        for label, coefficient in self.terms:
            change = coefficient * max(label_bounds[label] - 1, 0)
            least, greatest = least + min(change, 0), greatest + max(change, 0)
        return least, greatest

    def most_indices(self, label: str, label_bounds: Mapping[str, int], bound: int) -> int:
        """The greatest bound of a label for which all indices exist, for other labels of those bounds.

        >>> AffineIndex((("y", 2), ("r", 1)), 0).most_indices("y", {"r": 3}, 8)  # 2*y + r, of 8
        3
        """
        coefficient = dict(self.terms)[label]
        least, greatest = self.extremes({**label_bounds, label: 1}, bound)
        room = (bound - 1 - greatest) // coefficient if coefficient > 0 else least // -coefficient
        return max(room + 1, 0)

    def lowercase(self) -> "AffineIndex":
        """The index with its labels in lower case."""
        return replace(self, terms=tuple((label.lower(), coefficient) for label, coefficient in self.terms))

    def __str__(self) -> str:
        """The index as program text; `i + 0` if it is a label, because `i` alone would fix the bound of the label."""
        if self.key is not None:
            quote = '"' if "'" in self.key else "'"
            return f"{quote}{self.key}{quote}"
        parts = [(coefficient, f"{_times(coefficient)}{label}") for label, coefficient in self.terms]
        if self.offset or len(parts) == 0 or (len(parts) == 1 and parts[0][0] == 1):
            at_start = self.offset < 0
            parts.insert(0 if at_start else len(parts), (self.offset, str(abs(self.offset))))
        (first, text), *others = parts
        written = f"-{text}" if first < 0 else text
        return written + "".join(f" {'-' if sign < 0 else '+'} {part}" for sign, part in others)


def _times(coefficient: int) -> str:
    return "" if abs(coefficient) == 1 else f"{abs(coefficient)}*"


@dataclass(frozen=True, slots=True)
class Limit:
    """What bounds labels: an index is below a number, or below the bound of an axis.

    Attributes:
        index: A label, whose bound this is; or an index, which must exist for all labels in it.
        bound: A number, or the axis of a tensor.
    """

    index: str | AffineIndex
    bound: int | AxisBound

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels in the index."""
        return (self.index,) if isinstance(self.index, str) else self.index.labels


def labels_in(limits: tuple[Limit, ...]) -> Iterator[str]:
    """The labels that limits bound, in order."""
    yield from dict.fromkeys(label for limit in limits for label in limit.labels)


def bounding_limits(limits: tuple[Limit, ...]) -> dict[str, tuple[Limit, ...]]:
    """The limits that bound each label, by label; each label comes after those on which its bound depends.

    The bound of a label is that of the first limit of the label itself, or else the greatest with which all indices
    exist whose other labels are bounded. Labels that are bounded at the same time do not depend on each other: an index
    of both of them must exist, but bounds neither. A label without such an index has no bound.
    """
    bounding: dict[str, tuple[Limit, ...]] = {
        limit.index: (limit,) for limit in reversed(limits) if isinstance(limit.index, str)
    }
    while True:
        new: dict[str, list[Limit]] = {}
        for limit in limits:
            unbounded = [label for label in limit.labels if label not in bounding]
            if len(unbounded) == 1:
                new.setdefault(unbounded[0], []).append(limit)
        if not new:
            return bounding
        bounding |= {label: tuple(own) for label, own in new.items()}


def relevant_limits(
    labels: tuple[str, ...],
    limits: tuple[Limit, ...],
    bounding: Mapping[str, tuple[Limit, ...]],
    own: Mapping[str, Limit],
    beside: tuple[Limit, ...] = (),
) -> tuple[Limit, ...]:
    """The limits on which the bounds of labels depend; none if they alone would give other bounds.

    Args:
        labels: The labels.
        limits: The limits of a statement.
        bounding: The limits that bound each label, as `bounding_limits` returns them for all of these.
        own: For labels that have this bound already, the limits to use in place of those.
        beside: Limits that stand beside the returned ones.
    """
    bounds = {**bounding, **{label: (limit,) for label, limit in own.items()}}
    needed, relevant = set(labels), set[Limit]()
    for label in reversed(bounds):
        if label in needed:
            relevant.update(bounds[label])
            needed.update(labels_in(bounds[label]))
    ordered = tuple(limit for limit in dict.fromkeys((*own.values(), *limits)) if limit in relevant)
    alone = bounding_limits((*ordered, *beside))
    return ordered if all(set(alone[label]) == set(bounds[label]) for label in alone) else ()


def label_bounds(limits: tuple[Limit, ...], bounds: Mapping[Limit, int]) -> dict[str, int]:
    """The bounds of all labels in `limits`, which are the relevant ones; `bounds` has those of their axes."""
    known: dict[str, int] = {}
    for label, bounding in bounding_limits(limits).items():
        known[label] = min(
            bounds[limit] if isinstance(limit.index, str) else limit.index.most_indices(label, known, bounds[limit])
            for limit in bounding
        )
    return known


def with_labels(index: str | AffineIndex, label_for: Callable[[str], str]) -> str | AffineIndex:
    """An index with other labels, which `label_for` gives for the present ones."""
    if isinstance(index, str):
        return label_for(index)
    return replace(index, terms=tuple((label_for(label), times) for label, times in index.terms))

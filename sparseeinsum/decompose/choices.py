"""Decompose: the choices of one EinSum: which labels are promoted, demoted, or in tiles."""

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.tiling import SMALLEST_TILE, TILES, tiles_below
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.language.tensors import DEMOTED, MOST_ARRAY_AXES

_MOST_TILINGS = 1024  # choices of one EinSum whose labels have tiles
# Labels that are promoted independently of each other; their subsets are compared for every two adjacent EinSums.
MOST_LABELS = 8


@dataclass(frozen=True, slots=True)
class LabelConstraints:
    """Constraints on the choices of an EinSum; see `all_choices` for the attributes."""

    pinned: Mapping[str, int] | None
    tiles: Mapping[str, tuple[int, ...]]
    cut: Mapping[str, int]

    def choices(self, einsum: EinSum, bounds: Mapping[str, int], most_labels: int = MOST_LABELS) -> Iterable[Choice]:
        """All choices that satisfy the constraints."""
        return all_choices(einsum, bounds, self.pinned, self.tiles, self.cut, most_labels)

    def with_smaller(self, bounds: Mapping[str, int]) -> "LabelConstraints":
        """A copy with more tiles, some of them small enough for low memory limits."""
        return replace(self, tiles=with_smaller_tiles(bounds, self.tiles))


def with_smaller_tiles(bounds: Mapping[str, int], tiles: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """The tiles of every label, and in addition the standard ones, with the smallest if there are few labels."""
    smaller = (*TILES, SMALLEST_TILE) if (3 + len(TILES)) ** len(bounds) <= _MOST_TILINGS else TILES
    return {label: tiles_below(bound, (*tiles.get(label, ()), *smaller)) for label, bound in bounds.items()}


def all_choices(
    einsum: EinSum,
    bounds: Mapping[str, int],
    pinned: Mapping[str, int] | None = None,
    tiles: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
    cut: Mapping[str, int] = MappingProxyType({}),
    most_labels: int = MOST_LABELS,
) -> Iterable[Choice]:
    """All choices of an EinSum that satisfy the given constraints.

    Every label is demoted, promoted, or in one of its tiles. Labels that the program promotes stay so.
    The number of choices is limited as follows. If an EinSum has too many, tiles are left out. If it has many labels,
    those of the smallest bounds are promoted only together with all others; they are the same in all EinSums with the
    same labels.

    Args:
        einsum: The EinSum.
        bounds: Bounds of its labels.
        pinned: Exactly the labels to promote, with their tiles.
        tiles: The tiles greater than 1 that each label may have.
        cut: Labels that are divided among workers; they are promoted, in these tiles or in divisors of them.
        most_labels: The most labels that are promoted independently of each other; with fewer than MOST_LABELS, no
            label has tiles.

    Raises:
        PlanError: A pinned label is not in the EinSum, or must be demoted.
    """
    if pinned is not None:
        return [_pinned_choice(einsum, pinned)]
    fixed = fixed_tiles(einsum)
    untiled = [_label_tiles(label, fixed, cut) for label in einsum.labels]
    tiled = [
        options if label in fixed else (*options, *_fitting_tiles(tiles.get(label, ()), cut.get(label), options))
        for options, label in zip(untiled, einsum.labels, strict=True)
    ]
    free = sorted(frozenset(einsum.labels) - fixed.keys() - cut.keys(), key=lambda label: (-bounds[label], label))
    if len(einsum.labels) > MOST_ARRAY_AXES:
        return _choices_of_many_labels(einsum, free, fixed, cut)
    if most_labels == MOST_LABELS and math.prod(map(len, tiled)) <= _MOST_TILINGS:
        return itertools.product(*tiled)
    if len(free) <= most_labels:
        return itertools.product(*untiled)
    together = frozenset(free[most_labels:])  # all promoted, or none
    few = [(DEMOTED,) if label in together else options for label, options in zip(einsum.labels, untiled, strict=True)]
    return itertools.chain(itertools.product(*few), [tuple(fixed.get(label, 1) for label in einsum.labels)])


def _pinned_choice(einsum: EinSum, pinned: Mapping[str, int]) -> Choice:
    """The choice that promotes exactly the labels of `pinned`, in its tiles."""
    unknown = sorted(pinned.keys() - frozenset(einsum.labels))
    if unknown:
        raise PlanError(
            f"{einsum.output.tensor} has no label {unknown[0]} to promote; it has {', '.join(einsum.labels)}"
        )
    for label in einsum.demoted_labels:
        if label in pinned:
            raise PlanError(f"{einsum.output.tensor} has {label} inside arrays, so {label} cannot be promoted in it")
    return tuple(pinned.get(label, DEMOTED) for label in einsum.labels)


def _choices_of_many_labels(
    einsum: EinSum, free: Sequence[str], fixed: Mapping[str, int], cut: Mapping[str, int]
) -> Iterator[Choice]:
    """Choices of an EinSum with more labels than arrays have axes: as many labels inside arrays as they take, or none.

    Args:
        einsum: The EinSum.
        free: The labels that may be promoted or not, those of the greatest bounds first.
        fixed: The tiles of other labels.
        cut: The tiles of labels that are divided among workers.
    """
    outer = {**cut, **fixed}
    room = MOST_ARRAY_AXES - sum(tile != 1 for tile in outer.values())
    for order in (free, sorted(free, key=lambda label: label in einsum.output.labels)):
        inner = frozenset(order[: max(room, 0)])
        yield tuple(DEMOTED if label in inner else outer.get(label, 1) for label in einsum.labels)
    yield tuple(outer.get(label, 1) for label in einsum.labels)


def fixed_tiles(einsum: EinSum) -> dict[str, int]:
    """Tiles of the labels that are not free: those that the program promotes, and those that must be demoted."""
    return dict(einsum.promoted) | dict.fromkeys(einsum.demoted_labels, DEMOTED)


def _label_tiles(label: str, fixed: Mapping[str, int], cut: Mapping[str, int]) -> tuple[int, ...]:
    """A label's options without larger tiles: its fixed tile, promoted or in a worker's tile, or both states."""
    if label in fixed:
        return (fixed[label],)
    return tuple(dict.fromkeys((1, cut[label]))) if label in cut else (DEMOTED, 1)


def _fitting_tiles(tiles: Iterable[int], cut: int | None, existing: Collection[int]) -> tuple[int, ...]:
    """The tiles that are not `existing` and divide the tile `cut` of a worker, if there is one."""
    return tuple(tile for tile in tiles if tile not in existing and (cut is None or cut % tile == 0))

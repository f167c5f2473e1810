"""Decompose: the choices of every EinSum that the search considers."""

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from sparseeinsum.decompose.choice import Choice, promoted_tiles
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.tiling import SMALLEST_TILE, TILES, tiles_below
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinSum, write_einsum
from sparseeinsum.language.tensors import DEMOTED, MOST_ARRAY_AXES

_MOST_TILINGS = 1024  # choices of one EinSum whose labels have tiles
# Labels that are promoted independently of each other; their subsets are compared for every two adjacent EinSums.
MOST_LABELS = 8

# An EinSum with no more indices than this takes less time than starting an operator. If it has more than a few labels,
# all or none are promoted: otherwise, planning a network of small tensors would take far longer than computing it.
_SMALL = 1 << 14
_FEW_LABELS = 4


def allowed_choices(
    model: CostModel,
    pinned: Mapping[str, Mapping[str, int]],
    only: Callable[[EinSum, Choice], bool] | None = None,
    tiles: Mapping[str, Mapping[str, tuple[int, ...]]] = MappingProxyType({}),
    cut: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
) -> dict[str, tuple[Choice, ...]]:
    """The choices to consider for every EinSum of a graph, by the name of its result.

    Args:
        model: The cost model; choices that exceed its memory limit are left out.
        pinned: For some results, exactly the labels to promote in their EinSum, with their tiles.
        only: Whether a choice is considered; the restriction of a baseline.
        tiles: For every result, the tiles greater than 1 that each label may have.
        cut: For some results, the labels that are divided among workers, with the tile of one worker.

    Raises:
        PlanError: An EinSum has no such choice.
    """
    return {
        name: _choices(model, einsum, _LabelConstraints(pinned.get(name), tiles.get(name, {}), cut.get(name, {})), only)
        for name, einsum in ((einsum.output.tensor, einsum) for einsum in model.graph.einsums)
    }


@dataclass(frozen=True, slots=True)
class _LabelConstraints:
    """Constraints on the choices of an EinSum; see `all_choices` for the attributes."""

    pinned: Mapping[str, int] | None
    tiles: Mapping[str, tuple[int, ...]]
    cut: Mapping[str, int]

    def choices(self, einsum: EinSum, bounds: Mapping[str, int]) -> Iterable[Choice]:
        """All choices that satisfy the constraints."""
        return all_choices(einsum, bounds, self.pinned, self.tiles, self.cut)

    def with_smaller(self, bounds: Mapping[str, int]) -> "_LabelConstraints":
        """A copy with more tiles, some of them small enough for low memory limits."""
        return replace(self, tiles=with_smaller_tiles(bounds, self.tiles))


def _choices(
    model: CostModel, einsum: EinSum, constraints: _LabelConstraints, only: Callable[[EinSum, Choice], bool] | None
) -> tuple[Choice, ...]:
    """The choices of one EinSum that keep to the memory limit; see `allowed_choices`."""

    def is_fitting(choice: Choice) -> bool:
        return model.needed_bytes(einsum, choice) <= model.memory.limit_bytes

    bounds = {label: model.graph.bound_of(einsum, label) for label in einsum.labels}
    candidates = [choice for choice in constraints.choices(einsum, bounds) if only is None or only(einsum, choice)]
    fitting = tuple(filter(is_fitting, candidates))
    if candidates:
        cheapest = min(candidates, key=lambda choice: model.single_pass_seconds(einsum, choice))
        # The cheapest choice exceeds the memory limit or needs passes, so smaller tiles may be cheaper.
        if not is_fitting(cheapest) or model.vertex_cost(einsum, cheapest).passes is not None:
            smaller = constraints.with_smaller(bounds).choices(einsum, bounds)
            candidates = [choice for choice in smaller if only is None or only(einsum, choice)]
            fitting = tuple(filter(is_fitting, candidates))
    if not fitting:
        raise PlanError(_no_choice_message(model, einsum, candidates))
    return fitting


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
) -> Iterable[Choice]:
    """All choices of an EinSum that satisfy the given constraints.

    Every label is demoted, promoted, or in one of its tiles. Labels that the program promotes stay so.
    The number of choices is limited as follows. If an EinSum has too many, tiles are left out. If it has many labels,
    those of the smallest bounds are promoted only together with all others; they are the same in all EinSums with the
    same labels. If it has few indices in all, but more than a few labels, all labels are promoted or none.

    Args:
        einsum: The EinSum.
        bounds: Bounds of its labels.
        pinned: Exactly the labels to promote, with their tiles.
        tiles: The tiles greater than 1 that each label may have.
        cut: Labels that are divided among workers; they are promoted, in these tiles or in divisors of them.

    Raises:
        PlanError: A pinned label is not in the EinSum, or must be demoted.
    """
    if pinned is not None:
        unknown = sorted(pinned.keys() - frozenset(einsum.labels))
        if unknown:
            raise PlanError(
                f"{einsum.output.tensor} has no label {unknown[0]} to promote; it has {', '.join(einsum.labels)}"
            )
        for label in einsum.demoted_labels:
            if label in pinned:
                raise PlanError(
                    f"{einsum.output.tensor} has {label} inside arrays, so {label} cannot be promoted in it"
                )
        return [tuple(pinned.get(label, DEMOTED) for label in einsum.labels)]
    fixed = fixed_tiles(einsum)
    untiled = [_label_tiles(label, fixed, cut) for label in einsum.labels]
    tiled = [
        options if label in fixed else (*options, *_fitting_tiles(tiles.get(label, ()), cut.get(label), options))
        for options, label in zip(untiled, einsum.labels, strict=True)
    ]
    free = sorted(frozenset(einsum.labels) - fixed.keys() - cut.keys(), key=lambda label: (-bounds[label], label))
    if len(einsum.labels) > MOST_ARRAY_AXES:
        return _choices_of_many_labels(einsum, free, fixed, cut)
    is_small = len(free) > _FEW_LABELS and math.prod(bounds.values()) <= _SMALL
    if not is_small and math.prod(map(len, tiled)) <= _MOST_TILINGS:
        return itertools.product(*tiled)
    if not is_small and len(free) <= MOST_LABELS:
        return itertools.product(*untiled)
    together = frozenset(free if is_small else free[MOST_LABELS:])  # all promoted, or none
    few = [(DEMOTED,) if label in together else options for label, options in zip(einsum.labels, untiled, strict=True)]
    return itertools.chain(itertools.product(*few), [tuple(fixed.get(label, 1) for label in einsum.labels)])


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


def _no_choice_message(model: CostModel, einsum: EinSum, candidates: list[Choice]) -> str:
    if not candidates:
        name = einsum.output.tensor
        if len(einsum.labels) > MOST_ARRAY_AXES:
            reason = f"it has {len(einsum.labels)} labels, and arrays have at most {MOST_ARRAY_AXES} axes"
            return f"no decomposition of {name} that the chosen optimizer allows is possible: {reason}"
        return f"no decomposition of {name} satisfies both the labels promoted by hand and the chosen optimizer"
    least = min(candidates, key=lambda choice: model.needed_bytes(einsum, choice))
    needed, limit = model.memory.total_bytes_for(model.needed_bytes(einsum, least)), model.memory.total_bytes
    written = write_einsum(einsum, promoted_tiles(einsum, least))
    return (
        f"{written} needs a memory_limit of at least {needed:,} bytes, more than the {limit:,} given, and every other "
        f"decomposition of {einsum.output.tensor} allowed here needs as much, in any number of passes; "
        "raise memory_limit or promote more labels"
    )

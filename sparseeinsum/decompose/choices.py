"""Decompose: which choices the search may consider for an EinSum."""

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from sparseeinsum.decompose.choice import Choice, promoted_tiles
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.tiling import SMALLEST_TILE, TILES, tiles_below
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinSum, write_einsum
from sparseeinsum.language.tensors import DEMOTED

_MOST_TILINGS = 1024  # choices of one EinSum, where its labels have tiles
MOST_LABELS = 8  # that are promoted or not one by one: their subsets are looked at for every two EinSums that meet

# An EinSum that has no more indices than this takes less time than to start an operator: of more labels than a few, all
# are promoted or none, lest to plan a network of small tensors take far longer than to compute it.
_SMALL = 1 << 14
_FEW_LABELS = 4


def allowed_choices(
    model: CostModel,
    pinned: Mapping[str, Mapping[str, int]],
    only: Callable[[EinSum, Choice], bool] | None = None,
    tiles: Mapping[str, Mapping[str, tuple[int, ...]]] = MappingProxyType({}),
    cut: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
) -> dict[str, tuple[Choice, ...]]:
    """Choices for every EinSum of a graph, by the name of its result.

    Args:
        model: Knows the sizes, and the memory: kernels and aggregation states get shares of it.
        pinned: For some results, exactly the labels to promote in the EinSum that computes them, and their tiles.
        only: What else a choice must satisfy; a baseline's restriction.
        tiles: For every result, tiles of several indices that labels may have.
        cut: For some results, labels that are cut among workers, and the tiles that one worker has of them.

    Raises:
        PlanError: An EinSum has no choice left.
    """
    return {
        name: _choices(model, einsum, _LabelConstraints(pinned.get(name), tiles.get(name, {}), cut.get(name, {})), only)
        for name, einsum in ((einsum.output.tensor, einsum) for einsum in model.graph.einsums)
    }


@dataclass(frozen=True, slots=True)
class _LabelConstraints:
    """What is wanted of the labels of an EinSum; see `all_choices`."""

    pinned: Mapping[str, int] | None
    tiles: Mapping[str, tuple[int, ...]]
    cut: Mapping[str, int]

    def choices(self, einsum: EinSum, bounds: Mapping[str, int]) -> Iterable[Choice]:
        """All that keep to it."""
        return all_choices(einsum, bounds, self.pinned, self.tiles, self.cut)

    def with_smaller(self, bounds: Mapping[str, int]) -> "_LabelConstraints":
        """The same with tiles among which there are some for any memory."""
        return replace(self, tiles=_with_smaller(bounds, self.tiles))


def _choices(
    model: CostModel, einsum: EinSum, wish: _LabelConstraints, only: Callable[[EinSum, Choice], bool] | None
) -> tuple[Choice, ...]:
    def is_fitting(choice: Choice) -> bool:
        return model.needed_bytes(einsum, choice) <= model.memory.limit_bytes

    bounds = {label: model.graph.bound_of(einsum, label) for label in einsum.labels}
    candidates = [choice for choice in wish.choices(einsum, bounds) if only is None or only(einsum, choice)]
    fitting = tuple(filter(is_fitting, candidates))
    if candidates:
        cheapest = min(candidates, key=lambda choice: model.single_pass_seconds(einsum, choice))
        # Memory makes the plan dearer: arrays in tiles need less.
        if not is_fitting(cheapest) or model.vertex_cost(einsum, cheapest).passes is not None:
            smaller = wish.with_smaller(bounds).choices(einsum, bounds)
            candidates = [choice for choice in smaller if only is None or only(einsum, choice)]
            fitting = tuple(filter(is_fitting, candidates))
    if not fitting:
        raise PlanError(_no_choice(model, einsum, candidates))
    return fitting


def _with_smaller(bounds: Mapping[str, int], tiles: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Tiles by label, and those among which there are some for any memory."""
    smaller = (*TILES, SMALLEST_TILE) if (3 + len(TILES)) ** len(bounds) <= _MOST_TILINGS else TILES
    return {label: tiles_below(bound, (*tiles.get(label, ()), *smaller)) for label, bound in bounds.items()}


def all_choices(
    einsum: EinSum,
    bounds: Mapping[str, int],
    pinned: Mapping[str, int] | None = None,
    tiles: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
    cut: Mapping[str, int] = MappingProxyType({}),
) -> Iterable[Choice]:
    """Every label demoted, promoted or in one of its tiles; those promoted by hand stay so, and those pinned alone.

    Of an EinSum that would have more choices than are looked at, the labels have no tiles; and of many labels, those of
    the smaller bounds are promoted only where all are, the same ones in all EinSums of the same labels. Of one that has
    few indices in all, that is so for all labels, if they are more than a few.

    Args:
        einsum: Of these labels.
        bounds: Of its labels.
        pinned: Exactly the labels to promote, with their tiles.
        tiles: That labels may have besides.
        cut: Labels that are cut among workers are promoted, in these tiles or in parts of them.

    Raises:
        PlanError: A label is pinned that the EinSum lacks.
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
    given = fixed_tiles(einsum)
    states = [_states(label, given, cut) for label in einsum.labels]
    tiled = [
        state if label in given else (*state, *_parts_of(tiles.get(label, ()), cut.get(label), state))
        for state, label in zip(states, einsum.labels, strict=True)
    ]
    free = sorted(frozenset(einsum.labels) - given.keys() - cut.keys(), key=lambda label: (-bounds[label], label))
    is_small = len(free) > _FEW_LABELS and math.prod(bounds.values()) <= _SMALL
    if not is_small and math.prod(map(len, tiled)) <= _MOST_TILINGS:
        return itertools.product(*tiled)
    if not is_small and len(free) <= MOST_LABELS:
        return itertools.product(*states)
    fixed = frozenset(free if is_small else free[MOST_LABELS:])
    few = [(DEMOTED,) if label in fixed else state for label, state in zip(einsum.labels, states, strict=True)]
    return itertools.chain(itertools.product(*few), [tuple(given.get(label, 1) for label in einsum.labels)])


def fixed_tiles(einsum: EinSum) -> dict[str, int]:
    """Tiles of the labels that are not free: those promoted by hand, and those that must lie inside arrays."""
    return dict(einsum.promoted) | dict.fromkeys(einsum.demoted_labels, DEMOTED)


def _states(label: str, given: Mapping[str, int], cut: Mapping[str, int]) -> tuple[int, ...]:
    if label in given:
        return (given[label],)
    return tuple(dict.fromkeys((1, cut[label]))) if label in cut else (DEMOTED, 1)


def _parts_of(tiles: Iterable[int], cut: int | None, known: Collection[int]) -> tuple[int, ...]:
    """Of some tiles those that a worker has whole."""
    return tuple(tile for tile in tiles if tile not in known and (cut is None or cut % tile == 0))


def _no_choice(model: CostModel, einsum: EinSum, candidates: list[Choice]) -> str:
    if not candidates:
        name = einsum.output.tensor
        return f"no decomposition of {name} keeps to what is promoted by hand and to the optimizer asked for"
    least = min(candidates, key=lambda choice: model.needed_bytes(einsum, choice))
    needed, given = model.memory.total_bytes_for(model.needed_bytes(einsum, least)), model.memory.total_bytes
    written = write_einsum(einsum, promoted_tiles(einsum, least))
    return (
        f"{written} needs a memory_limit of at least {needed:,} bytes, more than the {given:,} given, and every other "
        f"decomposition of {einsum.output.tensor} allowed here needs as much, in any number of passes; "
        "raise memory_limit or promote more labels"
    )

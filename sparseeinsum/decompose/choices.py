"""Decompose: which choices the search may consider for an EinSum."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Set
from types import MappingProxyType

from sparseeinsum.decompose.model import Choice, CostModel, promoted_labels, promoted_tiles
from sparseeinsum.decompose.tiling import TILES, tiles_below
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinSum, by_hand, write_einsum
from sparseeinsum.language.tensors import DEMOTED, keys_of

ChoicesOf = Callable[[EinSum], tuple[Choice, ...]]

_MOST_TILINGS = 1024  # choices of one EinSum, where its labels have tiles

# Rows that an engine hands to a kernel at once: DuckDB's vector (facts of duckdb.h, duckdb_vector_size).
VECTOR_ROWS = 2048


def allowed_choices(
    model: CostModel,
    memory_limit: int,
    pinned: Mapping[str, Mapping[str, int]],
    only: Callable[[Choice], bool] | None = None,
    tiles: Mapping[str, Mapping[str, tuple[int, ...]]] = MappingProxyType({}),
) -> dict[str, tuple[Choice, ...]]:
    """Choices for every EinSum of a graph, by the name of its result.

    Args:
        model: Knows the sizes.
        memory_limit: Bytes that a run may take; kernels and aggregation states get shares of it.
        pinned: For some results, exactly the labels to promote in the EinSum that computes them, and their tiles.
        only: What else a choice must satisfy; a baseline's restriction.
        tiles: For every result, tiles of several indices that labels may have.

    Raises:
        PlanError: An EinSum has no choice left.
    """
    return {
        name: _choices(model, einsum, memory_limit, pinned.get(name), tiles.get(name, {}), only)
        for name, einsum in ((einsum.output.tensor, einsum) for einsum in model.graph.einsums)
    }


def _choices(
    model: CostModel,
    einsum: EinSum,
    memory_limit: int,
    pinned: Mapping[str, int] | None,
    tiles: Mapping[str, tuple[int, ...]],
    only: Callable[[Choice], bool] | None,
) -> tuple[Choice, ...]:
    def is_fitting(choice: Choice) -> bool:
        return _needed_bytes(model, einsum, choice) <= memory_limit

    candidates = [choice for choice in all_choices(einsum, pinned, tiles) if only is None or only(choice)]
    fitting = tuple(filter(is_fitting, candidates))
    if candidates and len(fitting) < len(candidates):
        cheapest = min(candidates, key=lambda choice: model.vertex_cost(einsum, choice).seconds)
        if not is_fitting(cheapest):  # memory would make the plan dearer: arrays in tiles need less
            smaller = all_choices(einsum, pinned, _with_smaller(model, einsum, tiles))
            candidates = [choice for choice in smaller if only is None or only(choice)]
            fitting = tuple(filter(is_fitting, candidates))
    if not fitting:
        raise PlanError(_no_choice(model, einsum, candidates, memory_limit))
    return fitting


def _with_smaller(model: CostModel, einsum: EinSum, tiles: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Tiles by label, and those among which there are some for any memory."""
    bounds = {label: model.graph.bound_of(einsum, label) for label in einsum.labels}
    return {label: tiles_below(bound, (*tiles.get(label, ()), *TILES)) for label, bound in bounds.items()}


def all_choices(
    einsum: EinSum,
    pinned: Mapping[str, int] | None = None,
    tiles: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
) -> Iterable[Choice]:
    """Every label demoted, promoted or in one of its tiles; those promoted by hand stay so, and those pinned alone.

    Of an EinSum that would have more choices than are looked at, the labels have no tiles.

    Raises:
        PlanError: A label is pinned that the EinSum lacks.
    """
    if pinned is not None:
        unknown = sorted(pinned.keys() - frozenset(einsum.labels))
        if unknown:
            raise PlanError(
                f"{einsum.output.tensor} has no label {unknown[0]} to promote; it has {', '.join(einsum.labels)}"
            )
        return [tuple(pinned.get(label, DEMOTED) for label in einsum.labels)]
    given = by_hand(einsum)
    states = [(given[label],) if label in given else (DEMOTED, 1) for label in einsum.labels]
    tiled = [
        state if label in given else (*state, *tiles.get(label, ()))
        for state, label in zip(states, einsum.labels, strict=True)
    ]
    return itertools.product(*(tiled if math.prod(map(len, tiled)) <= _MOST_TILINGS else states))


def _needed_bytes(model: CostModel, einsum: EinSum, choice: Choice) -> float:
    """The memory limit that a choice needs: a vector may take a quarter of it, all aggregation states a half."""
    return max(4 * vector_bytes(model, einsum, choice), 2 * state_bytes(model, einsum, choice))


def vector_bytes(model: CostModel, einsum: EinSum, choice: Choice) -> int:
    """Bytes that one call of an EinSum's kernel takes for a whole vector of rows: operands and result.

    An operand with fewer tuples than a vector has rows is counted as often as it has tuples; one that is read by index
    is not copied. A sum of products adds to its groups in place, and has no result a row.
    """
    promoted = promoted_tiles(einsum, choice)
    adds_in_place = einsum.is_multilinear and _is_grouped(einsum, promoted.keys())
    total, indexed = 0, model.vertex_cost(einsum, choice).indexed
    joined = [operand for index, operand in enumerate(einsum.operands) if index != indexed]
    for reference in joined if adds_in_place else (*joined, einsum.output):
        keys = promoted.keys() & set(reference.labels if reference is not einsum.output else einsum.labels)
        tuples = math.prod(max(keys_of(promoted[label], model.graph.bound_of(einsum, label)), 1) for label in keys)
        total += min(tuples, VECTOR_ROWS) * model.array_bytes(einsum, reference, choice)
    return total


def state_bytes(model: CostModel, einsum: EinSum, choice: Choice) -> float:
    """Bytes of the aggregation states of an EinSum, which cannot be spilled; 0 where it aggregates no tuples."""
    if not _is_grouped(einsum, promoted_labels(einsum, choice)):
        return 0.0
    cost = model.vertex_cost(einsum, choice)
    groups = cost.tuples if cost.tuples < cost.joined / 2 else cost.joined  # T_agg stops at half of the pairs
    return groups * model.array_bytes(einsum, einsum.output, choice)


def _is_grouped(einsum: EinSum, promoted: Set[str]) -> bool:
    """Whether tuples are aggregated: some promoted label is none of the result's."""
    return not promoted <= frozenset(einsum.output.labels)


def _no_choice(model: CostModel, einsum: EinSum, candidates: list[Choice], memory_limit: int) -> str:
    if not candidates:
        name = einsum.output.tensor
        return f"no decomposition of {name} keeps to what is promoted by hand and to the optimizer asked for"
    least = min(candidates, key=lambda choice: _needed_bytes(model, einsum, choice))
    return (
        f"{write_einsum(einsum, promoted_tiles(einsum, least))} needs a memory_limit of "
        f"{_needed_bytes(model, einsum, least):,.0f} bytes, more than the {memory_limit:,} given, and every other "
        f"decomposition of {einsum.output.tensor} allowed here needs as much; raise memory_limit or promote more labels"
    )

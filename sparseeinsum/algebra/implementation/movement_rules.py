"""Algebra, implementation: rules about what moves between sites: R2-1 to R2-7 of table 2.

R2-5 and R2-7 are printed with the inclusions the wrong way round. Here the parts of keys that a two-phase aggregation
shuffles by are among those that groups share (R2-5), and a join need not be shuffled again where it is partitioned by
joined keys that are all among those to shuffle by (R2-7).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from sparseeinsum.algebra.implementation.placements import PlacementKind
from sparseeinsum.algebra.implementation.site_operators import (
    Broadcast,
    LocalAggregation,
    LocalFilter,
    LocalJoin,
    LocalMap,
    Shuffle,
    SitePlan,
)
from sparseeinsum.errors import AlgebraError


def skip_movement(plan: SitePlan) -> Iterator[SitePlan]:
    """R2-1: only the last of several movements counts; one that leaves tuples where they are is none."""
    match plan:
        case Broadcast(Broadcast(given) | Shuffle(given)):
            yield Broadcast(given)
        case Shuffle(Broadcast(given) | Shuffle(given), dims):
            yield Shuffle(given, dims)
    if isinstance(plan, Broadcast | Shuffle) and moves_nothing(plan):
        yield plan.input


def moves_nothing(plan: Broadcast | Shuffle) -> bool:
    """Whether all tuples are already where they are to go, and nowhere else."""
    given = plan.input.placement
    if isinstance(plan, Broadcast):
        return given.is_everywhere
    return given.kind == PlacementKind.PARTITIONED and given.dims == plan.dims


def exchange_movement_and_filter(plan: SitePlan) -> Iterator[SitePlan]:
    """R2-2: a filter before a movement, or after it."""
    match plan:
        case Broadcast(LocalFilter(given, predicate)):
            yield LocalFilter(Broadcast(given), predicate)
        case LocalFilter(Broadcast(given), predicate):
            yield Broadcast(LocalFilter(given, predicate))
        case Shuffle(LocalFilter(given, predicate), dims):
            yield LocalFilter(Shuffle(given, dims), predicate)
        case LocalFilter(Shuffle(given, dims), predicate):
            yield Shuffle(LocalFilter(given, predicate), dims)


def exchange_movement_and_map(plan: SitePlan) -> Iterator[SitePlan]:
    """R2-3: a map before a movement, or after it; before a shuffle only one that leaves keys as they are."""
    match plan:
        case Broadcast(LocalMap(given, keys, kernel)):
            yield LocalMap(Broadcast(given), keys, kernel)
        case LocalMap(Broadcast(given), keys, kernel):
            yield Broadcast(LocalMap(given, keys, kernel))
        case Shuffle(LocalMap(given, keys, kernel), dims) if keys.is_identity:
            yield LocalMap(Shuffle(given, dims), keys, kernel)
        case LocalMap(Shuffle(given, dims), keys, kernel) if keys.is_identity:
            yield Shuffle(LocalMap(given, keys, kernel), dims)


def skip_shuffle_before_aggregation(plan: SitePlan) -> Iterator[SitePlan]:
    """R2-4: no shuffle where tuples of a group are on one site as they are."""
    match plan:
        case LocalAggregation(Shuffle(given, dims), group_by, fold) if set(dims) <= set(group_by):
            if given.placement.is_within(group_by):
                yield LocalAggregation(given, group_by, fold)


def aggregate_in_two_phases(plan: SitePlan) -> Iterator[SitePlan]:
    """R2-5: tuples of a group are folded where they are, then shuffled, then folded again."""
    match plan:
        case LocalAggregation(Shuffle(given, dims), group_by, fold) if set(dims) <= set(group_by):
            if fold.is_decomposable and given.placement.pending is None:
                places = tuple(group_by.index(position) for position in dims)
                first = LocalAggregation(given, group_by, fold)
                yield LocalAggregation(Shuffle(first, places), tuple(range(len(group_by))), fold)


def join_in_other_ways(plan: SitePlan) -> Iterator[SitePlan]:
    """R2-6: a join broadcasts its left side or its right one, or shuffles both by the keys that it joins on."""
    if not isinstance(plan, LocalJoin):
        return
    left, right = _unmoved(plan.left), _unmoved(plan.right)
    is_moved = left is not plan.left or right is not plan.right
    if is_moved:
        ways = (
            (Broadcast(left), right),
            (left, Broadcast(right)),
            (Shuffle(left, plan.left_keys), Shuffle(right, plan.right_keys)),
        )
        yield from joins_of(plan, ways)


def joins_of(plan: LocalJoin, ways: Iterable[tuple[SitePlan, SitePlan]]) -> Iterator[SitePlan]:
    """The join of other sides, of those that meet."""
    for left, right in ways:
        try:
            yield replace(plan, left=left, right=right)
        except AlgebraError:  # an outer join that cannot be computed in this way
            continue


def _unmoved(plan: SitePlan) -> SitePlan:
    return plan.input if isinstance(plan, Broadcast | Shuffle) else plan


def skip_shuffle_after_join(plan: SitePlan) -> Iterator[SitePlan]:
    """R2-7: no shuffle of a join that is partitioned by joined keys which are among those to shuffle by."""
    match plan:
        case Shuffle(LocalJoin(left=Shuffle(), right=Shuffle(), keys=None) as join, dims):
            if join.placement.kind == PlacementKind.PARTITIONED and set(join.placement.dims) <= set(dims):
                yield join


MOVEMENT_RULES = {
    "R2-1": skip_movement,
    "R2-2": exchange_movement_and_filter,
    "R2-3": exchange_movement_and_map,
    "R2-4": skip_shuffle_before_aggregation,
    "R2-5": aggregate_in_two_phases,
    "R2-6": join_in_other_ways,
    "R2-7": skip_shuffle_after_join,
}

"""Algebra, implementation: rules of what is sent between sites: R2-1 to R2-7 of table 2.

The paper prints R2-5 and R2-7 with the inclusions reversed. Here, a two-phase aggregation shuffles by parts of keys
that are among those that groups share (R2-5), and a join is not shuffled again if it is partitioned by joined keys that
are all among those to shuffle by (R2-7).
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from sparseeinsum.algebra.implementation.site_operators import (
    Broadcast,
    LocalAggregation,
    LocalFilter,
    LocalJoin,
    LocalMap,
    Shuffle,
    SitePlan,
    has_groups_on_sites,
)
from sparseeinsum.decompose.places.distribution import Hashed, is_within
from sparseeinsum.errors import AlgebraError


def skip_movement(plan: SitePlan) -> Iterator[SitePlan]:
    """R2-1: only the last of several transfers counts; a transfer of tuples to where they are is left out."""
    match plan:
        case Broadcast(Broadcast(operand) | Shuffle(operand)):
            yield Broadcast(operand)
        case Shuffle(Broadcast(operand) | Shuffle(operand), dims):
            yield Shuffle(operand, dims)
    if isinstance(plan, Broadcast | Shuffle) and moves_nothing(plan):
        yield plan.input


def moves_nothing(plan: Broadcast | Shuffle) -> bool:
    """Whether all tuples are already on the sites to which they are sent, and on no others."""
    return plan.distribution == plan.input.distribution


def exchange_movement_and_filter(plan: SitePlan) -> Iterator[SitePlan]:
    """R2-2: a filter and a transfer change places."""
    match plan:
        case Broadcast(LocalFilter(operand, predicate)):
            yield LocalFilter(Broadcast(operand), predicate)
        case LocalFilter(Broadcast(operand), predicate):
            yield Broadcast(LocalFilter(operand, predicate))
        case Shuffle(LocalFilter(operand, predicate), dims):
            yield LocalFilter(Shuffle(operand, dims), predicate)
        case LocalFilter(Shuffle(operand, dims), predicate):
            yield Shuffle(LocalFilter(operand, predicate), dims)


def exchange_movement_and_map(plan: SitePlan) -> Iterator[SitePlan]:
    """R2-3: a map and a transfer change places; if the transfer is a shuffle, the map must leave keys as they are."""
    match plan:
        case Broadcast(LocalMap(operand, keys, kernel)):
            yield LocalMap(Broadcast(operand), keys, kernel)
        case LocalMap(Broadcast(operand), keys, kernel):
            yield Broadcast(LocalMap(operand, keys, kernel))
        case Shuffle(LocalMap(operand, keys, kernel), dims) if keys.is_identity:
            yield LocalMap(Shuffle(operand, dims), keys, kernel)
        case LocalMap(Shuffle(operand, dims), keys, kernel) if keys.is_identity:
            yield Shuffle(LocalMap(operand, keys, kernel), dims)


def skip_shuffle_before_aggregation(plan: SitePlan) -> Iterator[SitePlan]:
    """R2-4: a shuffle is left out if the tuples of every group are on one site without it."""
    match plan:
        case LocalAggregation(Shuffle(operand, dims), group_by, fold) if set(dims) <= set(group_by):
            if has_groups_on_sites(operand, group_by):
                yield LocalAggregation(operand, group_by, fold)


def aggregate_in_two_phases(plan: SitePlan) -> Iterator[SitePlan]:
    """R2-5: tuples of a group are folded on every site, then shuffled, then folded again."""
    match plan:
        case LocalAggregation(Shuffle(operand, dims), group_by, fold) if set(dims) <= set(group_by):
            if fold.is_decomposable and operand.pending is None:
                dims_of_groups = tuple(group_by.index(position) for position in dims)
                first = LocalAggregation(operand, group_by, fold)
                yield LocalAggregation(Shuffle(first, dims_of_groups), tuple(range(len(group_by))), fold)


def move_other_sides_of_join(plan: SitePlan) -> Iterator[SitePlan]:
    """R2-6: a join broadcasts its left side or its right side, or shuffles both by the joined keys."""
    if not isinstance(plan, LocalJoin):
        return
    left, right = _unmoved(plan.left), _unmoved(plan.right)
    has_transfer = left is not plan.left or right is not plan.right
    if has_transfer:
        sides = (
            (Broadcast(left), right),
            (left, Broadcast(right)),
            (Shuffle(left, plan.left_keys), Shuffle(right, plan.right_keys)),
        )
        yield from joins_of(plan, sides)


def joins_of(plan: LocalJoin, sides: Iterable[tuple[SitePlan, SitePlan]]) -> Iterator[SitePlan]:
    """The join of other sides, for those pairs that it can join."""
    for left, right in sides:
        try:
            yield replace(plan, left=left, right=right)
        except AlgebraError:  # an outer join cannot be computed of these sides
            continue


def _unmoved(plan: SitePlan) -> SitePlan:
    return plan.input if isinstance(plan, Broadcast | Shuffle) else plan


def skip_shuffle_after_join(plan: SitePlan) -> Iterator[SitePlan]:
    """R2-7: no shuffle after a join that is partitioned by joined keys which are among those to shuffle by."""
    match plan:
        case Shuffle(LocalJoin(left=Shuffle(), right=Shuffle(), keys=None) as join, dims):
            if isinstance(join.distribution, Hashed) and is_within(join.distribution, dims):
                yield join


MOVEMENT_RULES = {
    "R2-1": skip_movement,
    "R2-2": exchange_movement_and_filter,
    "R2-3": exchange_movement_and_map,
    "R2-4": skip_shuffle_before_aggregation,
    "R2-5": aggregate_in_two_phases,
    "R2-6": move_other_sides_of_join,
    "R2-7": skip_shuffle_after_join,
}

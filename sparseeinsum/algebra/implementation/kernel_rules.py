"""Algebra, implementation: rules that compose kernels and predicates, and move them: R1-1 to R1-7 of table 2.

Each takes a plan and gives those that equal it by the rule, if it applies to the operator at the root: the same keys
and arrays, wherever they lie.
"""

from collections.abc import Iterator
from dataclasses import replace

from sparseeinsum.algebra.implementation.site_operators import (
    LocalAggregation,
    LocalFilter,
    LocalJoin,
    LocalMap,
    SitePlan,
    transformed,
)
from sparseeinsum.algebra.relational.compositions import OperandwiseKernel, compose
from sparseeinsum.algebra.relational.folds import MappedFold
from sparseeinsum.algebra.relational.kernels import commutes
from sparseeinsum.algebra.relational.keys import KeyPart, KeyPredicate
from sparseeinsum.semantics.exactness import JoinKind


def merge_filters(plan: SitePlan) -> Iterator[SitePlan]:
    """R1-1: two filters are one of both conditions."""
    match plan:
        case LocalFilter(LocalFilter(given, first), second):
            yield LocalFilter(given, second.both(first))


def merge_maps(plan: SitePlan) -> Iterator[SitePlan]:
    """R1-2: two maps are one, where each makes one tuple of one."""
    match plan:
        case LocalMap(LocalMap(given, inner_keys, inner), outer_keys, outer) if inner.is_single and outer.is_single:
            yield LocalMap(given, outer_keys.after(inner_keys), compose(outer, inner))


def exchange_map_and_filter(plan: SitePlan) -> Iterator[SitePlan]:
    """R1-3: a map that leaves keys as they are, and a filter, in either order."""
    match plan:
        case LocalMap(LocalFilter(given, predicate), keys, kernel) if keys.is_identity:
            yield LocalFilter(LocalMap(given, keys, kernel), predicate)
        case LocalFilter(LocalMap(given, keys, kernel), predicate) if keys.is_identity:
            yield LocalMap(LocalFilter(given, predicate), keys, kernel)


def compose_map_with_aggregation(plan: SitePlan) -> Iterator[SitePlan]:
    """R1-4: a map of arrays after an aggregation, in it: once at the end, or of every array where it commutes."""
    match plan:
        case LocalMap(LocalAggregation(given, group_by, fold) as inner, keys, kernel) if keys.is_identity:
            is_whole = inner.placement.pending is None and given.placement.pending is None
            if is_whole and not isinstance(fold, MappedFold):
                yield LocalAggregation(given, group_by, MappedFold(fold, after=kernel))
            if commutes(kernel, fold.law):
                yield LocalAggregation(transformed(given, kernel), group_by, fold)


def exchange_filter_and_aggregation(plan: SitePlan) -> Iterator[SitePlan]:
    """R1-5: a filter of groups, and of tuples by the parts of their keys that groups share."""
    match plan:
        case LocalFilter(LocalAggregation(given, group_by, fold), predicate):
            below = predicate.of(given.type.arity, tuple(map(KeyPart, group_by)))
            yield LocalAggregation(LocalFilter(given, below), group_by, fold)
        case LocalAggregation(LocalFilter(given, predicate), group_by, fold) if predicate.positions <= set(group_by):
            parts = _places(given.type.arity, {position: at for at, position in enumerate(group_by)})
            yield LocalFilter(LocalAggregation(given, group_by, fold), predicate.of(len(group_by), parts))


def _places(arity: int, found: dict[int, int]) -> tuple[KeyPart, ...]:
    """Where the parts of a key stand elsewhere; of those that stand nowhere, nothing may be asked."""
    return tuple(KeyPart(found.get(position, 0)) for position in range(arity))


def push_filter_into_join(plan: SitePlan) -> Iterator[SitePlan]:
    """R1-6: a filter that looks at keys of one side alone, before the join; on both sides, if they are joined."""
    match plan:
        case LocalFilter(LocalJoin(kind=JoinKind.INNER, keys=None) as join, predicate):
            left = _of_left_keys(join, predicate)
            right = _of_right_keys(join, predicate)
            if left is not None or right is not None:
                yield with_filters(join, left, right)


def _of_left_keys(join: LocalJoin, predicate: KeyPredicate) -> KeyPredicate | None:
    """The same of the left side's keys, if it looks at no others."""
    arity = join.left.type.arity
    if not predicate.positions <= set(range(arity)):
        return None
    return predicate.of(arity, tuple(map(KeyPart, range(join.type.arity))))


def _of_right_keys(join: LocalJoin, predicate: KeyPredicate) -> KeyPredicate | None:
    """The same of the right side's keys, if it looks at no others."""
    arity = join.right.type.arity
    found = {join.pairing.right_position(position): position for position in range(arity)}
    if not predicate.positions <= found.keys():
        return None
    return predicate.of(arity, _places(join.type.arity, found))


def with_filters(join: LocalJoin, left: KeyPredicate | None, right: KeyPredicate | None) -> LocalJoin:
    """The join of what filters leave of its sides."""
    return replace(
        join,
        left=join.left if left is None else LocalFilter(join.left, left),
        right=join.right if right is None else LocalFilter(join.right, right),
    )


def compose_map_with_join(plan: SitePlan) -> Iterator[SitePlan]:
    """R1-7: a map that makes one tuple of one, in the join before it: of pairs, or of each side where it commutes."""
    match plan:
        case LocalMap(LocalJoin() as join, keys, kernel) if kernel.is_single:
            mapped = keys if join.keys is None else keys.after(join.keys)
            kept = None if mapped.is_identity else mapped
            yield replace(join, kernel=compose(kernel, join.kernel), keys=kept)
            if commutes(kernel, join.kernel.law):
                yield replace(join, kernel=OperandwiseKernel(join.kernel, kernel), keys=kept)


KERNEL_RULES = {
    "R1-1": merge_filters,
    "R1-2": merge_maps,
    "R1-3": exchange_map_and_filter,
    "R1-4": compose_map_with_aggregation,
    "R1-5": exchange_filter_and_aggregation,
    "R1-6": push_filter_into_join,
    "R1-7": compose_map_with_join,
}

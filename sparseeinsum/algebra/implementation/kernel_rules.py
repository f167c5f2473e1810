"""Algebra, implementation: rules that compose and move kernels and predicates: R1-1 to R1-7 of table 2.

A rule takes a plan and yields plans with the same keys and arrays, on whatever sites, if it applies to the operator at
the root.
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
    """R1-1: two filters become one with the conjunction of their predicates."""
    match plan:
        case LocalFilter(LocalFilter(operand, first), second):
            yield LocalFilter(operand, second.conjunction(first))


def merge_maps(plan: SitePlan) -> Iterator[SitePlan]:
    """R1-2: two maps become one, if each makes one tuple of one."""
    match plan:
        case LocalMap(LocalMap(operand, inner_keys, inner), outer_keys, outer) if inner.is_single and outer.is_single:
            yield LocalMap(operand, outer_keys.after(inner_keys), compose(outer, inner))


def exchange_map_and_filter(plan: SitePlan) -> Iterator[SitePlan]:
    """R1-3: a map that leaves keys as they are and a filter change places."""
    match plan:
        case LocalMap(LocalFilter(operand, predicate), keys, kernel) if keys.is_identity:
            yield LocalFilter(LocalMap(operand, keys, kernel), predicate)
        case LocalFilter(LocalMap(operand, keys, kernel), predicate) if keys.is_identity:
            yield LocalMap(LocalFilter(operand, predicate), keys, kernel)


def compose_map_with_aggregation(plan: SitePlan) -> Iterator[SitePlan]:
    """R1-4: a map after an aggregation becomes part of it: of its result, or of every array if it commutes."""
    match plan:
        case LocalMap(LocalAggregation(operand, group_by, fold) as inner, keys, kernel) if keys.is_identity:
            is_complete = inner.pending is None and operand.pending is None
            if is_complete and not isinstance(fold, MappedFold):
                yield LocalAggregation(operand, group_by, MappedFold(fold, after=kernel))
            if commutes(kernel, fold):
                yield LocalAggregation(transformed(operand, kernel), group_by, fold)


def exchange_filter_and_aggregation(plan: SitePlan) -> Iterator[SitePlan]:
    """R1-5: a filter of groups becomes one of tuples by the parts of keys that groups share, and vice versa."""
    match plan:
        case LocalFilter(LocalAggregation(operand, group_by, fold), predicate):
            inner_predicate = predicate.substituted(operand.type.arity, tuple(map(KeyPart, group_by)))
            yield LocalAggregation(LocalFilter(operand, inner_predicate), group_by, fold)
        case LocalAggregation(LocalFilter(operand, predicate), group_by, fold) if predicate.positions <= set(group_by):
            parts = _key_parts(operand.type.arity, {position: at for at, position in enumerate(group_by)})
            yield LocalFilter(LocalAggregation(operand, group_by, fold), predicate.substituted(len(group_by), parts))


def _key_parts(arity: int, positions: dict[int, int]) -> tuple[KeyPart, ...]:
    """For every part of a key, the part at its position elsewhere; parts without one are not read."""
    return tuple(KeyPart(positions.get(position, 0)) for position in range(arity))


def push_filter_into_join(plan: SitePlan) -> Iterator[SitePlan]:
    """R1-6: a filter by keys of one side moves before the join; on both sides, if these keys are joined."""
    match plan:
        case LocalFilter(LocalJoin(kind=JoinKind.INNER, keys=None) as join, predicate):
            left = _on_left_keys(join, predicate)
            right = _on_right_keys(join, predicate)
            if left is not None or right is not None:
                yield with_filters(join, left, right)


def _on_left_keys(join: LocalJoin, predicate: KeyPredicate) -> KeyPredicate | None:
    """The predicate on the left keys; None if it reads other parts."""
    arity = join.left.type.arity
    if not predicate.positions <= set(range(arity)):
        return None
    return predicate.substituted(arity, tuple(map(KeyPart, range(join.type.arity))))


def _on_right_keys(join: LocalJoin, predicate: KeyPredicate) -> KeyPredicate | None:
    """The predicate on the right keys; None if it reads other parts."""
    arity = join.right.type.arity
    positions = {join.pairing.right_position(position): position for position in range(arity)}
    if not predicate.positions <= positions.keys():
        return None
    return predicate.substituted(arity, _key_parts(join.type.arity, positions))


def with_filters(join: LocalJoin, left: KeyPredicate | None, right: KeyPredicate | None) -> LocalJoin:
    """The join with its sides filtered; None stands for no filter."""
    return replace(
        join,
        left=join.left if left is None else LocalFilter(join.left, left),
        right=join.right if right is None else LocalFilter(join.right, right),
    )


def compose_map_with_join(plan: SitePlan) -> Iterator[SitePlan]:
    """R1-7: a map of one tuple to one becomes part of the join: of pairs, or of each side if it commutes."""
    match plan:
        case LocalMap(LocalJoin() as join, keys, kernel) if kernel.is_single:
            mapped = keys if join.keys is None else keys.after(join.keys)
            key_map = None if mapped.is_identity else mapped
            yield replace(join, kernel=compose(kernel, join.kernel), keys=key_map)
            if commutes(kernel, join.kernel):
                yield replace(join, kernel=OperandwiseKernel(join.kernel, kernel), keys=key_map)


KERNEL_RULES = {
    "R1-1": merge_filters,
    "R1-2": merge_maps,
    "R1-3": exchange_map_and_filter,
    "R1-4": compose_map_with_aggregation,
    "R1-5": exchange_filter_and_aggregation,
    "R1-6": push_filter_into_join,
    "R1-7": compose_map_with_join,
}

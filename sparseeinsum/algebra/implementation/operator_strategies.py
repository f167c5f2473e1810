"""Algebra, implementation: the strategies to compute one operator: where inputs must be, where the result is."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from sparseeinsum.algebra.implementation.compile import local_operator
from sparseeinsum.algebra.implementation.counts import TupleCounts
from sparseeinsum.algebra.implementation.product_rules import AggregatedJoin
from sparseeinsum.algebra.implementation.site_operators import (
    Broadcast,
    LocalAggregation,
    LocalJoin,
    PlacedInput,
    Shuffle,
    SitePlan,
    has_groups_on_sites,
    in_type,
)
from sparseeinsum.algebra.relational.folds import Fold
from sparseeinsum.algebra.relational.relational_expressions import (
    Aggregation,
    Complete,
    Concat,
    Expression,
    Input,
    Join,
)
from sparseeinsum.algebra.relational.types import RelationType
from sparseeinsum.decompose.places.distribution import Distribution, Hashed, Replicated, Scattered
from sparseeinsum.errors import AlgebraError
from sparseeinsum.semantics.exactness import JoinKind

_MAX_DIMS = 4  # parts of a key of which all combinations are tried

Goal = Hashed | Replicated  # distributions into which tuples can be sent


class Unplaced(Enum):
    """What is no distribution, but takes its place in a strategy.

    Attributes:
        ANYWHERE: An input may have any distribution.
        APART: The result of a join is not computed: both sides go to the aggregation that reads it.
    """

    ANYWHERE = "anywhere"
    APART = "apart"


Place: TypeAlias = Distribution | Unplaced


@dataclass(frozen=True, slots=True)
class OperatorStrategy:
    """One strategy to compute an operator.

    Attributes:
        required: For every input of the operator, where it must be.
        inputs: The relations that the plan reads, in place of which the plans of the operator's inputs are put.
        plans: The plan of the result; the inputs if the result is not computed, but its reader reads these.
        place: Where the result is.
    """

    required: tuple[Place, ...]
    inputs: tuple[PlacedInput, ...]
    plans: tuple[SitePlan, ...]
    place: Place

    @classmethod
    def of_plan(cls, inputs: tuple[PlacedInput, ...], plan: SitePlan) -> "OperatorStrategy":
        """A plan whose inputs must be where it reads them."""
        return cls(tuple(operand.distribution for operand in inputs), inputs, (plan,), plan.distribution)


@dataclass(frozen=True, slots=True)
class PlacedRelation:
    """An input of an operator: its type and size, and the distributions that it may have before it is sent anywhere."""

    type: RelationType
    counts: TupleCounts
    places: tuple[Distribution, ...]

    def at(self, place: Distribution) -> PlacedInput:
        """The relation where it may be, or be sent to, as the input of a plan."""
        return PlacedInput(Input("", self.type, self.counts.tuples, self.counts.distinct), place)

    def sent(self, positions: Sequence[int]) -> list[Distribution]:
        """Where it can be, and where it can be sent to: everywhere, and by parts of its key at these positions."""
        return list(dict.fromkeys((*self.places, *_goals(self.type, positions))))


def _goals(relation_type: RelationType, positions: Sequence[int]) -> list[Goal]:
    """Where tuples can be sent: everywhere, and by parts of their keys at these positions."""
    return [Replicated(), *(by_parts(relation_type, dims) for dims in _subsets(positions))]


def by_parts(relation_type: RelationType, dims: Sequence[int]) -> Hashed:
    """The distribution by some parts of a key; of several equal parts, it names one."""
    return Hashed(*dict.fromkeys(relation_type.first_equal[position] for position in dims))


def moved(plan: SitePlan, place: Place) -> SitePlan:
    """The plan with its result sent to a place; unchanged, if it is there already, or may be anywhere.

    Raises:
        AlgebraError: It cannot be sent there.
    """
    if isinstance(place, Unplaced) or place == plan.distribution:
        return plan
    match place:
        case Replicated():
            return Broadcast(plan)
        case Hashed(axes):
            return plan if in_type(place, plan.type) == plan.distribution else Shuffle(plan, axes)
        case _:
            raise AlgebraError(f"a relation {plan.distribution} cannot be sent {place}")


def _subsets(positions: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The parts of a key by which to partition: all combinations of a few; of many, none, each alone, and all."""
    if len(positions) > _MAX_DIMS:
        yield from ((), *((position,) for position in positions), tuple(positions))
        return
    for size in range(len(positions) + 1):
        yield from itertools.combinations(positions, size)


def sending_strategies(relation: PlacedRelation) -> Iterator[OperatorStrategy]:
    """A relation that is sent somewhere before several operators read it, or is read where it is."""
    for place in relation.sent(range(relation.type.arity)):
        placed = relation.at(place)
        yield OperatorStrategy((place,), (placed,), (placed,), place)


def is_product(node: Expression) -> bool:
    """Whether RMM can compute an aggregation of a relation: it is an inner join."""
    return isinstance(node, Join) and node.kind == JoinKind.INNER


def strategies_of_operator(
    node: Expression, inputs: Sequence[PlacedRelation], sides: Sequence[PlacedRelation], may_stay_apart: bool
) -> Iterator[OperatorStrategy]:
    """The strategies to compute an operator.

    Args:
        node: The operator, which has inputs.
        inputs: Its inputs.
        sides: The sides of a join that it aggregates, if nothing else reads the join; else none.
        may_stay_apart: Whether it is a join whose sides may go to the only operator that reads it.
    """
    match node:
        case Join():
            yield from _joins(node, *inputs)
            if may_stay_apart:
                sides_apart = tuple(side.at(Scattered()) for side in inputs)
                yield OperatorStrategy((Unplaced.ANYWHERE, Unplaced.ANYWHERE), sides_apart, sides_apart, Unplaced.APART)
        case Aggregation() | Concat():
            yield from _aggregations(node, inputs[0])
            if sides:
                yield _replicated_join(node, *sides)
        case _:
            (relation,) = inputs
            is_sent = isinstance(node, Complete)
            for place in relation.sent(range(node.type.arity)) if is_sent else relation.places:
                placed = relation.at(place)
                try:
                    yield OperatorStrategy.of_plan((placed,), local_operator(node, (placed,)))
                except AlgebraError:  # no site knows which tuples of a scattered relation are absent
                    continue


def _joins(node: Join, left: PlacedRelation, right: PlacedRelation) -> Iterator[OperatorStrategy]:
    """R2-6, partitioned by any of the joined keys or as a side is already; and one side everywhere."""
    lefts, rights = (side.sent(range(side.type.arity)) for side in (left, right))
    pairs: list[tuple[Distribution, Distribution]] = [(Replicated(), place) for place in rights]
    pairs += [(place, Replicated()) for place in lefts]
    joined = list(zip(node.left_keys, node.right_keys, strict=True))
    to_right = {equal: second for first, second in joined for equal in left.type.equal_positions((first,))}
    to_left = {equal: first for first, second in joined for equal in right.type.equal_positions((second,))}
    pairs += [(place, other) for place in lefts if (other := _joined_place(place, to_right, right)) is not None]
    pairs += [(other, place) for place in rights if (other := _joined_place(place, to_left, left)) is not None]
    for first, second in dict.fromkeys(pairs):
        placed = left.at(first), right.at(second)
        try:
            yield OperatorStrategy.of_plan(placed, local_operator(node, placed))
        except AlgebraError:  # tuples that join are on different sites
            continue


def _joined_place(place: Distribution, to_other: dict[int, int], other: PlacedRelation) -> Hashed | None:
    """The distribution of the other side whose tuples meet those of a side in this one; None if there is none."""
    if not isinstance(place, Hashed) or not set(place.axes) <= to_other.keys():
        return None
    return by_parts(other.type, [to_other[position] for position in place.axes])


def _aggregations(node: Aggregation | Concat, relation: PlacedRelation) -> Iterator[OperatorStrategy]:
    """Whole groups on every site, after a shuffle or without; and in two phases (R2-5)."""
    fold, group_by, all_keys = _fold_of(node), node.group_by, range(len(node.group_by))
    for place in relation.sent(group_by):
        placed = relation.at(place)
        if has_groups_on_sites(placed, group_by):
            yield OperatorStrategy.of_plan((placed,), local_operator(node, (placed,)))
        elif fold.is_decomposable:
            parts = LocalAggregation(placed, group_by, fold)
            for goal in _goals(parts.type, all_keys):
                yield OperatorStrategy.of_plan((placed,), LocalAggregation(moved(parts, goal), tuple(all_keys), fold))


def _fold_of(node: Aggregation | Concat) -> Fold:
    """What becomes of the arrays of a group."""
    return node.fold if isinstance(node, Aggregation) else node.concatenation


def _replicated_join(node: Aggregation | Concat, left: PlacedRelation, right: PlacedRelation) -> OperatorStrategy:
    """RMM: the aggregation of a join that is not computed, which copies both sides to where they meet."""
    join, first, second = node.input, left.at(Scattered()), right.at(Scattered())
    assert isinstance(join, Join)
    pairs = LocalJoin(Broadcast(first), second, join.left_keys, join.right_keys, join.kernel)
    plan = AggregatedJoin(pairs, first, second, node.group_by, _fold_of(node)).replicated()
    return OperatorStrategy((Unplaced.APART,), (first, second), (plan,), plan.distribution)

"""Algebra, implementation: for every operator and every distribution of its result, the cheapest plan."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sparseeinsum.algebra.implementation.compile import local_operator
from sparseeinsum.algebra.implementation.counts import TupleCounts, count_tuples
from sparseeinsum.algebra.implementation.operator_costs import PlanCost, Sites, operator_cost
from sparseeinsum.algebra.implementation.product_rules import Product
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
from sparseeinsum.algebra.relational.relational_expressions import Aggregation, Complete, Concat, Expression, Join
from sparseeinsum.decompose.places.distribution import Distribution, Hashed, Replicated
from sparseeinsum.errors import AlgebraError
from sparseeinsum.semantics.exactness import JoinKind

_MAX_DIMS = 4  # parts of a key of which all combinations are tried

Goal = Hashed | Replicated  # distributions into which tuples can be sent


@dataclass(frozen=True, slots=True)
class PricedPlan:
    """A plan, the number of tuples of its result, and its total cost."""

    plan: SitePlan
    counts: TupleCounts
    cost: PlanCost


@dataclass
class PlansByDistribution:
    """The cheapest plans found for one expression, by the distribution of their result."""

    sites: Sites
    plans: dict[Distribution, PricedPlan] = field(default_factory=dict)

    def add(self, plan: PricedPlan) -> None:
        """Keep a plan if it is the cheapest one with its distribution; a plan whose fold is pending is not kept."""
        distribution = plan.plan.distribution
        if plan.plan.pending is not None:
            return
        cheapest = self.plans.get(distribution)
        if cheapest is None or plan.cost.total(self.sites) < cheapest.cost.total(self.sites):
            self.plans[distribution] = plan

    def cheapest(self) -> PricedPlan:
        """The cheapest of all plans."""
        return min(self.plans.values(), key=lambda plan: plan.cost.total(self.sites))

    def cheapest_at(self, goal: Distribution) -> PricedPlan:
        """The cheapest plan whose result has a distribution, if need be by a final transfer."""
        candidates = [self.plans[goal]] if goal in self.plans else []
        if isinstance(goal, Goal):
            candidates += [move(plan, goal, self.sites) for plan in self.plans.values()]
        return min(candidates, key=lambda plan: plan.cost.total(self.sites))

    def pruned(self) -> "PlansByDistribution":
        """The plans without those that cost no less than another one with a final transfer to their distribution."""
        remaining = PlansByDistribution(self.sites, dict(self.plans))
        for distribution, plan in sorted(self.plans.items(), key=lambda item: -item[1].cost.total(self.sites)):
            others = [other for goal, other in remaining.plans.items() if goal != distribution]
            if isinstance(distribution, Goal) and others:
                costs = (move(other, distribution, self.sites).cost.total(self.sites) for other in others)
                if min(costs) <= plan.cost.total(self.sites):
                    del remaining.plans[distribution]
        return remaining

    def with_shuffles(self, arity: int) -> list[PricedPlan]:
        """All plans, and the cheapest ones for results that are partitioned by parts of a key of this arity."""
        goals = [Hashed(*dims) for dims in subsets(range(arity))]
        return [*self.plans.values(), *(self.cheapest_at(goal) for goal in goals if goal not in self.plans)]


def price(plan: SitePlan, inputs: Sequence[PricedPlan], sites: Sites) -> PricedPlan:
    """The plan of an operator on inputs that are priced already."""
    counts = [plan.counts for plan in inputs]
    output = count_tuples(plan, counts, sites.count)
    operator = operator_cost(plan, counts, output, sites)
    return PricedPlan(plan, output, sum((plan.cost for plan in inputs), operator))


def move(plan: PricedPlan, goal: Goal, sites: Sites) -> PricedPlan:
    """The plan with its result broadcast or shuffled to a distribution; unchanged, if it has this distribution.

    Of several equal parts of the key, a shuffle takes one.
    """
    if isinstance(goal, Replicated):
        return plan if plan.plan.distribution == goal else price(Broadcast(plan.plan), [plan], sites)
    first_equal = plan.plan.type.first_equal
    axes = tuple(dict.fromkeys(first_equal[position] for position in goal.axes))
    if plan.plan.distribution in (Hashed(*axes), in_type(goal, plan.plan.type)):
        return plan
    return price(Shuffle(plan.plan, axes), [plan], sites)


def subsets(positions: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The parts of a key by which to partition: all combinations of a few; of many, none, each alone, and all."""
    if len(positions) > _MAX_DIMS:
        yield from ((), *((position,) for position in positions), tuple(positions))
        return
    for size in range(len(positions) + 1):
        yield from itertools.combinations(positions, size)


def plans_of_operator(node: Expression, inputs: Sequence[PlansByDistribution], sites: Sites) -> PlansByDistribution:
    """The plans of one operator, from those of its inputs."""
    result = PlansByDistribution(sites)
    match node:
        case Join():
            plans = _joins(node, inputs[0], inputs[1], sites)
        case Aggregation() | Concat():
            plans = _aggregations(node, inputs[0], sites)
        case Complete():
            plans = _completions(node, inputs[0], sites)
        case _:
            plans = (price(local_operator(node, (plan.plan,)), [plan], sites) for plan in inputs[0].plans.values())
    for plan in plans:
        result.add(plan)
    return result.pruned()


def plans_of_input(placed: PlacedInput, sites: Sites) -> PlansByDistribution:
    """The only plan of an input: it is read where it is."""
    result = PlansByDistribution(sites)
    result.add(price(placed, [], sites))
    return result


def _joins(node: Join, left: PlansByDistribution, right: PlansByDistribution, sites: Sites) -> Iterator[PricedPlan]:
    """R2-6, partitioned by any of the joined keys; and the sides as they are, or one of them shuffled, if they meet."""
    lefts, rights = left.with_shuffles(node.left.type.arity), right.with_shuffles(node.right.type.arity)
    pairs = [(left.cheapest_at(Replicated()), second) for second in rights]
    pairs += [(first, right.cheapest_at(Replicated())) for first in lefts]
    pairs += [(first, second) for first in left.plans.values() for second in right.plans.values()]
    pairs += [
        (left.cheapest_at(Hashed(*left_dims)), right.cheapest_at(Hashed(*right_dims)))
        for left_dims, right_dims in _joined_dims(node, left, right)
    ]
    for first, second in pairs:
        try:
            plan = local_operator(node, (first.plan, second.plan))
        except AlgebraError:  # tuples that join are on different sites
            continue
        yield price(plan, [first, second], sites)


def _joined_dims(
    node: Join, left: PlansByDistribution, right: PlansByDistribution
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Parts of both keys by which to partition: subsets of the joined ones, and those that a side is partitioned by."""
    joined = list(zip(node.left_keys, node.right_keys, strict=True))
    to_right = {equal: second for first, second in joined for equal in node.left.type.equal_positions((first,))}
    to_left = {equal: first for first, second in joined for equal in node.right.type.equal_positions((second,))}
    pairs = [(dims, tuple(to_right[position] for position in dims)) for dims in subsets(sorted(node.left_keys))]
    pairs += [(tuple(to_left[position] for position in dims), dims) for dims in subsets(sorted(node.right_keys))]
    for side, to_other, is_left in ((left, to_right, True), (right, to_left, False)):
        for distribution in side.plans:
            if isinstance(distribution, Hashed) and set(distribution.axes) <= to_other.keys():
                other_axes = tuple(to_other[position] for position in distribution.axes)
                pairs.append((distribution.axes, other_axes) if is_left else (other_axes, distribution.axes))
    yield from dict.fromkeys(pairs)


def _aggregations(node: Aggregation | Concat, inputs: PlansByDistribution, sites: Sites) -> Iterator[PricedPlan]:
    """Plans with whole groups on every site, after a shuffle or without; and those in two phases (R2-5)."""
    fold, group_by, all_keys = fold_of(node), node.group_by, tuple(range(len(node.group_by)))
    whole_groups = [inputs.cheapest_at(Hashed(*dims)) for dims in subsets(group_by)]
    whole_groups.append(inputs.cheapest_at(Replicated()))
    whole_groups += [plan for plan in inputs.plans.values() if has_groups_on_sites(plan.plan, group_by)]
    for plan in whole_groups:
        yield price(local_operator(node, (plan.plan,)), [plan], sites)
    for plan in inputs.plans.values():
        if has_groups_on_sites(plan.plan, group_by) or not fold.is_decomposable:
            continue
        first = price(LocalAggregation(plan.plan, group_by, fold), [plan], sites)
        goals: list[Goal] = [*(Hashed(*dims) for dims in subsets(all_keys)), Replicated()]
        for goal in goals:
            second = move(first, goal, sites)
            yield price(LocalAggregation(second.plan, all_keys, fold), [second], sites)


def fold_of(node: Aggregation | Concat) -> Fold:
    """What becomes of the arrays of a group."""
    return node.fold if isinstance(node, Aggregation) else node.concatenation


def replicated_joins(
    node: Aggregation | Concat, left: PlansByDistribution, right: PlansByDistribution, sites: Sites
) -> Iterator[PricedPlan]:
    """RMM: plans that copy both sides of a join to where they meet, for an aggregation of the join.

    Args:
        node: The aggregation.
        left: The plans of the left side of the join.
        right: The plans of the right side of the join.
        sites: The sites.
    """
    join = node.input
    if not isinstance(join, Join) or join.kind != JoinKind.INNER:
        return
    for first, second in itertools.product(left.plans.values(), right.plans.values()):
        pairs = LocalJoin(Broadcast(first.plan), second.plan, join.left_keys, join.right_keys, join.kernel)
        product = Product(pairs, first.plan, second.plan, node.group_by, fold_of(node))
        yield price_tree(product.replicated(), {id(first.plan): first, id(second.plan): second}, sites)


def price_tree(plan: SitePlan, priced: Mapping[int, PricedPlan], sites: Sites) -> PricedPlan:
    """The price of a plan of several operators, above plans that are priced already: `priced`, by id."""
    if id(plan) in priced:
        return priced[id(plan)]
    return price(plan, [price_tree(operand, priced, sites) for operand in plan.inputs], sites)


def _completions(node: Complete, inputs: PlansByDistribution, sites: Sites) -> Iterator[PricedPlan]:
    """Plans in which every site knows which of its tuples are absent."""
    plans = [inputs.cheapest_at(Hashed(*dims)) for dims in subsets(range(node.type.arity))]
    plans += [inputs.cheapest_at(Replicated()), *inputs.plans.values()]
    for plan in plans:
        try:
            completed = local_operator(node, (plan.plan,))
        except AlgebraError:  # the input is scattered
            continue
        yield price(completed, [plan], sites)

"""Algebra, implementation: the plans of one operator, for every placement of its result the cheapest."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from sparseeinsum.algebra.implementation.compile import local_operator
from sparseeinsum.algebra.implementation.cost import Cost, Sites, operator_cost
from sparseeinsum.algebra.implementation.counts import TupleCounts, count_tuples
from sparseeinsum.algebra.implementation.placements import Placement, PlacementKind
from sparseeinsum.algebra.implementation.product_rules import Product
from sparseeinsum.algebra.implementation.site_operators import (
    Broadcast,
    LocalAggregation,
    LocalJoin,
    Placed,
    Shuffle,
    SitePlan,
)
from sparseeinsum.algebra.relational.expressions import Aggregation, Complete, Concat, Expression, Join
from sparseeinsum.algebra.relational.folds import Fold
from sparseeinsum.errors import AlgebraError
from sparseeinsum.semantics.exactness import JoinKind

_MOST_DIMS = 4  # parts of a key of which all combinations are tried


@dataclass(frozen=True, slots=True)
class PricedPlan:
    """A plan, the tuples that it returns, and what all of it costs."""

    plan: SitePlan
    counts: TupleCounts
    cost: Cost


@dataclass
class PlansByPlacement:
    """The cheapest plans found for one expression, by the placement of their result."""

    sites: Sites
    found: dict[Placement, PricedPlan] = field(default_factory=dict)

    def offer(self, plan: PricedPlan) -> None:
        """Keep a plan, if none is known for its placement that costs less; not one whose tuples wait to be folded."""
        placement = plan.plan.placement
        if placement.pending is not None:
            return
        known = self.found.get(placement)
        if known is None or plan.cost.total(self.sites) < known.cost.total(self.sites):
            self.found[placement] = plan

    def best(self) -> PricedPlan:
        """The cheapest of all."""
        return min(self.found.values(), key=lambda each: each.cost.total(self.sites))

    def near(self, placement: Placement) -> PricedPlan:
        """The cheapest that ends with a placement, moving its tuples last if need be."""
        ends = [self.found[placement]] if placement in self.found else []
        ends += [move(each, placement, self.sites) for each in self.found.values()]
        return min(ends, key=lambda each: each.cost.total(self.sites))

    def without_detours(self) -> "PlansByPlacement":
        """The same without what costs no less than another one whose result is moved to lie so."""
        kept = PlansByPlacement(self.sites, dict(self.found))
        for placement, each in sorted(self.found.items(), key=lambda item: -item[1].cost.total(self.sites)):
            others = [other for goal, other in kept.found.items() if goal != placement]
            if placement.kind != PlacementKind.SCATTERED and others:
                moves = (move(other, placement, self.sites).cost.total(self.sites) for other in others)
                if min(moves) <= each.cost.total(self.sites):
                    del kept.found[placement]
        return kept

    def with_shuffled(self, arity: int) -> list[PricedPlan]:
        """All of them, and the cheapest ways to be partitioned by parts of a key."""
        goals = [by(dims) for dims in subsets(range(arity))]
        return [*self.found.values(), *(self.near(goal) for goal in goals if goal not in self.found)]


def price(plan: SitePlan, inputs: Sequence[PricedPlan], sites: Sites) -> PricedPlan:
    """An operator on priced inputs."""
    counts = [each.counts for each in inputs]
    made = count_tuples(plan, counts, sites.count)
    own = operator_cost(plan, counts, made, sites)
    return PricedPlan(plan, made, sum((each.cost for each in inputs), own))


def move(given: PricedPlan, placement: Placement, sites: Sites) -> PricedPlan:
    """A plan whose result is broadcast, or shuffled, to lie in a placement; as it is, if it lies so."""
    if given.plan.placement == placement:
        return given
    movement = Broadcast(given.plan) if placement.is_everywhere else Shuffle(given.plan, placement.dims)
    return price(movement, [given], sites)


def subsets(positions: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Parts of a key to partition by: all combinations of a few, else all of them, or each alone."""
    if len(positions) > _MOST_DIMS:
        yield from ((), *((position,) for position in positions), tuple(positions))
        return
    for size in range(len(positions) + 1):
        yield from combinations(positions, size)


def by(dims: Iterable[int]) -> Placement:
    """Partitioned by these parts."""
    return Placement(PlacementKind.PARTITIONED, tuple(dims))


def plans_of_operator(node: Expression, inputs: Sequence[PlansByPlacement], sites: Sites) -> PlansByPlacement:
    """All ways to compute one operator, given those to compute what it reads."""
    found = PlansByPlacement(sites)
    match node:
        case Join():
            plans = _joins(node, inputs[0], inputs[1], sites)
        case Aggregation() | Concat():
            plans = _aggregations(node, inputs[0], sites)
        case Complete():
            plans = _completions(node, inputs[0], sites)
        case _:
            plans = (price(local_operator(node, (each.plan,)), [each], sites) for each in inputs[0].found.values())
    for each in plans:
        found.offer(each)
    return found.without_detours()


def plans_of_input(placed: Placed, sites: Sites) -> PlansByPlacement:
    """An input lies where it lies."""
    found = PlansByPlacement(sites)
    found.offer(price(placed, [], sites))
    return found


def _joins(node: Join, left: PlansByPlacement, right: PlansByPlacement, sites: Sites) -> Iterator[PricedPlan]:
    """R2-6, with any of the joined keys to partition by; and as the sides lie, or are shuffled to, where they meet."""
    everywhere = Placement(PlacementKind.EVERYWHERE)
    lefts, rights = left.with_shuffled(node.left.type.arity), right.with_shuffled(node.right.type.arity)
    ways = [(left.near(everywhere), other) for other in rights]
    ways += [(mine, right.near(everywhere)) for mine in lefts]
    ways += [(mine, other) for mine in left.found.values() for other in right.found.values()]
    ways += [(left.near(by(mine)), right.near(by(other))) for mine, other in _shared_dims(node, left, right)]
    for first, second in ways:
        try:
            plan = local_operator(node, (first.plan, second.plan))
        except AlgebraError:  # they do not meet
            continue
        yield price(plan, [first, second], sites)


def _shared_dims(
    node: Join, left: PlansByPlacement, right: PlansByPlacement
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Parts of both keys to partition by: of all pairs of joined keys, and as either side is partitioned already."""
    to_right = dict(zip(node.left_keys, node.right_keys, strict=True))
    to_left = dict(zip(node.right_keys, node.left_keys, strict=True))
    found = [(dims, tuple(to_right[position] for position in dims)) for dims in subsets(sorted(to_right))]
    found += [(tuple(to_left[position] for position in dims), dims) for dims in subsets(sorted(to_left))]
    for options, others, is_left in ((left, to_right, True), (right, to_left, False)):
        for placement in options.found:
            if placement.kind == PlacementKind.PARTITIONED and set(placement.dims) <= others.keys():
                theirs = tuple(others[position] for position in placement.dims)
                found.append((placement.dims, theirs) if is_left else (theirs, placement.dims))
    yield from dict.fromkeys(found)


def _aggregations(node: Aggregation | Concat, given: PlansByPlacement, sites: Sites) -> Iterator[PricedPlan]:
    """Where groups are whole, shuffled before or not; in two phases (R2-5), the second one everywhere, too."""
    fold, group_by, all_keys = fold_of(node), node.group_by, tuple(range(len(node.group_by)))
    wholes = [given.near(by(dims)) for dims in subsets(group_by)] + [given.near(Placement(PlacementKind.EVERYWHERE))]
    wholes += [each for placement, each in given.found.items() if placement.is_within(group_by)]
    for each in wholes:
        yield price(local_operator(node, (each.plan,)), [each], sites)
    for each in given.found.values():
        if each.plan.placement.is_within(group_by) or not fold.is_decomposable:
            continue
        first = price(LocalAggregation(each.plan, group_by, fold), [each], sites)
        for goal in (*map(by, subsets(all_keys)), Placement(PlacementKind.EVERYWHERE)):
            second = moved_pending(first, goal, sites)
            yield price(LocalAggregation(second.plan, all_keys, fold), [second], sites)


def moved_pending(given: PricedPlan, goal: Placement, sites: Sites) -> PricedPlan:
    """What waits to be folded, broadcast or shuffled."""
    movement = Broadcast(given.plan) if goal.is_everywhere else Shuffle(given.plan, goal.dims)
    return price(movement, [given], sites)


def fold_of(node: Aggregation | Concat) -> Fold:
    """What becomes of the arrays of a group."""
    return node.fold if isinstance(node, Aggregation) else node.concatenation


def replicated_joins(
    node: Aggregation | Concat, left: PlansByPlacement, right: PlansByPlacement, sites: Sites
) -> Iterator[PricedPlan]:
    """RMM: both sides of a join copied to where they meet, for an aggregation of it."""
    join = node.input
    if not isinstance(join, Join) or join.kind != JoinKind.INNER:
        return
    for mine, other in ((mine, other) for mine in left.found.values() for other in right.found.values()):
        pairs = LocalJoin(Broadcast(mine.plan), other.plan, join.left_keys, join.right_keys, join.kernel)
        product = Product(pairs, mine.plan, other.plan, node.group_by, fold_of(node))
        yield price_tree(product.replicated(), {id(mine.plan): mine, id(other.plan): other}, sites)


def price_tree(plan: SitePlan, known: Mapping[int, PricedPlan], sites: Sites) -> PricedPlan:
    """A plan of several operators on priced ones."""
    if id(plan) in known:
        return known[id(plan)]
    return price(plan, [price_tree(each, known, sites) for each in plan.inputs], sites)


def _completions(node: Complete, given: PlansByPlacement, sites: Sites) -> Iterator[PricedPlan]:
    """Where every site knows what is absent."""
    ways = [given.near(by(dims)) for dims in subsets(range(node.type.arity))]
    ways += [given.near(Placement(PlacementKind.EVERYWHERE)), *given.found.values()]
    for each in ways:
        try:
            plan = local_operator(node, (each.plan,))
        except AlgebraError:  # scattered
            continue
        yield price(plan, [each], sites)

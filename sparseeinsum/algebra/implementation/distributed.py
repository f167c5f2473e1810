"""Algebra, implementation: the plans that compute expressions on several sites, and what they transfer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from sparseeinsum.algebra.implementation.compile import table1_plan
from sparseeinsum.algebra.implementation.operator_costs import PlanCost, Sites, cost_by_operator, cost_of
from sparseeinsum.algebra.implementation.plan_search import best_plans
from sparseeinsum.algebra.implementation.simulate import replay
from sparseeinsum.algebra.implementation.site_operators import (
    Broadcast,
    LocalAggregation,
    LocalComplete,
    LocalFilter,
    LocalJoin,
    LocalMap,
    PlacedInput,
    Shuffle,
    SitePlan,
)
from sparseeinsum.algebra.relational.expression_text import write_positions, write_tree
from sparseeinsum.algebra.relational.keys import Key
from sparseeinsum.algebra.relational.relational_expressions import Expression, Input, inputs_of
from sparseeinsum.decompose.places.distribution import Distribution, Hashed, Replicated
from sparseeinsum.errors import AlgebraError

DistributionLike = Distribution | Sequence[int] | str  # positions that a relation is partitioned by, or `everywhere`


@dataclass(frozen=True, slots=True)
class DistributedPlans:
    """Plans of the implementation algebra.

    Attributes:
        plans: The plan of each result, by its name.
        sites: The sites for which they are made, and their costs.
        plain: The plans of table 1 of the paper, to which no rule has been applied.
    """

    plans: Mapping[str, SitePlan]
    sites: Sites
    plain: tuple[SitePlan, ...]

    @property
    def cost(self) -> PlanCost:
        """The cost of all plans; parts that they share count once."""
        return cost_of(self.plans.values(), self.sites)

    @property
    def transfer(self) -> float:
        """The floats that sites send to each other, as section 5.3 counts them."""
        return self.cost.transfer

    @property
    def plain_transfer(self) -> float:
        """The floats that sites send to each other in the plans of table 1."""
        return cost_of(self.plain, self.sites).transfer

    def moved(self, sites: int | None = None, keys: Mapping[str, Sequence[Key]] | None = None) -> int:
        """The exact number of floats that sites send to each other, replayed from keys and bounds alone.

        Args:
            sites: The number of sites; by default that for which the plans are made.
            keys: The keys of inputs with holes, by name.

        Raises:
            AlgebraError: An input has holes, and `keys` lacks it.
        """
        count = self.sites.count if sites is None else sites
        _check_sites(count)
        traffic = {
            id(transfer.plan): transfer.floats for plan in self.plans.values() for transfer in replay(plan, count, keys)
        }
        return round(sum(traffic.values()))

    def __str__(self) -> str:
        floats = {id(plan): cost.transfer for plan, _, cost in cost_by_operator(self.plans.values(), self.sites)}
        plain_text = f"{self.plain_transfer:,.0f} without rules"
        work_text = f"work of the busiest: {self.cost.imbalance:.2f} x mean"
        headline = f"{self.transfer:,.0f} floats moved between {self.sites.count} sites; {plain_text}; {work_text}"
        parts = [
            f"{name}\n{write_tree(plan, lambda operator: _line(operator, floats[id(operator)]))}"
            for name, plan in self.plans.items()
        ]
        return "\n\n".join([headline, *parts])


def distribute(
    expressions: Mapping[str, Expression],
    sites: int,
    stored: Mapping[str, DistributionLike],
    memory_floats: float | None = None,
) -> DistributedPlans:
    """The cheapest plans found for expressions on several sites.

    Args:
        expressions: The expressions to compute, by name.
        sites: The number of sites.
        stored: How inputs are distributed, by name: as a distribution, the positions of the keys by which they are
            partitioned, or `everywhere`; others are scattered.
        memory_floats: How many floats a site can hold for the inputs and the result of one operator; not limited by
            default.

    Raises:
        AlgebraError: No plan has enough memory, or `stored` has a tensor or a distribution that does not exist.
    """
    _check_sites(sites)
    distributions = input_distributions(inputs_of(expressions.values()), stored)
    site_costs = Sites(sites, memory_floats)
    plans = best_plans(list(expressions.values()), distributions, site_costs)
    plain = tuple(table1_plan(expression, distributions) for expression in expressions.values())
    return DistributedPlans(dict(zip(expressions, plans, strict=True)), site_costs, plain)


def input_distributions(inputs: Mapping[str, Input], stored: Mapping[str, DistributionLike]) -> dict[str, Distribution]:
    """How inputs are distributed, by name.

    Raises:
        AlgebraError: `stored` has a tensor that is no input, or a distribution that does not exist.
    """
    if not isinstance(stored, Mapping):
        raise AlgebraError(f"stored is {stored!r}; give distributions by name, as in {{'A': (0,), 'B': 'everywhere'}}")
    for name in stored:
        if name not in inputs:
            raise AlgebraError(f"{name} is placed, and not read; inputs are {', '.join(inputs)}")
    return {name: _distribution(inputs[name], place) for name, place in stored.items()}


def _check_sites(sites: int) -> None:
    if not isinstance(sites, int) or sites < 1:
        raise AlgebraError(f"there are {sites!r} sites; give a whole number of 1 or more")


def _distribution(relation: Input, place: DistributionLike) -> Distribution:
    """The distribution of an input; its positions are those of parts of the key, each once."""
    if place == "everywhere":
        return Replicated()
    if isinstance(place, Distribution):
        return place
    arity = relation.type.arity
    is_sequence = isinstance(place, Sequence) and not isinstance(place, str)
    if not is_sequence or not set(place) <= set(range(arity)) or len(set(place)) < len(place):
        raise AlgebraError(
            f"{relation.name} is placed {place!r}; give the positions of keys that it is partitioned by, of which "
            f"there are {arity}, as in (0,), or 'everywhere'"
        )
    return Hashed(*cast(Sequence[int], place))


def _line(plan: SitePlan, floats: float) -> str:
    """The text of an operator, with the distribution of its result, and the floats that it transfers."""
    transfer_text = f", {floats:,.0f} floats" if floats else ""
    pending_text = f", {plan.pending} pending" if plan.pending is not None else ""
    return f"{_operator(plan)}: {plan.type}, {plan.distribution}{pending_text}{transfer_text}"


def _operator(plan: SitePlan) -> str:
    match plan:
        case PlacedInput(relation):
            return relation.name
        case Broadcast():
            return "broadcast"
        case Shuffle(_, dims):
            return f"shuffle by {write_positions(dims)}"
        case LocalJoin(_, _, left_keys, right_keys, kernel):
            keys = "" if plan.keys is None else f", keys {plan.keys}"
            return f"local join on {write_positions(left_keys)} = {write_positions(right_keys)}, {kernel}{keys}"
        case LocalAggregation(_, group_by, fold):
            return f"local aggregation by {write_positions(group_by)}, {fold}"
        case LocalFilter(_, predicate):
            return f"local filter {predicate}"
        case LocalMap(_, keys, kernel):
            return f"local map {kernel}" if keys.is_identity else f"local map {keys}, {kernel}"
        case LocalComplete(_, absent, _):
            return f"local complete with {absent.fill!r}"

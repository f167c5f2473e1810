"""Algebra, implementation: expressions in, the way to compute them on several sites out, and what that moves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparseeinsum.algebra.implementation.compile import table1_plan
from sparseeinsum.algebra.implementation.cost import Cost, Sites, cost_by_operator
from sparseeinsum.algebra.implementation.counts import TupleCounts
from sparseeinsum.algebra.implementation.placements import EVERYWHERE, Placement, PlacementLike, partitioned
from sparseeinsum.algebra.implementation.search import best_plans
from sparseeinsum.algebra.implementation.simulate import replay
from sparseeinsum.algebra.implementation.site_operators import (
    Broadcast,
    LocalAggregation,
    LocalComplete,
    LocalFilter,
    LocalJoin,
    LocalMap,
    Placed,
    Shuffle,
    SitePlan,
)
from sparseeinsum.algebra.relational.expressions import Expression
from sparseeinsum.algebra.relational.keys import Key
from sparseeinsum.algebra.relational.writing import write_positions, write_tree
from sparseeinsum.errors import AlgebraError


@dataclass(frozen=True, slots=True)
class DistributedPlans:
    """Plans of the implementation algebra.

    Attributes:
        plans: What computes each result, by its name.
        sites: That they are made for.
        plain: The plans that table 1 of the paper makes, with no rule applied.
    """

    plans: Mapping[str, SitePlan]
    sites: Sites
    plain: tuple[SitePlan, ...]

    @property
    def cost(self) -> Cost:
        """Of everything; what several results need, once."""
        return sum((cost for _, _, cost in self._operators()), Cost())

    @property
    def transfer(self) -> float:
        """Floats moved between sites, as section 5.3 counts them."""
        return self.cost.transfer

    @property
    def plain_transfer(self) -> float:
        """The same of the plans without rules."""
        return sum((cost for _, _, cost in cost_by_operator(self.plain, self.sites)), Cost()).transfer

    def moved(self, sites: int | None = None, keys: Mapping[str, Sequence[Key]] | None = None) -> int:
        """Floats that really go from one site to another, replayed from keys and bounds alone.

        Args:
            sites: How many there are; by default those that the plans are made for.
            keys: Of inputs with holes, by name.

        Raises:
            AlgebraError: An input has holes, and its keys are not given.
        """
        count = self.sites.count if sites is None else sites
        traffic = {id(each.plan): each.floats for plan in self.plans.values() for each in replay(plan, count, keys)}
        return sum(traffic.values())

    def _operators(self) -> list[tuple[SitePlan, TupleCounts, Cost]]:
        return cost_by_operator(self.plans.values(), self.sites)

    def __str__(self) -> str:
        floats = {id(plan): cost.transfer for plan, _, cost in self._operators()}
        saved = f"{self.plain_transfer:,.0f} without rules"
        headline = f"{self.transfer:,.0f} floats moved between {self.sites.count} sites; {saved}"
        parts = [
            f"{name}\n{write_tree(plan, lambda each: _line(each, floats[id(each)]))}"
            for name, plan in self.plans.items()
        ]
        return "\n\n".join([headline, *parts])


def distribute(
    expressions: Mapping[str, Expression],
    sites: int,
    stored: Mapping[str, PlacementLike],
    memory_floats: float | None = None,
) -> DistributedPlans:
    """The cheapest way found to compute expressions on several sites.

    Args:
        expressions: What is wanted, by name.
        sites: How many there are.
        stored: How inputs lie, by name: a placement, the positions in the key that they are partitioned by, or
            `everywhere`; others are scattered.
        memory_floats: That a site has for what one operator reads and makes; as many as it takes by default.

    Raises:
        AlgebraError: No plan has enough memory, or inputs lie in a way that there is not.
    """
    if sites < 1:
        raise AlgebraError(f"there are {sites} sites; there must be 1 or more")
    placements = {name: _placement(name, lies) for name, lies in stored.items()}
    asked = Sites(sites, memory_floats)
    plans = best_plans(list(expressions.values()), placements, asked)
    plain = tuple(table1_plan(expression, placements) for expression in expressions.values())
    return DistributedPlans(dict(zip(expressions, plans, strict=True)), asked, plain)


def _placement(name: str, lies: PlacementLike) -> Placement:
    if isinstance(lies, Placement):
        return lies
    if lies == "everywhere":
        return EVERYWHERE
    if isinstance(lies, str):
        raise AlgebraError(
            f"{name} lies {lies!r}; give the positions of keys that it is partitioned by, or 'everywhere'"
        )
    return partitioned(*lies)


def _line(plan: SitePlan, floats: float) -> str:
    """An operator, where its result lies, and what it moves."""
    moved = f", {floats:,.0f} floats" if floats else ""
    return f"{_operator(plan)}: {plan.type}, {plan.placement}{moved}"


def _operator(plan: SitePlan) -> str:
    match plan:
        case Placed(given):
            return given.name
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

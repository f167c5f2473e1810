"""Algebra, implementation: the search for the cheapest plan of relational expressions.

It is a dynamic programme over distributions, which is exact for expressions whose parts are read once: for every
operator, and every distribution of its result, it finds the cheapest plan by the rules of joins, aggregations and
transfers (R2) and RMM. Results that are read several times get one distribution each, which are improved one at a time.
Rules that compose and move kernels and filters (R1, R2-2, R2-3) are tried on the plan that comes out, cheapest first.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

from sparseeinsum.algebra.implementation.operator_costs import PlanCost, Sites, cost_of
from sparseeinsum.algebra.implementation.operator_plans import (
    Goal,
    PlansByDistribution,
    PricedPlan,
    plans_of_input,
    plans_of_operator,
    replicated_joins,
    subsets,
)
from sparseeinsum.algebra.implementation.rewriting import RULES, Rule, rewritten_plans
from sparseeinsum.algebra.implementation.site_operators import PlacedInput, SitePlan, with_inputs
from sparseeinsum.algebra.relational.relational_expressions import Aggregation, Concat, Expression, Input, Join
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.decompose.places.distribution import Distribution, Hashed, Replicated, Scattered
from sparseeinsum.errors import AlgebraError

_MAX_EXPANDED = 8  # plans whose neighbours are examined
_MAX_ROUNDS = 3  # passes over the results that are read several times


def best_plans(
    expressions: Sequence[Expression],
    distributions: Mapping[str, Distribution],
    sites: Sites,
    rules: Iterable[Rule] = tuple(RULES.values()),
) -> tuple[SitePlan, ...]:
    """The cheapest plans found for expressions, which may share parts that are computed once.

    Args:
        expressions: The expressions to compute.
        distributions: Where inputs are, by name; others are scattered.
        sites: The sites and their costs.
        rules: The rules that are tried on the plans that the dynamic programme finds.

    Raises:
        AlgebraError: No plan has enough memory.
    """
    chosen = _PlanSearch(tuple(expressions), distributions, sites).plans()
    plans = _improved_by_rules(_deduplicated(chosen), sites, tuple(rules))
    if cost_of(plans, sites).total(sites) == float("inf"):
        raise AlgebraError(
            f"a site has memory for {sites.memory_floats:,.0f} floats, and every plan that was found has an operator "
            "that needs more; take more sites, or smaller tiles"
        )
    return plans


Fixed = dict[int, PricedPlan]  # the chosen plans of expressions that are read several times, by id
Table = dict[int, PlansByDistribution]  # the cheapest plans of all expressions, by id


@dataclass(frozen=True)
class _PlanSearch:
    """The dynamic programme; see `best_plans` for its attributes."""

    expressions: tuple[Expression, ...]
    distributions: Mapping[str, Distribution]
    sites: Sites

    def plans(self) -> tuple[SitePlan, ...]:
        """The cheapest plan of every expression."""
        table = self._plan_table()
        return tuple(table[id(expression)].cheapest().plan for expression in self.expressions)

    @cached_property
    def nodes(self) -> list[Expression]:
        """All operators, in topological order."""
        nodes: dict[int, Expression] = {}
        for expression in self.expressions:
            nodes |= {id(node): node for node in topological_order(expression)}
        return list(nodes.values())

    @cached_property
    def read_again(self) -> list[Expression]:
        """The expressions that several others read, or that others read though they are results."""
        readers = Counter(id(operand) for node in self.nodes for operand in node.inputs)
        readers.update(id(expression) for expression in self.expressions)
        return [node for node in self.nodes if readers[id(node)] > 1]

    def _plan_table(self) -> Table:
        """The plans of all expressions, with one plan for each that is read several times.

        That plan is the cheapest at first, and then changed as long as the total cost decreases.
        """
        fixed: Fixed = {}
        table: Table = {}
        read_again = {id(node) for node in self.read_again}
        for node in self.nodes:
            table[id(node)] = self._plans_of(node, table)
            if id(node) in read_again:
                fixed[id(node)] = table[id(node)].cheapest()
                table[id(node)] = self._as_shared(fixed[id(node)])
        best = self._total(fixed, table)
        for _ in range(_MAX_ROUNDS):
            before = best
            for node in self.read_again:
                for plan in self._alternatives(node, table):
                    tried = self._with_plan(node, plan, fixed, table)
                    cost = self._total(*tried)
                    if cost < best:
                        (fixed, table), best = tried, cost
            if best == before:
                break
        return table

    def _as_shared(self, chosen: PricedPlan) -> PlansByDistribution:
        """The one plan of an expression that is read several times, without its cost, which is counted once."""
        options = PlansByDistribution(self.sites)
        options.add(replace(chosen, cost=PlanCost()))
        return options

    def _with_plan(self, node: Expression, chosen: PricedPlan, fixed: Fixed, table: Table) -> tuple[Fixed, Table]:
        """The tables with another plan for one expression, and new plans for all that read it."""
        fixed = {**fixed, id(node): chosen}
        table = {**table, id(node): self._as_shared(chosen)}
        changed = {id(node)}
        for reader in self.nodes:
            if not any(id(operand) in changed for operand in reader.inputs):
                continue
            changed.add(id(reader))
            plans = self._plans_of(reader, table)
            if id(reader) in fixed:
                fixed[id(reader)] = plans.cheapest_at(fixed[id(reader)].plan.distribution)
                plans = self._as_shared(fixed[id(reader)])
            table[id(reader)] = plans
        return fixed, table

    def _total(self, fixed: Fixed, table: Table) -> float:
        costs = [plan.cost for plan in fixed.values()]
        costs += [table[id(expression)].cheapest().cost for expression in self.expressions]
        return sum(costs, PlanCost()).total(self.sites)

    def _plans_of(self, node: Expression, table: Table) -> PlansByDistribution:
        if isinstance(node, Input):
            return plans_of_input(PlacedInput(node, self.distributions.get(node.name, Scattered())), self.sites)
        plans = plans_of_operator(node, [table[id(operand)] for operand in node.inputs], self.sites)
        if isinstance(node, Aggregation | Concat) and isinstance(node.input, Join):
            left, right = (table[id(operand)] for operand in node.input.inputs)
            for plan in replicated_joins(node, left, right, self.sites):
                plans.add(plan)
        return plans

    def _alternatives(self, node: Expression, table: Table) -> list[PricedPlan]:
        """The plans of an expression that is read several times: as they are, or with a final transfer."""
        plans = self._plans_of(node, table)
        goals: list[Goal] = [Replicated(), *(Hashed(*dims) for dims in subsets(range(node.type.arity)))]
        return [
            *plans.plans.values(),
            *(plans.cheapest_at(goal) for goal in goals if goal not in plans.plans),
        ]


def _deduplicated(plans: tuple[SitePlan, ...]) -> tuple[SitePlan, ...]:
    """The plans, with equal parts as the same object."""
    unique: dict[SitePlan, SitePlan] = {}
    replaced: dict[int, SitePlan] = {}
    for plan in plans:
        for node in topological_order(plan):
            if id(node) not in replaced:
                rebuilt = with_inputs(node, tuple(replaced[id(operand)] for operand in node.inputs))
                replaced[id(node)] = unique.setdefault(rebuilt, rebuilt)
    return tuple(replaced[id(plan)] for plan in plans)


def _improved_by_rules(plans: tuple[SitePlan, ...], sites: Sites, rules: tuple[Rule, ...]) -> tuple[SitePlan, ...]:
    """The cheapest plans to which rules lead; the neighbours of the cheapest plans are examined first."""
    best, lowest = plans, cost_of(plans, sites).total(sites)
    counter = count()
    queue = [(lowest, next(counter), plans)]
    visited = {plans}
    for _ in range(_MAX_EXPANDED):
        if not queue:
            break
        cost, _, current = heapq.heappop(queue)
        for neighbour in _neighbours(current, rules):
            if neighbour in visited:
                continue
            visited.add(neighbour)
            neighbour_cost = cost_of(neighbour, sites).total(sites)
            if neighbour_cost < lowest:
                best, lowest = neighbour, neighbour_cost
            if neighbour_cost <= cost:
                heapq.heappush(queue, (neighbour_cost, next(counter), neighbour))
    return best


def _neighbours(plans: tuple[SitePlan, ...], rules: tuple[Rule, ...]) -> list[tuple[SitePlan, ...]]:
    return [
        _deduplicated((*plans[:number], other, *plans[number + 1 :]))
        for number, plan in enumerate(plans)
        for other in rewritten_plans(plan, rules)
    ]

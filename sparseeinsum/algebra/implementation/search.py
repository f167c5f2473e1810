"""Algebra, implementation: relational expressions in, the cheapest plan that rules lead to out.

A dynamic programme over placements, which is exact for expressions whose parts are read once: for every operator, and
every placement of its result, the cheapest way there, through the rules of joins, aggregations and movements (R2) and
RMM. Results that are read several times get one placement each, improved one at a time. Rules that compose and move
kernels and filters (R1, R2-2, R2-3) are tried on the plan that comes out, cheapest first.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

from sparseeinsum.algebra.implementation.cost import Cost, Sites, cost_by_operator
from sparseeinsum.algebra.implementation.operator_plans import (
    PlansByPlacement,
    PricedPlan,
    by,
    plans_of_input,
    plans_of_operator,
    replicated_joins,
    subsets,
)
from sparseeinsum.algebra.implementation.placements import EVERYWHERE, SCATTERED, Placement
from sparseeinsum.algebra.implementation.rewriting import RULES, Rule, rewritten_plans
from sparseeinsum.algebra.implementation.site_operators import Placed, SitePlan, with_inputs
from sparseeinsum.algebra.relational.expressions import Aggregation, Concat, Expression, Input, Join
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.errors import AlgebraError

_MOST_EXPANDED = 8  # plans whose neighbours are looked at
_ROUNDS = 3  # over the results that are read several times


def best_plans(
    expressions: Sequence[Expression],
    placements: Mapping[str, Placement],
    sites: Sites,
    rules: Iterable[Rule] = tuple(RULES.values()),
) -> tuple[SitePlan, ...]:
    """The cheapest plans found for expressions that may have parts in common, which are computed once.

    Args:
        expressions: What is wanted.
        placements: Where inputs lie; scattered if it says nothing.
        sites: How many there are, and what each has.
        rules: That are tried on the plans that the dynamic programme finds.

    Raises:
        AlgebraError: No plan has enough memory.
    """
    chosen = _Search(tuple(expressions), placements, sites).plans()
    plans = _improved(_shared(chosen), sites, tuple(rules))
    if total_cost(plans, sites) == float("inf"):
        raise AlgebraError(
            f"a site has memory for {sites.memory_floats:,.0f} floats, and every plan that was found has an operator "
            "that needs more; take more sites, or smaller tiles"
        )
    return plans


def total_cost(plans: Sequence[SitePlan], sites: Sites) -> float:
    """Cost of plans that may have parts in common."""
    return sum((cost for _, _, cost in cost_by_operator(plans, sites)), Cost()).total(sites)


Fixed = dict[int, PricedPlan]  # what is chosen for expressions that are read several times, by id
Table = dict[int, PlansByPlacement]  # the cheapest plans of expressions, by id


@dataclass(frozen=True)
class _Search:
    expressions: tuple[Expression, ...]
    placements: Mapping[str, Placement]
    sites: Sites

    def plans(self) -> tuple[SitePlan, ...]:
        """The cheapest plan of every expression that is wanted."""
        _, table = self._settled()
        return tuple(table[id(each)].best().plan for each in self.expressions)

    @cached_property
    def nodes(self) -> list[Expression]:
        """All operators, in order."""
        found: dict[int, Expression] = {}
        for expression in self.expressions:
            found |= {id(each): each for each in topological_order(expression)}
        return list(found.values())

    @cached_property
    def read_again(self) -> list[Expression]:
        """Expressions that several others read, or that are wanted and read."""
        readers = Counter(id(operand) for each in self.nodes for operand in each.inputs)
        readers.update(id(each) for each in self.expressions)
        return [each for each in self.nodes if readers[id(each)] > 1]

    def _settled(self) -> tuple[Fixed, Table]:
        """One plan for everything that is read several times: first the cheapest, then what is best for the whole."""
        fixed: Fixed = {}
        table: Table = {}
        again = {id(each) for each in self.read_again}
        for each in self.nodes:
            table[id(each)] = self._options_of(each, table)
            if id(each) in again:
                fixed[id(each)] = table[id(each)].best()
                table[id(each)] = self._paid(fixed[id(each)])
        best = self._total(fixed, table)
        for _ in range(_ROUNDS):
            before = best
            for each in self.read_again:
                for other in self._alternatives(each, table):
                    tried = self._with(each, other, fixed, table)
                    found = self._total(*tried)
                    if found < best:
                        (fixed, table), best = tried, found
            if best == before:
                break
        return fixed, table

    def _paid(self, chosen: PricedPlan) -> PlansByPlacement:
        """The one plan of what is read several times, which costs its readers nothing."""
        options = PlansByPlacement(self.sites)
        options.offer(replace(chosen, cost=Cost()))
        return options

    def _with(self, node: Expression, chosen: PricedPlan, fixed: Fixed, table: Table) -> tuple[Fixed, Table]:
        """The same with another plan for one expression, and for what reads it."""
        fixed = {**fixed, id(node): chosen}
        table = {**table, id(node): self._paid(chosen)}
        changed = {id(node)}
        for each in self.nodes:
            if not any(id(operand) in changed for operand in each.inputs):
                continue
            changed.add(id(each))
            options = self._options_of(each, table)
            if id(each) in fixed:
                fixed[id(each)] = options.near(fixed[id(each)].plan.placement)
                options = self._paid(fixed[id(each)])
            table[id(each)] = options
        return fixed, table

    def _total(self, fixed: Fixed, table: Table) -> float:
        costs = [each.cost for each in fixed.values()]
        costs += [table[id(each)].best().cost for each in self.expressions]
        return sum(costs, Cost()).total(self.sites)

    def _options_of(self, each: Expression, table: Table) -> PlansByPlacement:
        if isinstance(each, Input):
            return plans_of_input(Placed(each, self.placements.get(each.name, SCATTERED)), self.sites)
        options = plans_of_operator(each, [table[id(operand)] for operand in each.inputs], self.sites)
        if isinstance(each, Aggregation | Concat) and isinstance(each.input, Join):
            left, right = (table[id(operand)] for operand in each.input.inputs)
            for other in replicated_joins(each, left, right, self.sites):
                options.offer(other)
        return options

    def _alternatives(self, node: Expression, table: Table) -> list[PricedPlan]:
        """Plans for something that is read several times: as it may come out, or moved."""
        options = self._options_of(node, table)
        goals = [EVERYWHERE, *map(by, subsets(range(node.type.arity)))]
        return [*options.found.values(), *(options.near(goal) for goal in goals if goal not in options.found)]


def _shared(plans: tuple[SitePlan, ...]) -> tuple[SitePlan, ...]:
    """The same plans, what is equal in them being one."""
    known: dict[SitePlan, SitePlan] = {}
    made: dict[int, SitePlan] = {}
    for plan in plans:
        for each in topological_order(plan):
            if id(each) not in made:
                again = with_inputs(each, tuple(made[id(operand)] for operand in each.inputs))
                made[id(each)] = known.setdefault(again, again)
    return tuple(made[id(plan)] for plan in plans)


def _improved(plans: tuple[SitePlan, ...], sites: Sites, rules: tuple[Rule, ...]) -> tuple[SitePlan, ...]:
    """The cheapest plans that rules lead to, looking at neighbours of the cheapest first."""
    best, lowest = plans, total_cost(plans, sites)
    order = count()
    waiting = [(lowest, next(order), plans)]
    seen = {plans}
    for _ in range(_MOST_EXPANDED):
        if not waiting:
            break
        cost, _, current = heapq.heappop(waiting)
        for other in _neighbours(current, rules):
            if other in seen:
                continue
            seen.add(other)
            found = total_cost(other, sites)
            if found < lowest:
                best, lowest = other, found
            if found <= cost:
                heapq.heappush(waiting, (found, next(order), other))
    return best


def _neighbours(plans: tuple[SitePlan, ...], rules: tuple[Rule, ...]) -> list[tuple[SitePlan, ...]]:
    return [
        _shared((*plans[:number], other, *plans[number + 1 :]))
        for number, plan in enumerate(plans)
        for other in rewritten_plans(plan, rules)
    ]

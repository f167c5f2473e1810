"""Algebra, implementation: relational expressions in, the cheapest plan that rules lead to out.

A dynamic programme over placements, which is exact for expressions whose parts are read once: for every operator, and
every placement of its result, the cheapest way there, through the rules of joins, aggregations and movements (R2) and
RMM. Results that are read several times get one placement each, improved one at a time. Rules that compose and move
kernels and filters (R1, R2-2, R2-3) are tried on the plan that comes out, cheapest first.
"""

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from sparseeinsum.algebra.implementation.cost import Cost, Sites, cost_by_operator
from sparseeinsum.algebra.implementation.options import (
    Options,
    Priced,
    by,
    of_input,
    options_of,
    replications,
    subsets,
)
from sparseeinsum.algebra.implementation.placements import EVERYWHERE, SCATTERED, Placement
from sparseeinsum.algebra.implementation.plans import Placed, Plan, with_inputs
from sparseeinsum.algebra.implementation.rewriting import RULES, rewritten
from sparseeinsum.algebra.relational.expressions import Aggregation, Concat, Expression, Input, Join
from sparseeinsum.algebra.relational.traversal import in_order
from sparseeinsum.errors import AlgebraError

_MOST_EXPANDED = 24  # plans whose neighbours are looked at
_ROUNDS = 3  # over the results that are read several times


def best_plan(expression: Expression, placements: Mapping[str, Placement], sites: Sites) -> Plan:
    """The cheapest plan found for an expression; see `best_plans`."""
    return best_plans([expression], placements, sites)[0]


def best_plans(
    expressions: Sequence[Expression], placements: Mapping[str, Placement], sites: Sites
) -> tuple[Plan, ...]:
    """The cheapest plans found for expressions that may have parts in common, which are computed once.

    Args:
        expressions: What is wanted.
        placements: Where inputs lie; scattered if it says nothing.
        sites: How many there are, and what each has.

    Raises:
        AlgebraError: No plan has enough memory.
    """
    search = _Search(tuple(expressions), placements, sites)
    fixed = search.fixed()
    chosen = tuple(each.plan for each in search.chosen(fixed))
    plans = _improved(_shared(chosen), sites)
    if total(plans, sites) == float("inf"):
        raise AlgebraError(
            f"a site has memory for {sites.memory_floats:,.0f} floats, and every plan that was found has an operator "
            "that needs more; take more sites, or smaller tiles"
        )
    return plans


def total(plans: Sequence[Plan], sites: Sites) -> float:
    """Cost of plans that may have parts in common."""
    return sum((cost for _, _, cost in cost_by_operator(plans, sites)), Cost()).total(sites)


Fixed = dict[int, Priced]  # what is chosen for expressions that are read several times, by id


@dataclass(frozen=True)
class _Search:
    expressions: tuple[Expression, ...]
    placements: Mapping[str, Placement]
    sites: Sites

    def _nodes(self) -> list[Expression]:
        found: dict[int, Expression] = {}
        for expression in self.expressions:
            found |= {id(each): each for each in in_order(expression)}
        return list(found.values())

    def _read_again(self) -> list[Expression]:
        """Expressions that several others read, or that are wanted and read."""
        nodes = self._nodes()
        readers = Counter(id(operand) for each in nodes for operand in each.inputs)
        readers.update(id(each) for each in self.expressions)
        return [each for each in nodes if readers[id(each)] > 1]

    def options(self, fixed: Fixed) -> dict[int, Options]:
        """For every expression, its cheapest plans; of those fixed only that one, which is paid for already."""
        found: dict[int, Options] = {}
        for each in self._nodes():
            if id(each) in fixed:
                found[id(each)] = Options(self.sites)
                found[id(each)].offer(replace(fixed[id(each)], cost=Cost()))
            else:
                found[id(each)] = self._options_of(each, found)
        return found

    def _options_of(self, each: Expression, found: Mapping[int, Options]) -> Options:
        if isinstance(each, Input):
            return of_input(Placed(each, self.placements.get(each.name, SCATTERED)), self.sites)
        options = options_of(each, [found[id(operand)] for operand in each.inputs], self.sites)
        if isinstance(each, Aggregation | Concat) and isinstance(each.input, Join):
            left, right = (found[id(operand)] for operand in each.input.inputs)
            for other in replications(each, left, right, self.sites):
                options.offer(other)
        return options

    def chosen(self, fixed: Fixed) -> tuple[Priced, ...]:
        """The cheapest plan of every expression that is wanted."""
        found = self.options(fixed)
        return tuple(found[id(each)].best() for each in self.expressions)

    def _total(self, fixed: Fixed) -> float:
        costs = [*(each.cost for each in fixed.values()), *(each.cost for each in self.chosen(fixed))]
        return sum(costs, Cost()).total(self.sites)

    def fixed(self) -> Fixed:
        """One plan for everything that is read several times: first the cheapest, then what is best for the whole."""
        again = self._read_again()
        fixed: Fixed = {}
        for each in again:
            fixed[id(each)] = self._alternatives(each, fixed)[0]
        if not again:
            return fixed
        best = self._total(fixed)
        for _ in range(_ROUNDS):
            before = best
            for each in again:
                for other in self._alternatives(each, fixed):
                    tried = {**fixed, id(each): other}
                    found = self._total(tried)
                    if found < best:
                        fixed, best = tried, found
            if best == before:
                break
        return fixed

    def _alternatives(self, node: Expression, fixed: Fixed) -> list[Priced]:
        """Plans for something that is read several times, cheapest first: as it may come out, or moved."""
        others = {key: each for key, each in fixed.items() if key != id(node)}
        options = self.options(others)[id(node)]
        goals = [EVERYWHERE, *map(by, subsets(range(node.type.arity)))]
        found = [*options.found.values(), *(options.near(goal) for goal in goals)]
        return sorted(found, key=lambda each: each.cost.total(self.sites))


def _shared(plans: tuple[Plan, ...]) -> tuple[Plan, ...]:
    """The same plans, what is equal in them being one."""
    known: dict[Plan, Plan] = {}
    made: dict[int, Plan] = {}
    for plan in plans:
        for each in in_order(plan):
            if id(each) not in made:
                again = with_inputs(each, tuple(made[id(operand)] for operand in each.inputs))
                made[id(each)] = known.setdefault(again, again)
    return tuple(made[id(plan)] for plan in plans)


def _improved(plans: tuple[Plan, ...], sites: Sites) -> tuple[Plan, ...]:
    """The cheapest plans that rules lead to, looking at neighbours of the cheapest first."""
    best, lowest = plans, total(plans, sites)
    order = count()
    waiting = [(lowest, next(order), plans)]
    seen = {plans}
    for _ in range(_MOST_EXPANDED):
        if not waiting:
            break
        cost, _, current = heapq.heappop(waiting)
        for other in _neighbours(current):
            if other in seen:
                continue
            seen.add(other)
            found = total(other, sites)
            if found < lowest:
                best, lowest = other, found
            if found <= cost:
                heapq.heappush(waiting, (found, next(order), other))
    return best


def _neighbours(plans: tuple[Plan, ...]) -> list[tuple[Plan, ...]]:
    return [
        _shared((*plans[:number], other, *plans[number + 1 :]))
        for number, plan in enumerate(plans)
        for other in rewritten(plan, RULES.values())
    ]

"""Algebra, implementation: the search for the cheapest plan of relational expressions.

It is the search of `decompose`, with a place for a state. For every operator it chooses a strategy, by the rules of
joins, aggregations and transfers (R2) and RMM, and pays to send results from where they are computed to where they are
read. Results that are read several times may be sent once for all. Rules that compose and move kernels and filters (R1,
R2-2, R2-3) are tried on the plan that comes out, cheapest first.
"""

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.algebra.implementation.operator_costs import Sites, cost_by_operator, cost_of
from sparseeinsum.algebra.implementation.operator_strategies import (
    OperatorStrategy,
    Place,
    PlacedRelation,
    Unplaced,
    is_product,
    moved,
    sending_strategies,
    strategies_of_operator,
)
from sparseeinsum.algebra.implementation.rewriting import RULES, Rule, rewritten_plans
from sparseeinsum.algebra.implementation.site_operators import PlacedInput, SitePlan, with_inputs
from sparseeinsum.algebra.relational.relational_expressions import Aggregation, Concat, Expression, Input
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.places.distribution import Distribution, Scattered
from sparseeinsum.decompose.search_tasks import State
from sparseeinsum.decompose.short_lists import search_in_lists
from sparseeinsum.errors import AlgebraError
from sparseeinsum.language.eingraph import Reference

_MAX_EXPANDED = 8  # plans whose neighbours are examined
_TABLE_LIMIT = 4_000_000  # numbers in all tables of the search together


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


@dataclass(frozen=True, slots=True)
class _SearchedOperator:
    """An operator of the expressions, or the sending of a result that several operators read.

    Attributes:
        output: Its name.
        operands: The names of what it reads.
        strategies: The strategies to compute it.
        relation: Its result.
    """

    output: Reference
    operands: tuple[Reference, ...]
    strategies: tuple[OperatorStrategy, ...]
    relation: PlacedRelation


@dataclass(frozen=True, slots=True)
class _StrategyPricing:
    """The strategies to compute operators, and their costs; a `Pricing` in floats.

    Attributes:
        operators: The operators by name, in topological order.
        choices: The numbers of the strategies of each.
        sites: The sites.
    """

    operators: Mapping[str, _SearchedOperator]
    choices: Mapping[str, Sequence[Choice]]
    sites: Sites
    _numbers: dict[Place, int] = field(default_factory=dict)
    _costs: dict[tuple[str, State, State], float] = field(default_factory=dict)

    def narrowed(self, choices: Mapping[str, Sequence[Choice]]) -> "_StrategyPricing":
        """A copy with fewer strategies."""
        return replace(self, choices=choices)

    def result_state(self, operator: _SearchedOperator, choice: Choice) -> State:
        """The number of the place of the result."""
        return self._state(operator.strategies[choice[0]].place)

    def required_state(self, operator: _SearchedOperator, index: int, choice: Choice) -> State:
        """The number of the place where operand `index` must be."""
        return self._state(operator.strategies[choice[0]].required[index])

    def own_cost(self, operator: _SearchedOperator, choice: Choice) -> float:
        """The cost of a strategy."""
        return cost_of(operator.strategies[choice[0]].plans, self.sites).total(self.sites)

    def reads(self, operator: _SearchedOperator, choice: Choice) -> int:
        """How often operands are read: always once, as no operator has passes."""
        return 1

    def repartition_costs(
        self, tensor: str, before: Sequence[State], required: Sequence[tuple[State, int]]
    ) -> NDArray[np.float64]:
        """Costs to send a result: a row for each place before, a column for each after."""
        return np.array([[self.repartition_cost(tensor, state, after) for after, _ in required] for state in before])

    def _state(self, place: Place) -> State:
        return (self._numbers.setdefault(place, len(self._numbers)),)

    def repartition_cost(self, tensor: str, before: State, after: State, reads: int = 1) -> float:
        """The cost to send a result from one place to another."""
        cost = self._costs.get((tensor, before, after))
        if cost is None:
            places = list(self._numbers)
            cost = self._moved_from(self.operators[tensor].relation, places[before[0]], places[after[0]])
            self._costs[tensor, before, after] = cost
        return cost

    def _moved_from(self, relation: PlacedRelation, before: Place, after: Place) -> float:
        if isinstance(before, Unplaced) or after == Unplaced.APART:
            return 0.0 if before == after else math.inf
        placed = relation.at(before)
        try:
            plan = moved(placed, after)
        except AlgebraError:  # nothing is sent to be scattered
            return math.inf
        return 0.0 if plan is placed else cost_of([plan], self.sites).total(self.sites)


@dataclass
class _PlanSearch:
    """The search for the strategies to compute expressions.

    Attributes:
        expressions: The expressions.
        distributions: Where inputs are, by name; others are scattered.
        sites: The sites and their costs.
        operators: The operators so far, by name, in topological order.
    """

    expressions: tuple[Expression, ...]
    distributions: Mapping[str, Distribution]
    sites: Sites
    operators: dict[str, _SearchedOperator] = field(default_factory=dict)

    def plans(self) -> tuple[SitePlan, ...]:
        """The cheapest plan of every expression."""
        nodes = {id(node): node for expression in self.expressions for node in topological_order(expression)}
        readers = Counter(id(operand) for node in nodes.values() for operand in node.inputs)
        readers.update(map(id, self.expressions))
        products = {
            id(node.input)
            for node in nodes.values()
            if isinstance(node, Aggregation | Concat) and is_product(node.input) and readers[id(node.input)] == 1
        }
        results: dict[int, str] = {}  # the names of operators
        read: dict[int, str] = {}  # the names of what others read
        for key, node in nodes.items():
            operands = [read[id(operand)] for operand in node.inputs]
            joined = [read[id(operand)] for operand in node.inputs if id(operand) in products]
            sides = [side.tensor for name in joined for side in self.operators[name].operands]
            if isinstance(node, Input):
                strategies = [
                    OperatorStrategy.of_plan((), PlacedInput(node, self.distributions.get(node.name, Scattered())))
                ]
            else:
                inputs, of_join = self._relations(operands), self._relations(sides)
                strategies = list(strategies_of_operator(node, inputs, of_join, may_stay_apart=key in products))
            results[key] = read[key] = self._add(operands, strategies)
            if readers[key] > 1:  # it is sent once for all
                read[key] = self._add([results[key]], sending_strategies(*self._relations([results[key]])))
        built = self._built()
        return tuple(built[results[id(expression)]][0] for expression in self.expressions)

    def _relations(self, names: Sequence[str]) -> list[PlacedRelation]:
        return [self.operators[name].relation for name in names]

    def _add(self, operands: Sequence[str], strategies: Iterable[OperatorStrategy]) -> str:
        """Add an operator; returns its name."""
        kept = tuple(strategy for strategy in strategies if all(plan.pending is None for plan in strategy.plans))
        plan, counts, _ = cost_by_operator(kept[0].plans, self.sites)[-1]  # the first strategy computes the result
        places = tuple(dict.fromkeys(strategy.place for strategy in kept if not isinstance(strategy.place, Unplaced)))
        relation = PlacedRelation(plan.type, counts, places)
        name = str(len(self.operators))
        references = tuple(Reference(operand, ()) for operand in operands)
        self.operators[name] = _SearchedOperator(Reference(name, ()), references, kept, relation)
        return name

    def _built(self) -> Mapping[str, tuple[SitePlan, ...]]:
        """The plans of all operators, by name, each computed in its best strategy; two plans of a join that is not."""
        operators = list(self.operators.values())
        choices = {
            name: [(number,) for number in range(len(operator.strategies))] for name, operator in self.operators.items()
        }
        pricing = _StrategyPricing(self.operators, choices, self.sites)
        result = search_in_lists(pricing, operators, 1, _TABLE_LIMIT)
        if not result.is_exact and math.isinf(result.candidates[0].cost):
            # Short lists may lack places that others need.
            result = search_in_lists(pricing, operators, 1, math.inf)
        built: dict[str, tuple[SitePlan, ...]] = {}
        choice_of = result.best
        for name, operator in self.operators.items():
            strategy = operator.strategies[choice_of[name][0]]
            plans = [
                moved(plan, place)
                for operand, place in zip(operator.operands, strategy.required, strict=True)
                for plan in built[operand.tensor]
            ]
            inputs = {id(placed): plan for placed, plan in zip(strategy.inputs, plans, strict=True)}
            built[name] = tuple(_with_plans(plan, inputs) for plan in strategy.plans)
        return built


def _with_plans(plan: SitePlan, inputs: Mapping[int, SitePlan]) -> SitePlan:
    """A plan with others in place of its inputs, by their ids."""
    if id(plan) in inputs:
        return inputs[id(plan)]
    return with_inputs(plan, tuple(_with_plans(operand, inputs) for operand in plan.inputs))


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

"""The search over the rules finds a cheapest plan, and that plan computes the expression."""

from collections import deque
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st
from random_relations import Problem, problems
from random_runs import random_runs
from test_implementation_algebra import expect_equal

from sparseeinsum.algebra.implementation.compile import table1_plan
from sparseeinsum.algebra.implementation.operator_costs import Sites, cost_of
from sparseeinsum.algebra.implementation.plan_search import best_plans
from sparseeinsum.algebra.implementation.rewriting import RULES, Rule, rewritten_plans
from sparseeinsum.algebra.implementation.simulate import simulate
from sparseeinsum.algebra.implementation.site_operators import SitePlan
from sparseeinsum.algebra.relational.evaluate import evaluate


def reachable(plan: SitePlan, rules: Iterable[Rule], most: int) -> list[SitePlan]:
    """A plan and the plans that rules reach from it, by the number of steps; at most `most`."""
    chosen = tuple(rules)
    reached = {plan: None}
    waiting = deque([plan])
    while waiting and len(reached) < most:
        for other in rewritten_plans(waiting.popleft(), chosen):
            if other not in reached:
                reached[other] = None
                waiting.append(other)
    return list(reached)[:most]


@random_runs(30)
@given(problems(4), st.sampled_from([2, 3, 5]))
def test_no_plan_that_the_rules_reach_is_cheaper(problem: Problem, count: int) -> None:
    sites = Sites(count)
    plan = best_plans([problem.expression], problem.placements, sites)[0]
    expect_equal(simulate(plan, problem.inputs, count).relation(), evaluate(problem.expression, problem.inputs))
    reachable_plans = reachable(table1_plan(problem.expression, problem.placements), RULES.values(), 150)
    cheapest = min(reachable_plans, key=lambda site_plan: cost_of(site_plan, sites).total(sites))
    assert cost_of(plan, sites).total(sites) <= cost_of(cheapest, sites).total(sites) * (1 + 1e-9), (plan, cheapest)

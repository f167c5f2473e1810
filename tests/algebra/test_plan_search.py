"""The search over the rules finds a cheapest plan, and that plan computes the expression."""

from collections import deque
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from random_relations import Problem, problems
from random_runs import random_runs
from test_implementation_algebra import expect_equal

import sparseeinsum as se
from sparseeinsum.algebra.implementation.compile import table1_plan
from sparseeinsum.algebra.implementation.operator_costs import Sites, cost_of
from sparseeinsum.algebra.implementation.plan_search import best_plans
from sparseeinsum.algebra.implementation.rewriting import RULES, Rule, rewritten_plans
from sparseeinsum.algebra.implementation.simulate import simulate
from sparseeinsum.algebra.implementation.site_operators import Broadcast, LocalJoin, Shuffle, SitePlan
from sparseeinsum.algebra.relational.compositions import OperandwiseKernel
from sparseeinsum.algebra.relational.evaluate import RelationTuples, evaluate
from sparseeinsum.algebra.relational.folds import AggregateFold
from sparseeinsum.algebra.relational.kernels import ADD, einsum_kernel
from sparseeinsum.algebra.relational.keys import all_keys
from sparseeinsum.algebra.relational.relational_expressions import Aggregation, Input, Join
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.algebra.relational.types import RelationType
from sparseeinsum.decompose.places.distribution import Hashed


def blocks_of(matrix: NDArray[np.float64], size: int) -> RelationTuples:
    """The square blocks of a square matrix."""
    keys = all_keys((len(matrix) // size,) * 2)
    return {(i, j): matrix[i * size : (i + 1) * size, j * size : (j + 1) * size] for i, j in keys}


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


@pytest.mark.parametrize("addition", ["add", "w[i, j] = u[i, j] + v[i, j]"])
def test_diagonal_of_a_sum_is_found_as_in_section_5_2_1(addition: str) -> None:
    """The last step is R1-7: only the diagonals of the blocks on the diagonal are added."""
    x, y = (se.TensorRelation(Input(name, RelationType((4, 4), (5, 5)))) for name in "XY")
    blocks = x.join(y, on=[(0, 0), (1, 1)], kernel=addition).filter(lambda i, j: i == j).rekey(lambda i, j: i)
    diagonal = blocks.transform("w[i] = u[i, i]")
    (plan,) = diagonal.distributed(3).plans.values()
    assert isinstance(plan, LocalJoin)
    assert plan.kernel == OperandwiseKernel(ADD, einsum_kernel("ii->i"))
    matrices = np.random.default_rng(0).normal(size=(2, 20, 20))
    inputs = {name: blocks_of(matrix, 5) for name, matrix in zip("XY", matrices, strict=True)}
    result = simulate(plan, inputs, 3).relation()
    for k in range(4):
        np.testing.assert_allclose(result[(k,)], np.diag(matrices.sum(axis=0))[5 * k : 5 * k + 5])


def test_search_does_not_shuffle_between_equal_keys() -> None:
    """X is partitioned by rows, Y by columns, and blocks on the diagonal are where they meet."""
    x, y = (se.TensorRelation(Input(name, RelationType((4, 4), (5, 5)))).filter(lambda i, j: i == j) for name in "XY")
    plans = x.join(y, on=[(0, 0), (1, 1)], kernel="add").distributed(4, {"X": (0,), "Y": (1,)})
    assert (plans.transfer, plans.moved()) == (0, 0)
    scattered = x.join(y, on=[(0, 0), (1, 1)], kernel="add").distributed(4)
    shuffles = [node for plan in scattered.plans.values() for node in topological_order(plan) if node.inputs]
    assert {node.dims for node in shuffles if isinstance(node, Shuffle)} == {(0,)}  # not by both


def test_a_result_that_several_operators_read_is_sent_once() -> None:
    x, y, z = (Input(name, RelationType((8,), (50,))) for name in "XYZ")
    total = Aggregation(x, (), AggregateFold("sum"))
    sums = [Join(total, operand, (), (), ADD) for operand in (y, z)]
    plans = best_plans(sums, dict.fromkeys("XYZ", Hashed(0)), Sites(4))
    nodes = {id(node): node for plan in plans for node in topological_order(plan)}
    assert [type(node) for node in nodes.values()].count(Broadcast) == 1
    assert cost_of(plans, Sites(4)).transfer <= 4 * 4 * 50


@random_runs(30)
@given(problems(4), st.sampled_from([2, 3, 5]))
def test_no_plan_that_the_rules_reach_is_cheaper(problem: Problem, count: int) -> None:
    sites = Sites(count)
    plan = best_plans([problem.expression], problem.distributions, sites)[0]
    expect_equal(simulate(plan, problem.inputs, count).relation(), evaluate(problem.expression, problem.inputs))
    reachable_plans = reachable(table1_plan(problem.expression, problem.distributions), RULES.values(), 150)
    cheapest = min(reachable_plans, key=lambda site_plan: cost_of([site_plan], sites).total(sites))
    assert cost_of([plan], sites).total(sites) <= cost_of([cheapest], sites).total(sites) * (1 + 1e-9), (plan, cheapest)

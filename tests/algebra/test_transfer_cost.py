"""Transfer costs are the numbers of the paper's tables 4, 6 and 9, and what simulated sites move."""

import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_relations import Problem, problems, sum_of
from random_runs import random_runs

from bench.relational_algebra import neighbours
from bench.relational_plans import (
    DATA_PARALLEL,
    FFNN_SHAPES,
    MODEL_PARALLEL,
    NEIGHBOURS,
    PRINTED,
    PRINTED_DATA_PARALLEL,
    SHAPES,
    data_parallel,
    data_parallel_parts,
    horizontal,
    matrix,
    model_parallel,
    model_parallel_parts,
    nearest_neighbour,
    product,
    three_ways,
    training_step,
    vertical,
)
from sparseeinsum.algebra.implementation.compile import table1_plan
from sparseeinsum.algebra.implementation.operator_costs import Sites, cost_by_operator, cost_of
from sparseeinsum.algebra.implementation.plan_search import best_plans
from sparseeinsum.algebra.implementation.rewriting import RULES, rewritten_plans
from sparseeinsum.algebra.implementation.simulate import replay, simulate
from sparseeinsum.algebra.implementation.site_operators import (
    Broadcast,
    LocalJoin,
    PlacedInput,
    Shuffle,
    SitePlan,
)
from sparseeinsum.algebra.relational.evaluate import RelationTuples
from sparseeinsum.algebra.relational.folds import AggregateFold
from sparseeinsum.algebra.relational.kernels import MATRIX_PRODUCT, einsum_kernel
from sparseeinsum.algebra.relational.relational_expressions import Expression, Input, Join
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.algebra.relational.types import RelationType
from sparseeinsum.decompose.places.distribution import Distribution, Hashed, Replicated, Scattered
from sparseeinsum.errors import AlgebraError

SUM = AggregateFold("sum")


def transfer(plan: SitePlan, sites: int) -> float:
    """The floats that a plan transfers between the sites."""
    return cost_of([plan], Sites(sites)).transfer


def best_plan(expression: Expression, distributions: Mapping[str, Distribution], sites: Sites) -> SitePlan:
    return best_plans([expression], distributions, sites)[0]


@pytest.mark.parametrize("name", SHAPES)
def test_matrix_products_of_table_4(name: str) -> None:
    transfers = [transfer(plan, 10) for plan in three_ways(SHAPES[name], 10)]
    assert [float(f"{floats:.1e}") for floats in transfers] == list(PRINTED[name])


@pytest.mark.parametrize(
    ("name", "join_kind"), [("a common large dim", "cross"), ("two large dims", "broadcast"), ("two general", "any")]
)
def test_search_finds_the_winner_of_table_4(name: str, join_kind: str) -> None:
    """For scattered blocks, the plan found moves no more than the paper's best and joins pairs in the same way."""
    rows, inner, columns = SHAPES[name]
    left, right = matrix("X", (rows, inner), (10, 10)), matrix("Y", (inner, columns), (10, 10))
    expression = sum_of(Join(left.input, right.input, (1,), (0,), MATRIX_PRODUCT), [0, 2])
    sites = Sites(10)
    plan = best_plan(expression, {}, sites)
    alternatives = (product(left, right).broadcast(), product(left, right).cross(), product(left, right).replicated())
    assert cost_of([plan], sites).total(sites) <= min(
        cost_of([alternative], sites).total(sites) for alternative in alternatives
    )
    joins = [node for node in topological_order(plan) if isinstance(node, LocalJoin)]
    broadcasts = any(isinstance(node, Broadcast) for node in topological_order(plan))
    if join_kind != "any":
        assert broadcasts == (join_kind == "broadcast")
        assert (joins[0].distribution == Hashed(1)) == (join_kind == "cross")


@pytest.mark.parametrize(("points", "features"), NEIGHBOURS)
def test_nearest_neighbours_of_table_6(points: int, features: int) -> None:
    expected = NEIGHBOURS[points, features]
    by_rows, by_features = horizontal(points, features, 8), vertical(points, features, 8)
    assert float(f"{transfer(by_rows, 8):.1e}") == expected[0]
    moved = [cost.shuffled for node, _, cost in cost_by_operator([by_features], Sites(8)) if isinstance(node, Shuffle)]
    assert max(moved) == expected[1]
    assert math.isclose(transfer(by_features, 8), expected[1], rel_tol=0.01)
    assert (transfer(by_rows, 8) < transfer(by_features, 8)) == (expected[0] < expected[1])
    for parts, distributions, best in (
        ((8, 1), {"X": Hashed(0), "A": Hashed(0), "q": Hashed(0)}, by_rows),
        ((1, 8), {"X": Hashed(1), "A": Hashed(0), "q": Hashed(0)}, by_features),
    ):
        searched_plan = best_plan(nearest_neighbour(points, features, parts)[0], distributions, Sites(8))
        assert cost_of([searched_plan], Sites(8)).total(Sites(8)) <= cost_of([best], Sites(8)).total(Sites(8))


def test_tables_of_the_benchmark() -> None:
    """With the distributions of the paper's best plan, the chosen plan moves no more floats than that plan."""
    figures = neighbours()
    for case in {figure.case for figure in figures}:
        moved = {figure.plan: figure.moved for figure in figures if figure.case == case}
        assert moved["chosen"] <= min(moved["Opt4Horizontal"], moved["Opt4Vertical"])
        assert all(figure.moved <= figure.transfer for figure in figures)


@pytest.mark.parametrize("name", FFNN_SHAPES)
def test_training_steps_of_table_9(name: str) -> None:
    """The paper assumes gradients on one site, and counts only the broadcasts of MP."""
    shape, sites = FFNN_SHAPES[name], Sites(5)
    by_batch, by_model = cost_of(data_parallel(shape, 5), sites), cost_of(model_parallel(shape, 5), sites)
    assert math.isclose(by_batch.broadcast + by_batch.shuffled / 5, PRINTED_DATA_PARALLEL[name], rel_tol=0.04)
    batch, _, hidden, _ = shape
    assert by_model.broadcast == 2 * 5 * batch * hidden
    is_google = name.startswith("Google")
    assert (by_batch.transfer < by_model.transfer) == is_google


def test_search_finds_no_worse_training_step() -> None:
    shape, sites = FFNN_SHAPES["Google 100k"], Sites(5)
    searched_plans = best_plans(training_step(shape, data_parallel_parts(5)), DATA_PARALLEL, sites)
    by_hand = cost_of(data_parallel(shape, 5), sites)
    assert cost_of(searched_plans, sites).total(sites) <= by_hand.total(sites)
    assert cost_of(searched_plans, sites).transfer <= by_hand.transfer


def test_training_steps_compute_the_same() -> None:
    """The paper's plan and the plan found give the same results for small matrices."""
    shape = (8, 6, 4, 6)
    rng = np.random.default_rng(0)
    names = {"X": (0, 1), "W1": (1, 2), "W2": (2, 3), "T": (0, 3)}
    dense = {name: rng.normal(size=(shape[first], shape[second])) for name, (first, second) in names.items()}
    hidden = np.maximum(dense["X"] @ dense["W1"], 0)
    error = 1 / (1 + np.exp(-hidden @ dense["W2"])) - dense["T"]
    back = error @ dense["W2"].T * np.sign(hidden)
    expected = (dense["W1"] - dense["X"].T @ back, dense["W2"] - hidden.T @ error)
    for parts, distributions, plans in (
        (data_parallel_parts(2), DATA_PARALLEL, data_parallel(shape, 2)),
        (model_parallel_parts(2), MODEL_PARALLEL, model_parallel(shape, 2)),
    ):
        inputs: dict[str, RelationTuples] = {
            name: {
                (i, j): block
                for i, rows in enumerate(np.split(dense[name], parts[first]))
                for j, block in enumerate(np.split(rows, parts[second], axis=1))
            }
            for name, (first, second) in names.items()
        }
        searched_plans = best_plans(training_step(shape, parts)[:1], distributions, Sites(2))
        for site_plans in (plans, searched_plans):
            for plan, array in zip(site_plans, expected, strict=False):
                relation = simulate(plan, inputs, 2).relation()
                rows = [[relation[i, j] for j in range(plan.type.frontier[1])] for i in range(plan.type.frontier[0])]
                np.testing.assert_allclose(np.block(rows), array)


@random_runs(80)
@given(problems(), st.sampled_from([2, 3, 4]), st.data())
def test_dense_counts_are_exact_and_bound_the_transfer(problem: Problem, sites: int, data: st.DataObject) -> None:
    plan = table1_plan(problem.expression, problem.distributions)
    for _ in range(2):
        others = list(rewritten_plans(plan, RULES.values()))
        plan = data.draw(st.sampled_from(others)) if others else plan
    moved = {id(traffic.plan): traffic.floats for traffic in simulate(plan, problem.inputs, sites).traffic}
    for node, counts, cost in cost_by_operator([plan], Sites(sites)):
        run = simulate(node, problem.inputs, sites)
        tuples = sum(map(len, run.sites)) / (sites if node.distribution == Replicated() else 1)
        if all(operand.type.is_continuous for operand in topological_order(node)):
            if node.pending is None:
                assert counts.tuples == tuples
            assert counts.tuples >= tuples
            assert moved.get(id(node), 0) <= cost.transfer * (1 + 1e-9)


def test_sparse_counts() -> None:
    """The statistics T and V of an adjacency matrix: only stored tuples are counted as moved."""
    adjacency = Input("A", RelationType((2708, 2708), (), False), 10_556, (2708, 2708))
    features = Input("H", RelationType((2708,), (16,)))
    expression = sum_of(Join(adjacency, features, (1,), (0,), einsum_kernel(",m->m")), [0])
    placed = PlacedInput(adjacency, Scattered())
    assert transfer(Shuffle(placed, (0,)), 4) == 10_556
    assert transfer(Broadcast(placed), 4) == 4 * 10_556
    plan = best_plan(expression, {"A": Hashed(0), "H": Hashed(0)}, Sites(4))
    assert transfer(plan, 4) <= 4 * 2708 * 16
    sizes = [counts.tuples for node, counts, _ in cost_by_operator([plan], Sites(4)) if isinstance(node, LocalJoin)]
    assert sizes == [10_556]


def test_memory_of_a_site_is_a_limit() -> None:
    """Where a broadcast does not fit into memory, both sides are shuffled, or no plan is found."""
    left, right = matrix("X", (1000, 10_000), (10, 10)), matrix("Y", (10_000, 10), (10, 1))
    expression = sum_of(Join(left.input, right.input, (1,), (0,), MATRIX_PRODUCT), [0, 2])
    distributions = {"X": Hashed(0)}
    roomy = best_plan(expression, distributions, Sites(10))
    assert transfer(roomy, 10) == 10 * 10_000 * 10
    least = cost_of([roomy], Sites(10)).memory
    tight = best_plan(expression, distributions, Sites(10, memory_floats=least * 0.99))
    assert cost_of([tight], Sites(10)).memory < least
    assert transfer(tight, 10) > transfer(roomy, 10)
    with pytest.raises(AlgebraError, match="a site has memory for 1,000 floats"):
        best_plan(expression, distributions, Sites(10, memory_floats=1000))


def test_replay_on_many_sites() -> None:
    """For up to 1,024 sites, without arrays: a broadcast moves floats to every site but the one that had them."""
    plan = product(matrix("X", (4096, 512), (32, 1)), matrix("Y", (512, 4096), (1, 32), Hashed(1))).broadcast()
    for sites in (2, 64, 1024):
        broadcast, shuffle = replay(plan, sites)
        assert broadcast.floats == 4096 * 512 * (sites - 1)
        assert shuffle.floats <= 4096 * 4096
        assert transfer(plan, sites) == pytest.approx(4096 * 512 * sites + 4096 * 4096)

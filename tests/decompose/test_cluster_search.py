"""The search for a cluster's decompositions and placements finds the cheapest of all combinations."""

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from planning_problems import MOST_PLANS, Problem, drawn

import sparseeinsum as se
from sparseeinsum.algebra.placement import place_definitions
from sparseeinsum.algebra.translate import InputTensors, MaterializationPolicy, translate
from sparseeinsum.decompose.clusters.cluster_tasks import Machines
from sparseeinsum.decompose.clusters.costs import TransferCosts, Volume
from sparseeinsum.decompose.clusters.local_strategies import slice_strategies, stack_strategies
from sparseeinsum.decompose.clusters.repartition_routes import (
    PossiblePlaces,
    PricedOperator,
    Routes,
    SizedRelation,
    tables_for,
)
from sparseeinsum.decompose.clusters.transfers import Cluster
from sparseeinsum.decompose.decomposed_graph import DecomposedGraph, price_choices
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.places.distribution import Central, Distribution, Hashed, Replicated
from sparseeinsum.language.tensors import DEMOTED, Decomposition

pytestmark = pytest.mark.engines("duckdb", reason="nothing runs in the database")

# Small tensors are not gathered here, so that transferred bytes count.
COSTS = TransferCosts(Cluster(sites=4, shards=8), table_seconds=1e-4, small_bytes=0)


def machines(problem: Problem, rng: random.Random) -> Machines:
    """A cluster on which the inputs have random placements."""
    places: dict[str, Distribution] = {}
    for name, tensor in problem.model.graph.tensors.items():
        promoted = problem.stored[name].promoted if name in problem.stored else tuple(range(len(tensor.axes)))
        possible: list[Distribution] = [*map(Hashed, promoted), Replicated(), Central()]
        places[name] = rng.choice(possible)
    return Machines(COSTS, places)


def problems(count: int) -> Iterator[tuple[Problem, Machines]]:
    """Trees and graphs with shared results that have few enough plans to price all."""
    rng = random.Random(0)
    mixed = itertools.chain.from_iterable(zip(drawn(True, count), drawn(False, count), strict=False))
    small = (problem for problem in mixed if len(problem.all_plans()) <= MOST_PLANS // 4)
    for problem in itertools.islice(small, count):
        yield problem, machines(problem, rng)


def test_no_decomposition_is_cheaper_with_its_best_placements() -> None:
    agreements = set()
    for problem, cluster in problems(16):
        (best, *_) = problem.optimise(k=1, machines=cluster)
        all_seconds = [
            price_choices(problem.model, choices, problem.stored, problem.layouts, cluster).seconds
            for choices in problem.all_plans()
        ]
        assert best.seconds == pytest.approx(min(all_seconds), rel=1e-9)
        alone = problem.optimise()[0]
        agreements.add([step.choice for step in alone.steps] == [step.choice for step in best.steps])
    assert agreements == {True, False}  # on several machines some plans differ


def test_the_best_plans_are_different_decompositions() -> None:
    problem, cluster = next(problems(8))
    plans = problem.optimise(k=4, machines=cluster)
    choices = [tuple(step.choice for step in plan.steps) for plan in plans]
    assert len(set(choices)) == len(choices) == 4
    assert [plan.seconds for plan in plans] == sorted(plan.seconds for plan in plans)


@pytest.mark.parametrize(
    ("before", "after"),
    [((1, DEMOTED), (1, 1)), ((1, 1), (1, DEMOTED)), ((1, DEMOTED), (DEMOTED, 1)), ((1, 1), (DEMOTED, DEMOTED))],
)
def test_routes(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    """The price of a route is the sum over its placed operators, and no other placement costs less."""
    between = tuple(max(pair) for pair in zip(before, after, strict=True))
    source, middle, expected = map(Decomposition, (before, between, after))
    operators = []
    if middle != source:
        operators.append(
            PricedOperator(tuple(slice_strategies(source, middle)), SizedRelation(middle, Volume(1e4, 3e6)), 1e-3)
        )
    if middle != expected:
        operators.append(
            PricedOperator(tuple(stack_strategies(middle, expected)), SizedRelation(expected, Volume(1e4, 1e6)), 1e-3)
        )
    routes = Routes(COSTS, PossiblePlaces(2))
    start_relation = SizedRelation(source, Volume(1e4, 2e6))
    seconds = routes.seconds(start_relation, operators)

    def moved(sized: SizedRelation, origin: Distribution, goal: Distribution) -> float:
        return 0.0 if origin == goal else COSTS.transfer_seconds(sized.volume, origin, goal)

    def priced(
        placed_operators: list[tuple[PricedOperator, int, Distribution]], start: Distribution, end: Distribution
    ) -> float:
        total, location, relation = 0.0, start, start_relation
        for operator, number, place in placed_operators:
            strategy = operator.strategies[number]
            total += moved(relation, location, strategy.operands[0]) + operator.seconds * COSTS.work_share(strategy)
            total += COSTS.filling_seconds(operator.result.volume, strategy, place)
            location, relation = place, operator.result
        return total + moved(relation, location, end)

    options = [
        [
            (operator, number, place)
            for number in range(len(operator.strategies))
            for place in tables_for(operator.result.promoted)
        ]
        for operator in operators
    ]
    for start, end in itertools.product(tables_for(source.promoted), tables_for(expected.promoted)):
        least = min(priced(list(placed_operators), start, end) for placed_operators in itertools.product(*options))
        assert routes.between(seconds, start, end) == pytest.approx(least, rel=1e-12)
        placed_operators = routes.placed_operators(start_relation, operators, start, end)
        taken = [
            (operator, operator.strategies.index(placed.strategy), placed.distribution)
            for operator, placed in zip(operators, placed_operators, strict=True)
        ]
        assert priced(taken, start, end) == pytest.approx(least, rel=1e-12)


def test_work_is_shared_by_as_many_machines_as_there_are_keys() -> None:
    strategies = slice_strategies(Decomposition((1, 0)), Decomposition((1, 1)))
    strategy = next(candidate for candidate in strategies if not candidate.runs_on_one_site)
    assert [COSTS.work_share(strategy, keys) for keys in (1, 2, 1000)] == [1.0, 0.5, 0.25]
    faster = replace(COSTS, cluster=Cluster(sites=8, shards=8))
    assert faster.work_share(strategy) == 1 / 8


STEP = """
H[b, h] = relu(sum(X[b, m] * W1[m, h]))
E[b, o] = sigmoid(sum(H[b, h] * W2[h, o])) - T[b, o]
V2[h, o] = W2[h, o] - sum(H[b, h] * E[b, o])
F[b, h] = sum(E[b, o] * W2[h, o]) * sign(H[b, h])
V1[m, h] = W1[m, h] - sum(X[b, m] * F[b, h])
"""


def bytes_of(graph: DecomposedGraph, plan: se.Plan, model: CostModel) -> float:
    """The bytes that machines are expected to send each other."""
    assert graph.cluster_plan is not None
    policy = MaterializationPolicy.for_model(model, has_workers=True)
    definitions = translate(graph, InputTensors.of_measured(plan.data.inputs), model.evaluations, policy)
    return place_definitions(definitions, graph.cluster_plan, model).total_bytes


@pytest.mark.parametrize("bytes_per_second", [1e9, 1e6])
def test_small_work_gets_the_choices_that_send_little(db: se.Database, bytes_per_second: float) -> None:
    """What takes no time on one machine may take long to send; the search looks at all choices of this step."""
    tiles = {"X": (50, 64), "W1": (64, 500), "W2": (500, 16), "T": (50, 16)}
    shapes = {"X": (400, 64), "W1": (64, 4000), "W2": (4000, 16), "T": (400, 16)}
    for name, shape in shapes.items():
        db.tensor(name, np.ones(shape), promoted=dict(zip(("dim_0", "dim_1"), tiles[name], strict=True)))
    plan = db.plan(STEP, layout="any", indexes=False)  # a cluster has no operands in memory
    places = {"X": Hashed(0), "W1": Hashed(1), "W2": Hashed(0), "T": Hashed(0)}
    costs = TransferCosts(Cluster(2, 8, bytes_per_second))
    alternatives = replace(plan.data.alternatives, machines=Machines(costs, places))
    (best,), (least,) = (replace(alternatives, searches_all=is_whole).best(1) for is_whole in (False, True))
    assert best.seconds <= least.seconds * 1.01
    (by_bytes,) = replace(alternatives, machines=Machines(costs, places, counts_bytes=True)).best(1)
    assert bytes_of(by_bytes, plan, alternatives.model) <= bytes_of(best, plan, alternatives.model)
    assert by_bytes.seconds >= best.seconds * (1 - 1e-9)
    assert by_bytes.cost > 10 * by_bytes.seconds  # a second for every byte
    (alone,) = replace(alternatives, machines=None).best(1)
    assert alternatives.priced(alone.choices).seconds > 1.5 * best.seconds

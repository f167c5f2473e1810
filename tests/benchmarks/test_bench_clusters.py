"""Plans of the cluster benchmark compute numpy's results and move no more than the papers' formulas allow."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pytest

import sparseeinsum as se
from bench.cluster_chain import cuts, shapes_of
from bench.cluster_plans import Case, Laid, Way, neighbour_case, product_case, training_case
from bench.clusters import figures_of
from sparseeinsum.algebra.implementation.operator_costs import Sites, cost_of
from sparseeinsum.algebra.implementation.simulate import replay, simulate
from sparseeinsum.algebra.relational.evaluate import RelationTuples

CASES: dict[str, Callable[[], Case]] = {  # planned where a test needs them: that takes seconds
    "product": partial(product_case, "product", 8, 16, 12, 2),
    "many points": partial(neighbour_case, "many points", 32, 16, 2),
    "many features": partial(neighbour_case, "many features", 16, 32, 2),
    "wide hidden layer": partial(training_case, "wide hidden layer", (16, 16, 32, 16), 2),
    "many features and labels": partial(training_case, "many features and labels", (16, 48, 16, 32), 2),
}


def blocks(laid: Laid) -> RelationTuples:
    """A tensor as a relation."""
    sizes = tuple(laid.tiles.values())
    return {
        key: laid.array[tuple(slice(at * size, (at + 1) * size) for at, size in zip(key, sizes, strict=True))]
        for key in np.ndindex(*laid.parts)
    }


def put_together(relation: RelationTuples, shape: tuple[int, ...]) -> np.ndarray:
    """The tensor of a relation of blocks."""
    whole = np.zeros(shape)
    for key, array in relation.items():
        whole[tuple(slice(at * size, (at + 1) * size) for at, size in zip(key, array.shape, strict=True))] = array
    return whole


def check(strategy: Way, expected: Mapping[str, np.ndarray]) -> None:
    inputs = {name: blocks(laid) for name, laid in strategy.layout.items()}
    for plan, wanted in zip(strategy.plans, expected.values(), strict=True):
        result = put_together(simulate(plan, inputs, 3).relation(), wanted.shape)
        np.testing.assert_allclose(result, wanted, rtol=1e-9, atol=1e-9)
    moved = {id(traffic.plan): traffic.floats for plan in strategy.plans for traffic in replay(plan, 3)}
    assert 0 < sum(moved.values()) <= cost_of(strategy.plans, Sites(3)).transfer


@pytest.mark.parametrize("name", CASES)
def test_plans(name: str) -> None:
    case = CASES[name]()
    by_hand = [strategy for strategy in case.ways if strategy.plans]
    assert [strategy.name for strategy in case.ways][-2:] == ["search", "db.plan"]
    for strategy in by_hand:
        check(strategy, case.expected)


@pytest.mark.parametrize("is_square", [True, False])
def test_chains(is_square: bool) -> None:
    partitions, expected = cuts(shapes_of(128, is_square))
    assert min(partitions, key=lambda partition: partition.floats).name == "EinDecomp"
    for partition in partitions:
        check(Way(partition.name, partition.layout, (partition.plan,)), expected)


@pytest.mark.parametrize("name", ["product", "many features", "wide hidden layer"])
def test_on_a_cluster(citus: se.Database, name: str) -> None:
    """The benchmark compares the results; its figures are complete."""
    for figure in figures_of(citus, CASES[name]()):
        assert figure.machines >= 1
        assert (figure.placement is None) == (not figure.plan.startswith("db.plan"))

"""Programs send the least of all plans of the implementation algebra in which every site has its share of work."""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

import sparseeinsum as se
from sparseeinsum.algebra.implementation.counts import count_tuples
from sparseeinsum.algebra.implementation.operator_strategies import (
    OperatorStrategy,
    PlacedRelation,
    Unplaced,
    moved,
    strategies_of_operator,
)
from sparseeinsum.algebra.implementation.simulate import simulate
from sparseeinsum.algebra.implementation.site_operators import LocalJoin, PlacedInput, SitePlan, with_inputs
from sparseeinsum.algebra.relational.folds import AggregateFold
from sparseeinsum.algebra.relational.kernels import MATRIX_PRODUCT
from sparseeinsum.algebra.relational.relational_expressions import Aggregation, Input, Join
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.algebra.relational.types import RelationType
from sparseeinsum.decompose.places.distribution import Distribution, Hashed
from sparseeinsum.operators.dtypes import Array

BLOCK = 1  # rows and columns
PLACES: tuple[Distribution, ...] = (Hashed(0), Hashed(1), Hashed())


def product_of(rows: int, inner: int, columns: int) -> tuple[tuple[Input, Input], Aggregation]:
    """Two matrices in blocks, and their product."""
    keys = {"A": (rows, inner), "B": (inner, columns)}
    a, b = (Input(name, RelationType(frontier, (BLOCK, BLOCK))) for name, frontier in keys.items())
    return (a, b), Aggregation(Join(a, b, (1,), (0,), MATRIX_PRODUCT), (0, 2), AggregateFold("sum"))


def plans_of(inputs: Sequence[Input], product: Aggregation, sites: int) -> Iterator[SitePlan]:
    """All plans, with inputs stored in any strategy."""
    for places in itertools.product(PLACES, repeat=2):
        stored = [PlacedInput(side, place) for side, place in zip(inputs, places, strict=True)]
        sides = [placed(side, sites) for side in stored]
        for pairs in strategies_of_operator(product.input, sides, [], may_stay_apart=False):
            (joined,) = built(pairs, stored)
            for strategy in strategies_of_operator(
                product, [placed(joined, sites, sides)], sides, may_stay_apart=False
            ):
                yield from built(strategy, stored if strategy.required == (Unplaced.APART,) else [joined])


def placed(plan: SitePlan, sites: int, inputs: Sequence[PlacedRelation] = ()) -> PlacedRelation:
    counts = count_tuples(plan, [operand.counts for operand in inputs], sites)
    return PlacedRelation(plan.type, counts, (plan.distribution,))


def built(strategy: OperatorStrategy, inputs: Sequence[SitePlan]) -> Iterator[SitePlan]:
    """The plans of a strategy, if nothing waits to be added up, with inputs that are sent to where it reads them."""
    required = strategy.required if len(strategy.required) == len(inputs) else (Unplaced.ANYWHERE,) * len(inputs)
    sent = {
        id(operand): moved(plan, place) for operand, plan, place in zip(strategy.inputs, inputs, required, strict=True)
    }
    return (with_plans(plan, sent) for plan in strategy.plans if plan.pending is None)


def with_plans(plan: SitePlan, sent: dict[int, SitePlan]) -> SitePlan:
    if id(plan) in sent:
        return sent[id(plan)]
    return with_inputs(plan, tuple(with_plans(operand, sent) for operand in plan.inputs))


@pytest.mark.parametrize(("blocks", "sites"), [((2, 2, 2), 2), ((4, 2, 2), 4), ((2, 4, 2), 4), ((4, 2, 2), 2)])
def test_no_plan_with_shared_work_moves_less(blocks: tuple[int, int, int], sites: int) -> None:
    rng = np.random.default_rng(0)
    inputs, product = product_of(*blocks)
    arrays: dict[str, dict[tuple[int, ...], Array]] = {
        side.name: {key: rng.normal(size=(BLOCK, BLOCK)) for key in np.ndindex(*side.type.frontier)} for side in inputs
    }
    rows, inner, columns = (BLOCK * count for count in blocks)
    program = se.partition("C[i, k] = sum(A[i, j] * B[j, k])", sites, {"A": (rows, inner), "B": (inner, columns)})
    shared: list[float] = []
    others: list[float] = []
    for plan in plans_of(inputs, product, sites):
        (join,) = (node for node in topological_order(plan) if isinstance(node, LocalJoin))
        calls = [len(site) for site in simulate(join, arrays, sites).sites]
        run = simulate(plan, arrays, sites)
        assert run.relation().keys() == set(np.ndindex(blocks[0], blocks[2]))
        (shared if min(calls) == max(calls) == np.prod(blocks) // sites else others).append(run.floats)
    assert len(shared) > 10
    assert min(shared) >= program.moved
    assert min(others) == 0  # everything on one site, where the inputs are

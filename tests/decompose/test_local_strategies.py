"""A cluster's strategies are those of the implementation algebra, and end in the distribution they state."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from program_cases import Case
from random_programs import cases
from random_runs import random_runs

import sparseeinsum as se
from sparseeinsum.algebra.implementation.compile import local_operator
from sparseeinsum.algebra.implementation.site_operators import LocalAggregation, PlacedInput, Shuffle, SitePlan
from sparseeinsum.algebra.operators import Computed, Contract, Densify, Relation, Slice, Stack
from sparseeinsum.algebra.placement import distribution_of_keys
from sparseeinsum.algebra.plan_expressions import PlanExpressions
from sparseeinsum.algebra.relational.relational_expressions import Complete, Expression, Input
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.decompose.clusters.local_strategies import (
    LocalStrategy,
    completion_strategies,
    contraction_strategies,
    slice_strategies,
    stack_strategies,
)
from sparseeinsum.decompose.places.distribution import Central, Distribution, Hashed, Replicated, Scattered
from sparseeinsum.language.tensors import Decomposition

pytestmark = pytest.mark.engines("duckdb", reason="nothing runs in the database")


def placed(place: Distribution, schema: Schema) -> Distribution:
    """A distribution by the positions of keys; a single site has every tuple."""
    return Replicated() if place == Central() else distribution_of_keys(place, schema.decomposition)


def operand(schema: Schema, number: int) -> Computed:
    """A relation of a schema with a unique name, so that each operand gets its own distribution."""
    return Computed(replace(schema, tensor=replace(schema.tensor, name=f"operand{number}")))


def on_machines(expression: Expression, places: dict[str, Distribution]) -> tuple[SitePlan, bool]:
    """An expression over inputs that lie in places; whether parts of groups had to be put together in one place.

    Raises:
        AlgebraError: It cannot be computed there.
    """
    site_plans: dict[int, SitePlan] = {}
    gathers = False
    for node in topological_order(expression):
        if isinstance(node, Input):
            site_plans[id(node)] = PlacedInput(node, places[node.name])
            continue
        inputs = tuple(site_plans[id(node_input)] for node_input in node.inputs)
        pending = inputs[0].pending
        if isinstance(node, Complete) and pending is not None:  # the result has no keys
            gathers = True
            inputs = (LocalAggregation(Shuffle(inputs[0], ()), tuple(range(inputs[0].type.arity)), pending),)
        site_plans[id(node)] = local_operator(node, inputs)
    plan = site_plans[id(expression)]
    return plan, gathers or plan.pending is not None


def check(relation: Relation, operands: Sequence[Schema], strategy: LocalStrategy) -> None:
    """Assert that a strategy is a plan of the implementation algebra with the distribution that the strategy states."""
    expression = PlanExpressions({}, set()).expression_of(relation)
    places = {
        f"operand{number}": placed(place, schema)
        for number, (place, schema) in enumerate(zip(strategy.operands, operands, strict=True))
    }
    plan, gathers = on_machines(expression, places)
    assert gathers == (strategy.gathers or strategy.parts_by is not None)
    if strategy.parts_by is not None:
        pending = plan.pending
        assert pending is not None
        result = placed(strategy.result, relation.schema)
        assert isinstance(result, Hashed)
        shuffled = Shuffle(plan, result.axes)
        plan = LocalAggregation(shuffled, tuple(range(plan.type.arity)), pending)
    if isinstance(strategy.result, Hashed):
        assert plan.distribution == placed(strategy.result, relation.schema)
    elif isinstance(strategy.result, Scattered):
        assert isinstance(plan.distribution, Scattered | Hashed)
    else:
        assert strategy.result == Central()
        assert strategy.gathers or plan.distribution == Replicated()


def operators(plan: se.Plan) -> Iterator[tuple[Relation, list[Schema], Iterator[LocalStrategy]]]:
    """The operators of a plan over relations of their own, with their strategies."""
    for definition in plan.data.definitions:
        contract = definition.relation
        schemas = [input_relation.schema for input_relation in contract.inputs]
        inputs = tuple(operand(schema, number) for number, schema in enumerate(schemas))
        strategies = contraction_strategies(contract.einsum, definition.step.choice, contract.join)
        yield replace(contract, inputs=inputs, compensation=None), schemas, strategies
        for given_relation in contract.inputs:
            yield from repartitions(given_relation)


def repartitions(relation: Relation) -> Iterator[tuple[Relation, list[Schema], Iterator[LocalStrategy]]]:
    """Slices and stacks for an operand; stacks of one axis alone, of which others consist."""
    if not isinstance(relation, Slice | Stack | Densify):
        return
    yield from repartitions(relation.input)
    schema = relation.input.schema
    repartition: Relation = replace(relation, input=operand(schema, 0))
    before, after = schema.decomposition, relation.schema.decomposition
    match relation:
        case Slice():
            yield repartition, [schema], slice_strategies(before, after)
        case Stack() if len(after.differing_axes(before)) == 1:
            yield repartition, [schema], stack_strategies(before, after)
        case Densify():
            yield repartition, [schema], completion_strategies(after)


def test_strategies_of_random_plans(shared_db: se.Database) -> None:
    counts = {Contract: 0, Slice: 0, Stack: 0, Densify: 0}

    @random_runs(30)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        case: Case = data.draw(cases("float64", data.draw(st.sampled_from(["dp", "greedy", "relational", "dense"]))))
        case.load(shared_db)
        try:
            plan = case.plan(shared_db)
        except se.SemanticsError:
            return
        for relation, operands, strategies in operators(plan):
            for strategy in strategies:
                check(relation, operands, strategy)
                counts[type(relation)] += 1

    run()
    assert min(counts.values()) > 0


@pytest.mark.parametrize("keys", list(itertools.product((0, 1), repeat=2)))
def test_one_array_is_stacked_on_one_site(keys: tuple[int, int]) -> None:
    before, after = Decomposition(keys), Decomposition((0, 0))
    results = {strategy.result for strategy in stack_strategies(before, after)}
    assert results == {Central()}

"""Relational expressions on a Citus cluster give the reference evaluation's result under every plan."""

from collections.abc import Mapping
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_relations import Problem, problems, scale_of
from random_runs import examples, random_runs
from reading import contents, engine_of, relation_in

import sparseeinsum as se
from sparseeinsum.algebra.implementation.compile import table1_plan
from sparseeinsum.algebra.implementation.product_rules import AggregatedJoin
from sparseeinsum.algebra.implementation.rewriting import rewritten_plans
from sparseeinsum.algebra.implementation.site_operators import (
    Broadcast,
    LocalAggregation,
    LocalJoin,
    PlacedInput,
    Shuffle,
    SitePlan,
)
from sparseeinsum.algebra.placement import distribution_of_keys
from sparseeinsum.algebra.relational.evaluate import evaluate
from sparseeinsum.algebra.relational.folds import AggregateFold
from sparseeinsum.algebra.relational.kernels import MATRIX_PRODUCT
from sparseeinsum.algebra.relational.relational_expressions import Input
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.algebra.relational.types import RelationType
from sparseeinsum.api.relational_queries import SQL_RULES, compute_plans, plan_query
from sparseeinsum.decompose.places.distribution import Distribution, Hashed
from sparseeinsum.storage.tensor_placement import distribution_of

SUM = AggregateFold("sum")
NOT_IN_SQL = ("several sizes", "concatenated in SQL")


def load(db: se.Database, problem: Problem, data: st.DataObject) -> dict[str, Distribution]:
    """Store the inputs of a problem with random distributions on the cluster."""
    distributions: dict[str, Distribution] = {}
    for node in (candidate for candidate in topological_order(problem.expression) if isinstance(candidate, Input)):
        keys, bound = node.type.frontier, node.type.bound
        array = np.zeros((*keys, *bound))
        for key, block in problem.inputs[node.name].items():
            array[key] = block
        axes = [f"dim_{at}" for at in range(len(keys))]
        place = data.draw(st.sampled_from(["replicated", *axes]))
        stored = db.tensor(node.name, array, promoted=dict.fromkeys(axes, 1), fill=99, distribute=place)
        distributions[node.name] = distribution_of_keys(distribution_of(stored, engine_of(db)), stored.decomposition)
    return distributions


def test_whole_arrays_and_positions(citus: se.Database) -> None:
    matrix = np.random.default_rng(0).normal(size=(12, 12))
    blocks = matrix.reshape(3, 4, 3, 4).transpose(0, 2, 1, 3)
    citus.tensor("A", matrix, promoted={"dim_0": 4, "dim_1": 4}, distribute="dim_0")
    relation = citus.relation("A")
    inverses = citus.compute(relation.filter(lambda i, j: i == j).rekey(lambda i, j: i).transform("inverse"))
    np.testing.assert_allclose(inverses.to_numpy(), np.linalg.inv(blocks[range(3), range(3)]))
    largest = citus.compute(relation.transform("largest(2)")).to_numpy()
    np.testing.assert_array_equal(largest, np.flip(np.sort(blocks, axis=3), axis=3)[..., :2])
    for axis in (0, 1):  # groups that lie on one machine, and on several
        positions = citus.compute(relation.aggregate(by=[1 - axis], fold="argmin")).to_numpy()
        np.testing.assert_array_equal(positions, blocks.argmin(axis=axis))


def test_random_expressions_and_plans(citus: se.Database) -> None:
    """The plan that the search returns and other plans that the rules reach give the result of the expression."""
    computed = 0

    @random_runs(12, "citus")
    @given(problems(5), st.data())
    def run(problem: Problem, data: st.DataObject) -> None:
        nonlocal computed
        expected = evaluate(problem.expression, problem.inputs)
        if not expected:
            return
        distributions = load(citus, problem, data)
        arity, tolerance = problem.expression.type.arity, scale_of(expected) * 1e-9

        def check(result: se.TensorResult) -> None:
            nonlocal computed
            actual = relation_in(result, arity)
            assert actual.keys() == expected.keys()
            for key, array in expected.items():
                np.testing.assert_allclose(actual[key], array, rtol=0, atol=tolerance)
            computed += 1

        try:
            check(citus.compute(se.TensorRelation(problem.expression)))
            plan = table1_plan(problem.expression, distributions)
            for _ in range(data.draw(st.integers(0, 2))):
                check(*compute_plans([plan], engine_of(citus)))
                others = [rewritten for rewritten in rewritten_plans(plan, SQL_RULES) if rewritten.pending is None]
                plan = data.draw(st.sampled_from(others)) if others else plan
        except se.AlgebraError as error:
            assert any(text in str(error) for text in NOT_IN_SQL), str(error)

    run()
    assert computed > examples(12) // 2


def blocks_of(matrix: np.ndarray, rows: int, columns: int) -> dict[str, int]:
    """Tiles that cut a matrix into this number of blocks."""
    return {"dim_0": matrix.shape[0] // rows, "dim_1": matrix.shape[1] // columns}


@pytest.fixture
def product(citus: se.Database) -> tuple[AggregatedJoin, np.ndarray]:
    """Two matrices in blocks, X by rows and Y by columns, with their product."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(12, 16)), rng.normal(size=(16, 9))
    citus.tensor("X", x, promoted=blocks_of(x, 4, 8), distribute="dim_0")
    citus.tensor("Y", y, promoted=blocks_of(y, 8, 3), distribute="dim_1")
    left = PlacedInput(Input("X", RelationType((4, 8), (3, 2))), Hashed(0))
    right = PlacedInput(Input("Y", RelationType((8, 3), (2, 3))), Hashed(1))
    pairs = LocalJoin(Broadcast(left), right, (1,), (0,), MATRIX_PRODUCT)
    return AggregatedJoin(pairs, left, right, (0, 2), SUM), x @ y


def ways_of(product: AggregatedJoin) -> Mapping[str, SitePlan]:
    """The paper's three plans, and plans that aggregate on each site before they send partial results."""
    left, right = product.left, product.right
    by_inner = LocalJoin(Shuffle(left, (1,)), Shuffle(right, (0,)), (1,), (0,), MATRIX_PRODUCT)
    parts = LocalAggregation(by_inner, (0, 2), SUM)
    return {
        "BMM": product.broadcast(),
        "BMM where pairs are": LocalAggregation(product.join, (0, 2), SUM),
        "CMM": product.cross(),
        "CMM in two phases": LocalAggregation(Shuffle(parts, (0, 1)), (0, 1), SUM),
        "CMM in two phases, everywhere": LocalAggregation(Broadcast(parts), (0, 1), SUM),
        "RMM": product.replicated(),
    }


@pytest.mark.parametrize(
    "name", ["BMM", "BMM where pairs are", "CMM", "CMM in two phases", "CMM in two phases, everywhere", "RMM"]
)
def test_products(citus: se.Database, product: tuple[AggregatedJoin, np.ndarray], name: str) -> None:
    plans, expected = product
    (result,) = compute_plans([ways_of(plans)[name]], engine_of(citus))
    np.testing.assert_allclose(result.to_numpy().transpose(0, 2, 1, 3).reshape(12, 9), expected, rtol=1e-12)


def test_plans_share_common_subplans(citus: se.Database, product: tuple[AggregatedJoin, np.ndarray]) -> None:
    plans, expected = product
    first = plans.cross()
    second = LocalAggregation(first, (0,), SUM)
    result, summed = compute_plans([first, second], engine_of(citus))
    np.testing.assert_allclose(result.to_numpy().transpose(0, 2, 1, 3).reshape(12, 9), expected, rtol=1e-12)
    np.testing.assert_allclose(summed.to_numpy().sum(), expected.sum(), rtol=1e-9)


def test_a_broadcast_is_sent_once(citus: se.Database, product: tuple[AggregatedJoin, np.ndarray]) -> None:
    """A broadcast is part of the statement that reads it; if several statements read it, every node stores it."""
    plans, expected = product
    broadcast = Broadcast(plans.left)
    pairs = LocalJoin(broadcast, plans.right, (1,), (0,), MATRIX_PRODUCT)
    first, second = LocalAggregation(pairs, (0, 2), SUM), LocalAggregation(broadcast, (0,), SUM)
    engine = engine_of(citus)
    assert not plan_query([first], engine).has_reference_tables
    assert plan_query([second], engine).has_reference_tables
    assert plan_query([first, second], engine).has_reference_tables
    for transaction in (nullcontext(), citus.connection.transaction()):
        with transaction:
            result, summed = compute_plans([first, second], engine)
            (alone,) = compute_plans([first], engine)
        for tensor in (result, alone):
            np.testing.assert_allclose(tensor.to_numpy().transpose(0, 2, 1, 3).reshape(12, 9), expected, rtol=1e-12)
        assert summed.to_numpy().shape == (4, 3, 2)


def test_the_sql_of_a_relation_fills_tables_first(citus: se.Database) -> None:
    matrix = np.arange(36.0).reshape(6, 6)
    citus.tensor("M", matrix, promoted={"dim_0": 2, "dim_1": 2}, distribute="dim_0")
    relation = citus.relation("M")
    square = relation.join(relation, on=[(1, 0)], kernel="w[i, k] = sum(u[i, j] * v[j, k])").aggregate(by=[0, 2])
    *commands, query = citus.relation_sql(square).split(";\n\n")
    assert len(commands) > 0
    before = contents(citus)
    computed = citus.compute(square).to_numpy()
    np.testing.assert_allclose(computed.transpose(0, 2, 1, 3).reshape(6, 6), matrix @ matrix)
    assert contents(citus) == before
    with citus.connection.transaction(force_rollback=True):
        for command in commands:
            citus.connection.execute(command)
        rows = citus.connection.execute(query).fetchall()
    np.testing.assert_allclose([value for _, _, value in sorted(rows)], computed.reshape(9, 4))


def test_duplicate_keys_are_refused(citus: se.Database) -> None:
    sparse = np.zeros((4, 4))
    sparse[[0, 1, 3], [1, 1, 0]] = [1.0, 2.0, 3.0]
    citus.tensor("S", sparse, promoted=["dim_0", "dim_1"], distribute="dim_0")
    before = contents(citus)
    with pytest.raises(se.AlgebraError, match="a rekey makes the key <1> of several"):
        citus.compute(citus.relation("S").rekey(lambda i, j: j).aggregate(by=[0]))
    assert contents(citus) == before

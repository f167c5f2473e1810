"""Every plan that the rewrite rules reach computes its expression and leaves the result on the sites it names."""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_relations import Problem, problems, scale_of
from random_runs import examples

from sparseeinsum.algebra.implementation.compile import table1_plan
from sparseeinsum.algebra.implementation.operator_costs import Sites, cost_of
from sparseeinsum.algebra.implementation.rewriting import RULES, rewritten_plans
from sparseeinsum.algebra.implementation.simulate import replay, simulate
from sparseeinsum.algebra.implementation.site_operators import (
    Broadcast,
    LocalAggregation,
    LocalFilter,
    LocalJoin,
    LocalMap,
    PlacedInput,
    Shuffle,
    SitePlan,
    transformed,
)
from sparseeinsum.algebra.relational.absence import AbsentArray, TileExtent
from sparseeinsum.algebra.relational.compositions import Duplicate
from sparseeinsum.algebra.relational.evaluate import RelationTuples, evaluate
from sparseeinsum.algebra.relational.folds import AggregateFold, MappedFold
from sparseeinsum.algebra.relational.kernels import ADD, MATRIX_PRODUCT, einsum_kernel, elementwise
from sparseeinsum.algebra.relational.key_functions import trace_key_map, trace_predicate
from sparseeinsum.algebra.relational.keys import projection, with_copy_number
from sparseeinsum.algebra.relational.relational_expressions import Input
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.algebra.relational.types import RelationType
from sparseeinsum.decompose.places.distribution import Hashed, Replicated, Scattered
from sparseeinsum.errors import AlgebraError
from sparseeinsum.semantics.exactness import JoinKind

SUM = AggregateFold("sum")


def expect_equal(actual: RelationTuples, expected: RelationTuples) -> None:
    assert actual.keys() == expected.keys()
    for key, array in expected.items():
        np.testing.assert_allclose(actual[key], array, rtol=0, atol=scale_of(expected) * 1e-9, err_msg=str(key))


def expect_placed(plan: SitePlan, inputs: dict[str, RelationTuples], sites: int) -> None:
    """Assert that every operator's result has its type and is on the sites that its distribution names."""
    for site_plan in topological_order(plan):
        run = simulate(site_plan, inputs, sites)
        if site_plan.pending is None:
            run.relation()  # no key has two arrays
            assert run.is_everywhere() or not isinstance(site_plan.distribution, Replicated)
            assert run.is_partitioned(_dims(site_plan)) or isinstance(site_plan.distribution, Replicated)
        keys = {key for site in run.sites for key, _ in site}
        assert len(keys) == site_plan.type.key_count or not site_plan.type.is_continuous
        assert all(part < most for key in keys for part, most in zip(key, site_plan.type.frontier, strict=True))


def _dims(plan: SitePlan) -> Iterable[int]:
    """Dimensions by which a relation is partitioned: all key columns if its tuples are scattered."""
    return plan.distribution.axes if isinstance(plan.distribution, Hashed) else range(plan.type.arity)


@settings(max_examples=examples(80), deadline=None)
@given(problems(), st.sampled_from([1, 2, 3, 5]))
def test_table_1(problem: Problem, sites: int) -> None:
    plan = table1_plan(problem.expression, problem.distributions)
    expect_equal(simulate(plan, problem.inputs, sites).relation(), evaluate(problem.expression, problem.inputs))
    expect_placed(plan, problem.inputs, sites)


@settings(max_examples=examples(150), deadline=None)
@given(problems(), st.sampled_from([2, 3, 4]), st.data())
def test_rules_keep_relations(problem: Problem, sites: int, data: st.DataObject) -> None:
    """Any rule, applied anywhere in any plan, keeps the relation."""
    plan = table1_plan(problem.expression, problem.distributions)
    expected = evaluate(problem.expression, problem.inputs)
    for _ in range(4):
        steps = (list(rewritten_plans(plan, [rule])) for rule in RULES.values())
        others = [data.draw(st.sampled_from(plans)) for plans in steps if plans]
        if not others:
            break
        for other in others:
            expect_equal(simulate(other, problem.inputs, sites).relation(), expected)
        plan = data.draw(st.sampled_from(others))
    expect_placed(plan, problem.inputs, sites)


SITES = 3
STORED: dict[str, RelationTuples] = {
    "X": {(i, j): np.arange(4.0).reshape(2, 2) + i - j for i in range(4) for j in range(4)},
    "Y": {(i, j): np.ones((2, 2)) * (i - 2 * j) for i in range(4) for j in range(4)},
}
SQUARE = RelationType((4, 4), (2, 2))
X, Y = (PlacedInput(Input(name, SQUARE), Scattered()) for name in "XY")
IS_DIAGONAL = trace_predicate(lambda i, j: i == j, 2)
FIRST = trace_predicate(lambda i, j: i < 2, 2)
DIAGONAL = einsum_kernel("ii->i")
RELU = elementwise("relu", 1)


def join(left: SitePlan, right: SitePlan, keys: tuple[tuple[int, ...], tuple[int, ...]] = ((1,), (0,))) -> LocalJoin:
    return LocalJoin(left, right, *keys, MATRIX_PRODUCT)


def shuffled_join() -> LocalJoin:
    return join(Shuffle(X, (0, 1)), Shuffle(Y, (0, 1)), ((0, 1), (0, 1)))


def summed(plan: SitePlan, *group_by: int) -> LocalAggregation:
    return LocalAggregation(plan, group_by, SUM)


BY_ROW = PlacedInput(Input("X", SQUARE), Hashed(0))

# Plans to which each rule applies, and similar plans for which only its condition fails.
APPLIED: list[tuple[str, SitePlan, int]] = [
    ("R1-1", LocalFilter(LocalFilter(X, FIRST), IS_DIAGONAL), 1),
    ("R1-2", LocalMap(transformed(X, RELU), projection(2, (1, 0)), DIAGONAL), 1),
    ("R1-3", transformed(LocalFilter(X, FIRST), RELU), 1),
    ("R1-3", LocalFilter(transformed(X, RELU), FIRST), 1),
    ("R1-4", transformed(summed(BY_ROW, 0), DIAGONAL), 2),
    ("R1-4", transformed(summed(BY_ROW, 0), RELU), 1),  # not of every array: relu is not additive
    ("R1-5", LocalFilter(summed(BY_ROW, 0), trace_predicate(lambda i: i < 2, 1)), 1),
    ("R1-5", summed(LocalFilter(BY_ROW, FIRST), 0), 1),
    ("R1-6", LocalFilter(shuffled_join(), FIRST), 1),
    ("R1-7", transformed(join(Broadcast(X), Y), RELU), 1),
    ("R1-7", transformed(LocalJoin(Broadcast(X), Y, (0, 1), (0, 1), ADD), DIAGONAL), 2),
    ("R2-1", Broadcast(Broadcast(X)), 2),
    ("R2-1", Shuffle(Shuffle(X, (0,)), (1,)), 1),
    ("R2-1", Shuffle(BY_ROW, (0,)), 1),
    ("R2-2", Broadcast(LocalFilter(X, FIRST)), 1),
    ("R2-2", LocalFilter(Shuffle(X, (0,)), FIRST), 1),
    ("R2-3", Broadcast(transformed(X, RELU)), 1),
    ("R2-3", Shuffle(transformed(X, RELU), (0,)), 1),
    ("R2-4", summed(Shuffle(BY_ROW, (0, 1)), 0, 1), 1),
    ("R2-5", summed(Shuffle(X, (1,)), 1), 1),
    ("R2-6", join(Broadcast(X), Y), 3),
    ("R2-7", Shuffle(join(Shuffle(X, (1,)), Shuffle(Y, (0,))), (0, 1)), 1),
    ("BMM, CMM, RMM", summed(Shuffle(join(Broadcast(X), Y), (0, 2)), 0, 2), 3),
]
REFUSED: list[tuple[str, SitePlan]] = [
    ("R1-3", LocalMap(LocalFilter(X, FIRST), projection(2, (1, 0)), RELU)),
    ("R1-4", LocalMap(summed(BY_ROW, 0), trace_key_map(lambda i: i + 1, 1), DIAGONAL)),
    ("R1-5", summed(LocalFilter(Shuffle(X, (0,)), IS_DIAGONAL), 0)),
    ("R1-6", LocalFilter(join(Broadcast(X), Y), trace_predicate(lambda i, k, j: i == j, 3))),
    ("R2-1", Shuffle(BY_ROW, (1,))),
    ("R2-3", Shuffle(LocalMap(X, projection(2, (1, 0)), RELU), (0,))),
    ("R2-4", summed(Shuffle(BY_ROW, (1,)), 1)),
    ("R2-5", LocalAggregation(Shuffle(X, (1,)), (1,), MappedFold(SUM, after=RELU))),
    ("R2-6", join(PlacedInput(Input("X", SQUARE), Hashed(1)), PlacedInput(Input("Y", SQUARE), Hashed(0)))),
    ("R2-7", Shuffle(shuffled_join(), (0,))),
]


def test_every_rule_is_tested() -> None:
    assert {name for name, _, _ in APPLIED} == RULES.keys()


@pytest.mark.parametrize(("name", "plan", "count"), APPLIED)
def test_rule_applies(name: str, plan: SitePlan, count: int) -> None:
    rewritten = list(RULES[name](plan))
    assert len(rewritten) == count
    expected = simulate(plan, STORED, SITES).relation()
    for other in rewritten:
        expect_equal(simulate(other, STORED, SITES).relation(), expected)
        expect_placed(other, STORED, SITES)


ON_DIAGONAL = LocalFilter(BY_ROW, IS_DIAGONAL)
BY_COLUMN = PlacedInput(Input("Y", SQUARE), Hashed(1))

# Plans whose operators find tuples together only because keys are equal, and the floats that each sends.
OF_EQUAL_KEYS: list[tuple[SitePlan, int]] = [
    (LocalJoin(ON_DIAGONAL, LocalFilter(BY_COLUMN, IS_DIAGONAL), (0, 1), (0, 1), ADD), 0),
    (LocalJoin(ON_DIAGONAL, BY_COLUMN, (0, 1), (0, 1), ADD), 0),  # the left side alone makes pairs equal
    (LocalJoin(BY_ROW, LocalFilter(BY_COLUMN, IS_DIAGONAL), (0, 1), (0, 1), ADD), 0),
    (summed(ON_DIAGONAL, 1), 0),
    (summed(LocalMap(ON_DIAGONAL, trace_key_map(lambda i, j: j, 2), DIAGONAL), 0), 0),
    (Shuffle(ON_DIAGONAL, (1,)), 0),
    (Shuffle(LocalFilter(BY_ROW, trace_predicate(lambda i, j: (i == j) & (i < 3), 2)), (1,)), 0),
    (Shuffle(LocalFilter(BY_ROW, trace_predicate(lambda i, j: (i == j) | (i < 3), 2)), (1,)), 32),
]


@pytest.mark.parametrize(("plan", "floats"), OF_EQUAL_KEYS)
def test_equal_keys_partition_alike(plan: SitePlan, floats: int) -> None:
    """After k0 = k1, partitions by the one and by the other are the same."""
    assert plan.pending is None
    assert sum(traffic.floats for traffic in simulate(plan, STORED, SITES).traffic) == floats
    assert (cost_of([plan], Sites(SITES)).transfer == 0) == (floats == 0)
    expect_placed(plan, STORED, SITES)


@pytest.mark.parametrize("kind", [JoinKind.LEFT, JoinKind.FULL])
def test_tuples_without_a_partner_keep_unequal_keys(kind: JoinKind) -> None:
    """An outer join keeps tuples of the left side whose keys are not equal, though the right side's are."""
    absent = (AbsentArray(0, (TileExtent(2, 2, None),) * 2),) * 2
    right = LocalFilter(Shuffle(Y, (0,)), IS_DIAGONAL)
    joined = LocalJoin(BY_ROW, right, (0, 1), (0, 1), ADD, kind, absent)
    assert joined.type.first_equal == (0, 1)
    assert Shuffle(joined, (1,)).distribution == Hashed(1)
    expect_placed(joined, STORED, SITES)


@pytest.mark.parametrize(("name", "plan"), REFUSED)
def test_rule_is_refused(name: str, plan: SitePlan) -> None:
    assert list(RULES[name](plan)) == []


def test_maps_of_one_tuple_to_several_are_not_merged() -> None:
    problem_maps = transformed(LocalMap(X, with_copy_number(2, 2), Duplicate(2)), RELU)
    assert list(RULES["R1-2"](problem_maps)) == []


def test_printed_condition_of_two_phases_fails() -> None:
    """R2-5 is printed for group_by within dims: groups then stay on several sites, so its result is wrong."""
    phased = summed(Shuffle(summed(X, 1), (0,)), 0)
    assert phased.pending is None
    by_both = summed(Shuffle(X, (0, 1)), 1)
    assert by_both.pending == SUM
    with pytest.raises(AlgebraError, match="has two arrays"):
        simulate(by_both, STORED, SITES).relation()


def test_printed_condition_of_shuffled_joins_fails() -> None:
    """R2-7 is printed for dims within the joined keys: equal rows of what is partitioned by both are not together."""
    run = simulate(shuffled_join(), STORED, SITES)
    assert run.is_partitioned((0, 1))
    assert not run.is_partitioned((0,))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: join(X, Y), "do not meet in a join"),
        (lambda: join(Shuffle(X, (0,)), Shuffle(Y, (0,))), "do not meet in a join"),
        (lambda: join(summed(X, 1, 0), Broadcast(Y)), "joined before those of the same key are folded"),
        (lambda: transformed(summed(X, 0), RELU), "cannot be applied before tuples of the same key are folded"),
        (
            lambda: LocalAggregation(summed(X, 0), (0,), AggregateFold("max")),
            "wait to be folded by sum are folded by max",
        ),
        (lambda: summed(summed(X, 0), 0), "are shuffled by the keys of their groups before"),
        (lambda: LocalAggregation(X, (0,), MappedFold(SUM, after=RELU)), "cannot be computed of parts"),
        (lambda: Shuffle(X, (2,)), "cannot be partitioned by"),
        (lambda: LocalMap(X, with_copy_number(2, 2), RELU), "makes 2 keys, and relu\\(u\\) 1 arrays"),
    ],
)
def test_plans_of_another_result_are_refused(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(AlgebraError, match=message):
        make()


def test_transferred_floats_are_counted() -> None:
    """For 16 blocks of 4: a broadcast sends each to all other sites, a shuffle those of other sites."""
    assert simulate(Broadcast(X), STORED, 4).floats == 16 * 4 * 3
    assert simulate(Shuffle(BY_ROW, (0,)), STORED, 4).floats == 0
    assert simulate(Shuffle(Broadcast(X), (0,)), STORED, 4).floats == 16 * 4 * 3
    moved = Shuffle(BY_ROW, (1,))
    assert simulate(moved, STORED, 4).floats == 12 * 4
    assert [traffic.received.tolist() for traffic in simulate(moved, STORED, 4).traffic] == [[12, 12, 12, 12]]


@settings(max_examples=examples(60), deadline=None)
@given(problems(), st.sampled_from([2, 3, 4]))
def test_replay_without_arrays(problem: Problem, sites: int) -> None:
    plan = table1_plan(problem.expression, problem.distributions)
    for candidate in [plan, *rewritten_plans(plan, RULES.values())]:
        replayed, simulated = replay(candidate, sites), simulate(candidate, problem.inputs, sites).traffic
        for moved, expected in zip(replayed, simulated, strict=True):
            np.testing.assert_array_equal([moved.sent, moved.received], [expected.sent, expected.received])

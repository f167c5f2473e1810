"""Expressions of EinSums compute the same as the programs made of them; other operators are refused by name."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_relations import Problem, problems, scale_of
from random_runs import random_runs

import sparseeinsum as se
from sparseeinsum.algebra.expression_programs import program_of
from sparseeinsum.algebra.relational.evaluate import RelationTuples, evaluate
from sparseeinsum.algebra.relational.relational_expressions import Expression, Input
from sparseeinsum.algebra.relational.types import RelationType
from sparseeinsum.language.binding import bind
from sparseeinsum.operators.dtypes import Array
from sparseeinsum.semantics.dense import evaluate_program

X = se.TensorRelation(Input("X", RelationType((4, 4), (3, 3))))
S = se.TensorRelation(Input("S", RelationType((4, 4), (3, 3), is_continuous=False), 5.0, (4.0, 3.0)))


def dense(relation: RelationTuples, of: RelationType) -> Array:
    """The axes of keys, then those of arrays; 0 where no tuple is."""
    array: Array = np.zeros((*of.frontier, *of.bound))
    for key, value in relation.items():
        array[key] = value
    return array


def computed(expression: Expression, inputs: dict[str, RelationTuples]) -> Array:
    """The result of the program of an expression; parts of keys that are equal are one axis of it."""
    written = program_of({"result": expression})
    arrays = {name: dense(inputs[name], relation.type) for name, relation in written.inputs.items()}
    (output,) = written.program.outputs
    return evaluate_program(bind(written.program, written.tensors), arrays)[output]


@random_runs(400)
@given(problems(4))
def test_programs_compute_what_expressions_do(problem: Problem) -> None:
    relation = evaluate(problem.expression, problem.inputs)
    try:
        array = computed(problem.expression, problem.inputs)
    except se.AlgebraError as error:
        assert "cannot be part of a program of EinSums" in str(error)
        return
    expected = dense(relation, problem.expression.type)
    if array.ndim < expected.ndim:  # equal parts of keys are one axis
        assert problem.expression.type.first_equal != tuple(range(problem.expression.type.arity))
        first = dict.fromkeys(problem.expression.type.first_equal)
        index = np.ix_(*map(range, array.shape))
        labels = [*problem.expression.type.first_equal, *range(-problem.expression.type.rank, 0)]
        order = [*first, *range(-problem.expression.type.rank, 0)]
        expected = expected[tuple(index[order.index(label)] for label in labels)]
    np.testing.assert_allclose(array, expected, atol=1e-9 * scale_of(relation))


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: X.join(X, on=[(1, 0)], kernel="w[i, k] = sum(u[i, j] * v[j, k])").aggregate([0, 2]), 1),
        (lambda: X.join(X, on=[(1, 0)], kernel="w[i, k] = max(u[i, j] + v[j, k])").aggregate([0, 2]), 2),
        (lambda: X.transform("w[j, i] = 2 * u[i, j]").rekey(lambda i, j: (j, i)), 1),
        (lambda: X.filter(lambda i, j: i == j).rekey(lambda i, j: (j, i)).transform("w[i] = u[i, i]"), 1),
        (lambda: S.join(X, on=[(1, 0)], kernel="mul").aggregate([0]).transform("relu"), 2),
    ],
)
def test_joins_and_aggregations_are_one_einsum(make: Callable[[], se.TensorRelation], text: int) -> None:
    assert len(program_of({"result": make().expression}).program.einsums) == text


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: X.transform("inverse"), "transform inverse cannot be part .*: the kernel inverse is no EinSum"),
    (lambda: X.tile(0, 1), "tile axis 0 by 1 cannot be part .*: it changes keys or arrays in another way"),
    (lambda: X.filter(lambda i, j: i < j), "filter .* only a filter that takes parts of keys to be equal"),
    (lambda: X.rekey(lambda i, j: (i, j + 1)), "rekey .* only a function of keys that changes the order"),
    (lambda: X.aggregate([0], fold="argmin"), "aggregation by <0>, argmin cannot be part"),
    (lambda: S.transform("exp"), r"transform exp\(u\) .* is not 0 where a tuple is absent"),
    (lambda: S.aggregate([0], fold="max"), "max of absent tuples"),
    (lambda: S.join(X, on=[(0, 0), (1, 1)], kernel="add"), "is not 0 where a tuple is absent"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_other_operators_are_refused_by_name(make: Callable[[], se.TensorRelation], message: str) -> None:
    with pytest.raises(se.AlgebraError, match=message):
        make().distributed(4, objective="floats")


def test_objectives_and_places_are_checked() -> None:
    doubled = X.transform("w[i, j] = 2 * u[i, j]")
    with pytest.raises(se.AlgebraError, match="objective is 'bytes'; choose"):
        doubled.distributed(4, objective="bytes")  # type: ignore[call-overload]
    with pytest.raises(se.AlgebraError, match="memory_floats limits"):
        doubled.distributed(4, memory_floats=10.0, objective="floats")  # type: ignore[call-overload]
    with pytest.raises(se.AlgebraError, match="partitioned by <0, 1>; give one position"):
        doubled.distributed(4, {"X": (0, 1)}, objective="floats")
    with pytest.raises(se.PlanError, match="sites is 0"):
        doubled.distributed(0, objective="floats")


def test_stored_relations_are_read_where_they_are() -> None:
    product = X.join(X, on=[(1, 0)], kernel="w[i, k] = sum(u[i, j] * v[j, k])").aggregate([0, 2])
    free = product.distributed(4, objective="floats").moved
    by_rows = product.distributed(4, {"X": (0,)}, objective="floats").moved
    assert product.distributed(4, {"X": "everywhere"}, objective="floats").moved == 0 < free <= by_rows


def test_many_random_expressions_are_programs() -> None:
    """Guards the property above against programs that are refused throughout."""
    accepted: list[bool] = []

    @random_runs(100)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        try:
            program_of({"result": data.draw(problems(3)).expression})
            accepted.append(True)
        except se.AlgebraError:
            accepted.append(False)

    run()
    assert sum(accepted) >= len(accepted) / 5

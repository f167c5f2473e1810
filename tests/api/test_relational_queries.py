"""Relational expressions that users write give the reference evaluation's result in a database."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_relations import Problem, problems, scale_of
from reading import relation_in

import sparseeinsum as se
from sparseeinsum.algebra.relational.evaluate import RelationTuples, evaluate
from sparseeinsum.algebra.relational.relational_expressions import Input
from sparseeinsum.algebra.relational.tensor_types import type_of
from sparseeinsum.algebra.relational.traversal import topological_order

BOTH = pytest.mark.engines("duckdb", "postgresql")


@BOTH
def test_nearest_neighbour(db: se.Database) -> None:
    rng = np.random.default_rng(0)
    query, points = rng.normal(size=4), rng.normal(size=(6, 4))
    metric = np.eye(4) + 0.1
    db.tensor("q", query, promoted={"dim_0": 2})
    db.tensor("X", points, promoted={"dim_0": 3, "dim_1": 2})
    db.tensor("A", metric, promoted={"dim_0": 2, "dim_1": 2})
    db.tensor("number", np.arange(6.0), promoted={"dim_0": 3})
    difference = db.relation("X").join(db.relation("q"), on=[(1, 0)], kernel="w[n, j] = u[n, j] - v[j]")
    product = difference.join(db.relation("A"), on=[(1, 0)], kernel="w[n, k] = sum(u[n, j] * v[j, k])")
    squares = product.aggregate(by=[0, 2]).join(difference, on=[(0, 0), (1, 1)], kernel="w[n] = sum(u[n, j] * v[n, j])")
    distances = squares.aggregate(by=[0])
    least = distances.transform("w[] = min(u[n])").aggregate(by=[], fold="min")
    nearest = (
        distances.join(least, on=[], kernel="w[n] = u[n] <= v[]")
        .join(db.relation("number"), on=[(0, 0)], kernel="w[] = min(where(u[n] > 0, v[n], inf))")
        .aggregate(by=[], fold="min")
    )
    expected = np.einsum("ni,ij,nj->n", points - query, metric, points - query)
    blocks: dict[str, RelationTuples] = {
        "q": {(i,): query[2 * i : 2 * i + 2] for i in range(2)},
        "X": {(n, i): points[3 * n : 3 * n + 3, 2 * i : 2 * i + 2] for n in range(2) for i in range(2)},
        "A": {(i, j): metric[2 * i : 2 * i + 2, 2 * j : 2 * j + 2] for i in range(2) for j in range(2)},
        "number": {(n,): np.arange(3.0) + 3 * n for n in range(2)},
    }
    assert nearest.evaluate(blocks)[()] == expected.argmin()
    site_plan = nearest.distributed(2, {"X": (0,), "number": (0,)})
    assert site_plan.moved() <= site_plan.transfer < site_plan.plain_transfer
    np.testing.assert_allclose(db.compute(distances).to_numpy().ravel(), expected)
    assert float(db.compute(nearest).to_numpy()) == expected.argmin()


def test_diagonal_blocks(db: se.Database) -> None:
    matrix = np.arange(36.0).reshape(6, 6)
    db.tensor("M", matrix, promoted={"dim_0": 2, "dim_1": 2})
    diagonal = db.relation("M").filter(lambda i, j: i == j).rekey(lambda i, j: i).transform("w[i] = u[i, i]")
    np.testing.assert_array_equal(db.compute(diagonal).to_numpy(), np.diag(matrix).reshape(3, 2))
    np.testing.assert_array_equal(db.compute(diagonal.concat(0, 0)).to_numpy(), np.diag(matrix))
    assert "WHERE" in db.relation_sql(diagonal)


@BOTH
def test_tile_and_concat(db: se.Database) -> None:
    rows = np.arange(24.0).reshape(3, 8)
    db.tensor("B", rows, promoted=["dim_0"])
    tiled = db.relation("B").tile(0, 2)
    np.testing.assert_array_equal(db.compute(tiled).to_numpy(), rows.reshape(3, 4, 2))
    ones = tiled.tile(0, 1)
    np.testing.assert_array_equal(db.compute(ones).to_numpy(), rows.reshape(3, 4, 2, 1))
    np.testing.assert_array_equal(db.compute(ones.concat(2, 0).concat(1, 0)).to_numpy(), rows)
    joined = ones.rekey(lambda i, j, k: (i, j * 2 + k)).concat(1, 0)
    np.testing.assert_array_equal(db.compute(joined).to_numpy(), rows)


@BOTH
def test_several_copies_of_tuples(db: se.Database) -> None:
    matrix = np.arange(16.0).reshape(4, 4)
    db.tensor("M", matrix, promoted={"dim_0": 2, "dim_1": 2})
    doubled = db.relation("M").rekey(lambda i, j, copy: (i, 2 * j + copy), copies=2)
    assert str(doubled.type) == "<2, 4> of [2, 2]"
    blocks = matrix.reshape(2, 2, 2, 2).transpose(0, 2, 1, 3)
    np.testing.assert_array_equal(db.compute(doubled).to_numpy(), blocks.repeat(2, axis=1))
    one = db.relation("M").rekey(lambda i, j, copy: (j + copy, i), copies=1)
    np.testing.assert_array_equal(db.compute(one).to_numpy(), blocks.transpose(1, 0, 2, 3))
    sparse = np.diag([1.0, 0.0, 2.0])
    db.tensor("S", sparse, promoted=["dim_0", "dim_1"])
    shifted = db.relation("S").rekey(lambda i, j, copy: (i + copy, j), copies=3)
    expected = {"k0": [0, 1, 2, 2, 3, 4], "k1": [0, 0, 0, 2, 2, 2], "val": [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]}
    assert db.compute(shifted).rows.sort_by([("k0", "ascending"), ("k1", "ascending")]).to_pydict() == expected
    with pytest.raises(se.AlgebraError, match="makes the key <1> of several"):
        db.compute(db.relation("S").rekey(lambda i, j, copy: j - j + i // 2 + copy, copies=2))


def squashed(number: float) -> float:
    return number / (1 + abs(number))


@pytest.mark.engines("duckdb", reason="PostgreSQL has no Python functions")
def test_functions_of_users(db: se.Database) -> None:
    """In kernels of one array and of two; the database calls what is compiled for it."""
    se.function(squashed)
    rows = np.arange(-4.0, 4.0).reshape(4, 2)
    db.tensor("M", rows, promoted=["dim_0"])
    relation = db.relation("M")
    of_pairs = relation.join(relation, on=[(0, 0)], kernel="w[i] = squashed(u[i]) + squashed(-2 * v[i])")
    expected = rows / (1 + abs(rows))
    np.testing.assert_allclose(db.compute(relation.transform("squashed")).to_numpy(), expected)
    np.testing.assert_allclose(db.compute(of_pairs).to_numpy(), expected - 2 * rows / (1 + abs(2 * rows)))


@pytest.mark.engines("postgresql", reason="it calls no Python")
def test_functions_of_users_need_duckdb(db: se.Database) -> None:
    se.function(squashed)
    db.tensor("M", np.ones((4, 2)), promoted=["dim_0"])
    with pytest.raises(se.PlanError, match="squashed is a Python function, and PostgreSQL has none of those yet"):
        db.compute(db.relation("M").transform("squashed"))


@BOTH
def test_holes(db: se.Database) -> None:
    sparse = np.zeros((4, 4))
    sparse[[0, 1, 3], [1, 1, 0]] = [1.0, 2.0, 3.0]
    db.tensor("S", sparse, promoted=["dim_0", "dim_1"])
    relation = db.relation("S")
    assert not relation.type.is_continuous
    summed = db.compute(relation.aggregate(by=[1]))
    assert summed.rows.sort_by("k0").to_pydict() == {"k0": [0, 1], "val": [3.0, 3.0]}
    by_column = relation.rekey(lambda i, j: j)
    with pytest.raises(se.AlgebraError, match="a rekey makes the key <1> of several"):
        db.compute(by_column)
    by_row = relation.rekey(lambda i, j: i)
    assert db.compute(by_row).rows.sort_by("k0").to_pydict() == {"k0": [0, 1, 3], "val": [1.0, 2.0, 3.0]}


def test_invalid_expressions_are_refused(db: se.Database) -> None:
    db.tensor("W", np.arange(4))
    db.tensor("R", np.ones(5), promoted={"dim_0": 2})
    db.tensor("F", np.ones((2, 2)), promoted=["dim_0"])
    flat = db.relation("F")
    with pytest.raises(se.AlgebraError, match="W is int64; expressions written by hand compute with float64"):
        db.compute(db.relation("W"))
    with pytest.raises(se.AlgebraError, match="arrays of several sizes"):
        db.compute(db.relation("R"))
    with pytest.raises(se.AlgebraError, match="one EinSum of u and v"):
        flat.join(flat, on=[(0, 0)], kernel="w[i] = u[i] * u[i]")
    with pytest.raises(se.AlgebraError, match="cannot be read"):
        flat.transform("w[i] = u[i")
    with pytest.raises(se.AlgebraError, match="may be below 0"):
        db.compute(flat.filter(lambda i: (i - 3) % 2 == 0))
    with pytest.raises(se.AlgebraError, match="folded by sum, prod, max, min, argmin, argmax in SQL"):
        db.compute(flat.aggregate(by=[], fold="logsumexp"))
    with pytest.raises(se.CatalogueError):
        db.relation("missing")
    not_relations: list[Any] = ["F", flat.expression, np.ones(2)]
    for wrong in not_relations:
        for compute in (db.compute, db.relation_sql):
            with pytest.raises(se.AlgebraError, match=f"a relation is computed, .* and not {type(wrong).__name__}"):
                compute(wrong)
    with pytest.raises(se.AlgebraError, match="a relation is opened by the name of a tensor, and ndarray is no name"):
        db.relation(not_relations[-1])
    db.tensor("F", np.ones((3, 2)), promoted=["dim_0"])
    with pytest.raises(se.EngineError, match="tensor F has changed since the relation was written"):
        db.compute(flat)


def test_random_expressions(shared_db: se.Database) -> None:
    computed = 0

    @settings(max_examples=40)
    @given(problems(4), st.data())
    def run(problem: Problem, data: st.DataObject) -> None:
        nonlocal computed
        for node in topological_order(problem.expression):
            if isinstance(node, Input):
                keys, bound = node.type.frontier, node.type.bound
                array = np.zeros((*keys, *bound))
                for key, block in problem.inputs[node.name].items():
                    array[key] = block
                promoted = {f"dim_{at}": 1 for at in range(len(keys))}
                stored = shared_db.tensor(node.name, array, promoted=promoted, fill=99)
                assert type_of(stored.tensor, stored.decomposition, True) == node.type
        expected = evaluate(problem.expression, problem.inputs)
        if not expected:
            return
        result = relation_in(shared_db.compute(se.TensorRelation(problem.expression)), problem.expression.type.arity)
        assert result.keys() == expected.keys()
        for key, array in expected.items():
            np.testing.assert_allclose(result[key], array, rtol=0, atol=scale_of(expected) * 1e-9)
        computed += 1

    run()
    assert computed > 20

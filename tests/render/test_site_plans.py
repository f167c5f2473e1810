"""Statements of plans of the implementation algebra compute their results; here on one machine, without a cluster."""

import numpy as np
import pytest
from reading import relation_in
from sqlglot import exp

import sparseeinsum as se
from sparseeinsum.algebra.implementation.simulate import simulate
from sparseeinsum.algebra.implementation.site_operators import (
    LocalFilter,
    LocalJoin,
    LocalMap,
    PlacedInput,
    Shuffle,
    SitePlan,
)
from sparseeinsum.algebra.relational.evaluate import RelationTuples
from sparseeinsum.algebra.relational.kernels import ADD, IDENTITY
from sparseeinsum.algebra.relational.key_functions import trace_key_map, trace_predicate
from sparseeinsum.algebra.relational.relational_expressions import Input
from sparseeinsum.algebra.relational.types import RelationType
from sparseeinsum.decompose.places.distribution import Hashed
from sparseeinsum.render.dialects import write_sql
from sparseeinsum.render.site_plans import site_plan_query
from sparseeinsum.results.results import TensorResult
from sparseeinsum.storage.catalogue import require_tensors

SQUARE = RelationType((4, 4), (2, 2))
X, Y = (PlacedInput(Input(name, SQUARE), Hashed(by)) for by, name in enumerate("XY"))
IS_DIAGONAL = trace_predicate(lambda i, j: i == j, 2)
ON_DIAGONAL = LocalFilter(X, IS_DIAGONAL)
FIRST, SECOND = trace_key_map(lambda i, j: i, 2), trace_key_map(lambda i, j: j, 2)

# Plans in which tables distributed by different columns are joined where a filter makes these equal.
PLANS: dict[str, SitePlan] = {
    "both are filtered": LocalJoin(ON_DIAGONAL, LocalFilter(Y, IS_DIAGONAL), (0, 1), (0, 1), ADD),
    "left is filtered": LocalJoin(ON_DIAGONAL, Y, (0, 1), (0, 1), ADD),
    "filtered in a table": LocalJoin(Shuffle(ON_DIAGONAL, (0,)), Y, (0, 1), (0, 1), ADD),
    "joined by one part": LocalJoin(ON_DIAGONAL, LocalFilter(Y, IS_DIAGONAL), (1,), (0,), ADD),
    "the column is dropped": LocalJoin(
        LocalMap(ON_DIAGONAL, SECOND, IDENTITY), LocalMap(LocalFilter(Y, IS_DIAGONAL), FIRST, IDENTITY), (0,), (0,), ADD
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_tables_are_joined_by_equal_columns(db: se.Database, name: str) -> None:
    plan, engine = PLANS[name], db._engine
    inputs: dict[str, RelationTuples] = {}
    for seed, tensor in enumerate("XY"):
        matrix = np.random.default_rng(seed).normal(size=(8, 8))
        db.tensor(tensor, matrix, promoted={"dim_0": 2, "dim_1": 2})
        inputs[tensor] = {(i, j): matrix[2 * i : 2 * i + 2, 2 * j : 2 * j + 2] for i in range(4) for j in range(4)}
    stored = require_tensors(engine, ["X", "Y"])
    query = site_plan_query([plan], stored, engine.dialect, exp.table_, shards=8)
    for stage in query.stages:
        db.connection.execute(f"CREATE TEMP TABLE {stage.name} AS {write_sql(stage.query, engine.dialect)}")
    (result,) = query.results
    computed = TensorResult(result.schema, engine.arrow(result.select))
    expected = simulate(plan, inputs, 3)
    assert expected.floats == 0 or any(isinstance(node, Shuffle) for node in plan.inputs)
    relation = relation_in(computed, plan.type.arity)
    assert relation.keys() == expected.relation().keys()
    for key, array in expected.relation().items():
        np.testing.assert_allclose(relation[key], array, err_msg=str(key))

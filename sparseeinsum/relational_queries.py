"""Expressions of the tensor relational algebra, written by hand, on the tensors of a database: opened, and computed."""

from collections.abc import Mapping, Sequence

from sqlglot import exp

from sparseeinsum.algebra.building import TensorRelation
from sparseeinsum.algebra.implementation.cost import Sites
from sparseeinsum.algebra.implementation.movement_rules import MOVEMENT_RULES
from sparseeinsum.algebra.implementation.plans import Placed
from sparseeinsum.algebra.implementation.plans import Plan as SitePlan
from sparseeinsum.algebra.implementation.product_rules import PRODUCT_RULES
from sparseeinsum.algebra.implementation.search import best_plans
from sparseeinsum.algebra.relational.dense import type_of
from sparseeinsum.algebra.relational.expressions import Expression, Input
from sparseeinsum.algebra.relational.traversal import in_order
from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import AlgebraError, EngineError
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.render.dialects import write_sql
from sparseeinsum.render.expressions import expression_query
from sparseeinsum.render.site_plans import SitePlanQuery, site_plan_query
from sparseeinsum.results.results import TensorResult
from sparseeinsum.statistics.measure import is_complete
from sparseeinsum.storage.catalogue import Catalogue, require
from sparseeinsum.storage.measuring import measure_all
from sparseeinsum.storage.placing import placement_of

# SQL has one kernel an operator: rules that make one of several are left out.
_RULES = (*MOVEMENT_RULES.values(), *PRODUCT_RULES.values())


def open_relation(name: str, engine: Engine) -> TensorRelation:
    """A stored tensor as a relation: key columns are keys, in axis order; it has holes if it lacks a tuple.

    Raises:
        CatalogueError: There is no such tensor.
        DataError: Its rows are no tensor.
    """
    return TensorRelation(_input(require(Catalogue(engine), [name])[name], engine))


def _input(stored: StoredTensor, engine: Engine) -> Input:
    name = stored.tensor.name
    measured = measure_all({name: stored}, engine)[name]
    of = type_of(stored.tensor, stored.decomposition, is_complete(stored, measured))
    tiles = stored.decomposition.tiles
    distinct = tuple(measured.statistics.blocks(at, tiles[at]) for at in stored.decomposition.promoted)
    return Input(name, of, float(measured.tuples), distinct)


def compute_relation(relation: TensorRelation, engine: Engine) -> TensorResult:
    """Compute a relation, in a transaction of its own.

    Raises:
        AlgebraError: It has what SQL does not compute, or makes a key twice.
        EngineError: A tensor has changed since the relation was written, or the database refused a statement.
    """
    with engine.transaction():
        return _computed(_site_query(relation.expression, engine), engine)


def compute_plan(plan: SitePlan, engine: Engine) -> TensorResult:
    """Compute a plan of the implementation algebra on a cluster whose tensors lie as it says, in a transaction.

    Raises:
        AlgebraError: It has what SQL does not compute, or makes a key twice.
        EngineError: A tensor has changed since the plan was made, or the database refused a statement.
    """
    with engine.transaction():
        return _computed(plan_statements(plan, engine), engine)


def plan_statements(plan: SitePlan, engine: Engine) -> SitePlanQuery:
    """What computes a plan of the implementation algebra on a cluster."""
    placed = [each.input for each in in_order(plan) if isinstance(each, Placed)]
    cluster = engine.cluster()
    assert cluster is not None
    return site_plan_query(plan, _stored(placed, engine), engine.sql, engine.stage_namer(0.0), cluster.parts)


def _computed(query: SitePlanQuery, engine: Engine) -> TensorResult:
    """Fill the tables of a query, read its rows, and drop the tables."""
    run_stages(query, engine)
    result = TensorResult(query.schema, engine.arrow(query.select))
    drop_stages(query, engine)
    return result


def run_stages(query: SitePlanQuery, engine: Engine) -> None:
    """Fill the tables that a query reads, in the transaction that is open.

    Raises:
        AlgebraError: A rekey makes a key twice.
    """
    for done, statement in enumerate((*query.stages, None)):
        for _, repeated in (each for each in query.repeated if each[0] == done):
            _refuse_repeated(engine.rows(repeated), has_keys=len(query.schema.keys) > 0)
        if statement is not None:
            engine.stage(statement)


def drop_stages(query: SitePlanQuery, engine: Engine) -> None:
    """Drop the tables that a query reads."""
    for statement in query.stages:
        assert statement.stage is not None
        engine.execute(exp.Drop(tables=[statement.stage.copy()], kind="TABLE"))


def _refuse_repeated(keys: Sequence[tuple[object, ...]], has_keys: bool) -> None:
    for key in keys:
        parts = ", ".join(map(str, key)) if has_keys or len(key) > 1 else ""
        raise AlgebraError(f"a rekey makes the key <{parts}> of several; keys must be unique")


def relation_sql(relation: TensorRelation, engine: Engine) -> str:
    """The SELECT that computes a relation; on several machines, what fills the tables that it reads before."""
    query = _site_query(relation.expression, engine)
    return ";\n\n".join((*(each.text for each in query.stages), write_sql(query.select, engine.sql)))


def _site_query(expression: Expression, engine: Engine) -> SitePlanQuery:
    """An expression as SQL; where tables are spread over machines, by the plan that moves least between these."""
    stored = _stored([each for each in in_order(expression) if isinstance(each, Input)], engine)
    cluster = engine.cluster()
    if cluster is None:
        query = expression_query(expression, stored, engine.sql)
        return SitePlanQuery((), query.select, query.schema, None, tuple((0, each) for each in query.repeated))
    placements = {name: placement_of(each, engine) for name, each in stored.items()}
    (plan,) = best_plans([expression], placements, Sites(cluster.sites), _RULES)
    return plan_statements(plan, engine)


def _stored(inputs: Sequence[Input], engine: Engine) -> Mapping[str, StoredTensor]:
    """The tensors that are inputs, which are as they were when these were written."""
    stored = require(Catalogue(engine), [each.name for each in inputs])
    for each in inputs:
        if _input(stored[each.name], engine).type != each.type:
            raise EngineError(f"tensor {each.name} has changed since the relation was written; open it again")
    return stored

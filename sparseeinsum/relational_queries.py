"""Expressions of the tensor relational algebra, written by hand, on the tensors of a database: opened, and computed."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext

from sqlglot import exp

from sparseeinsum.algebra.building import TensorRelation
from sparseeinsum.algebra.implementation.cost import Sites
from sparseeinsum.algebra.implementation.movement_rules import MOVEMENT_RULES
from sparseeinsum.algebra.implementation.plans import Placed
from sparseeinsum.algebra.implementation.plans import Plan as SitePlan
from sparseeinsum.algebra.implementation.product_rules import PRODUCT_RULES
from sparseeinsum.algebra.implementation.search import best_plans
from sparseeinsum.algebra.placement import placement_of
from sparseeinsum.algebra.relational.dense import type_of
from sparseeinsum.algebra.relational.expressions import Expression, Input
from sparseeinsum.algebra.relational.traversal import in_order
from sparseeinsum.decompose.clusters.distribution import Cluster
from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import AlgebraError, EngineError
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.render.dialects import write_sql
from sparseeinsum.render.expressions import expression_query
from sparseeinsum.render.site_plans import SitePlanQuery, SiteResult, site_plan_query
from sparseeinsum.results.results import TensorResult
from sparseeinsum.statistics.measure import is_complete
from sparseeinsum.storage.catalogue import Catalogue, require
from sparseeinsum.storage.measuring import measure_all
from sparseeinsum.storage.placing import distribution_of

# SQL has one kernel an operator: rules that make one of several are left out.
SQL_RULES = (*MOVEMENT_RULES.values(), *PRODUCT_RULES.values())


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
    with _transaction(engine):
        (found,) = _computed(_site_query(relation.expression, engine), engine)
        return found


def sites_of(cluster: Cluster) -> Sites:
    """The machines of a cluster, on which what is broadcast goes to the coordinator first."""
    return Sites(cluster.sites, detours=1)


def compute_plans(plans: Sequence[SitePlan], engine: Engine) -> list[TensorResult]:
    """Compute plans of the implementation algebra on a cluster whose tensors lie as they say, in a transaction.

    Raises:
        AlgebraError: They have what SQL does not compute, or make a key twice.
        EngineError: A tensor has changed since the plans were made, or the database refused a statement.
    """
    with _transaction(engine):
        return _computed(plan_statements(plans, engine), engine)


def plan_statements(plans: Sequence[SitePlan], engine: Engine) -> SitePlanQuery:
    """What computes plans of the implementation algebra on a cluster."""
    placed = [each.input for plan in plans for each in in_order(plan) if isinstance(each, Placed)]
    cluster = engine.cluster()
    assert cluster is not None
    return site_plan_query(plans, _stored(placed, engine), engine.sql, engine.stage_namer(0.0), cluster.parts)


@contextmanager
def _transaction(engine: Engine) -> Iterator[None]:
    """A transaction, on a cluster in one that is open: there, tables that every machine has are written and read."""
    with engine.transaction(), nullcontext() if engine.cluster() is None else engine.transaction():
        yield


def _computed(query: SitePlanQuery, engine: Engine) -> list[TensorResult]:
    """Fill the tables of a query, read the results, and drop the tables."""
    run_stages(query, engine)
    found = [TensorResult(each.schema, engine.arrow(each.select)) for each in query.results]
    drop_stages(query, engine)
    return found


def run_stages(query: SitePlanQuery, engine: Engine) -> None:
    """Fill the tables that results are read from, in the transaction that is open.

    Raises:
        AlgebraError: A rekey makes a key twice.
    """
    for done, statement in enumerate((*query.stages, None)):
        for repeated in (each for after, each in query.repeated if after == done):
            for key in engine.rows(repeated):
                parts = ", ".join(map(str, key)) if repeated.args.get("group") else ""
                raise AlgebraError(f"a rekey makes the key <{parts}> of several; keys must be unique")
        if statement is not None:
            engine.stage(statement)


def drop_stages(query: SitePlanQuery, engine: Engine) -> None:
    """Drop the tables that results are read from."""
    for statement in query.stages:
        assert statement.stage is not None
        engine.execute(exp.Drop(tables=[statement.stage.copy()], kind="TABLE"))


def relation_sql(relation: TensorRelation, engine: Engine) -> str:
    """The SELECT that computes a relation; on several machines, what fills the tables that it reads before."""
    query = _site_query(relation.expression, engine)
    (result,) = query.results
    return ";\n\n".join((*(each.text for each in query.stages), write_sql(result.select, engine.sql)))


def _site_query(expression: Expression, engine: Engine) -> SitePlanQuery:
    """An expression as SQL; where tables are spread over machines, by the plan that moves least between these."""
    stored = _stored([each for each in in_order(expression) if isinstance(each, Input)], engine)
    cluster = engine.cluster()
    if cluster is None:
        query = expression_query(expression, stored, engine.sql)
        result = SiteResult(query.select, query.schema)
        return SitePlanQuery((), (result,), tuple((0, each) for each in query.repeated))
    placements = {
        name: placement_of(distribution_of(each, engine), each.decomposition) for name, each in stored.items()
    }
    (plan,) = best_plans([expression], placements, sites_of(cluster), SQL_RULES)
    return plan_statements([plan], engine)


def _stored(inputs: Sequence[Input], engine: Engine) -> Mapping[str, StoredTensor]:
    """The tensors that are inputs, which are as they were when these were written."""
    stored = require(Catalogue(engine), [each.name for each in inputs])
    for each in inputs:
        if _input(stored[each.name], engine).type != each.type:
            raise EngineError(f"tensor {each.name} has changed since the relation was written; open it again")
    return stored

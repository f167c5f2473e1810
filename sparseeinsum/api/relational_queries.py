"""Expressions of the tensor relational algebra, written by hand, on the tensors of a database: opened, and computed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from sqlglot import exp

from sparseeinsum.algebra.building import TensorRelation
from sparseeinsum.algebra.implementation.cost import Sites
from sparseeinsum.algebra.implementation.movement_rules import MOVEMENT_RULES
from sparseeinsum.algebra.implementation.product_rules import PRODUCT_RULES
from sparseeinsum.algebra.implementation.search import best_plans
from sparseeinsum.algebra.implementation.site_operators import Placed, SitePlan
from sparseeinsum.algebra.placement import placement_of
from sparseeinsum.algebra.relational.dense import type_of
from sparseeinsum.algebra.relational.expressions import Input
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.decompose.clusters.distribution import Cluster
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.retries import in_snapshot
from sparseeinsum.errors import AlgebraError, EngineError
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.render.dialects import write_sql
from sparseeinsum.render.expressions import expression_query
from sparseeinsum.render.site_plans import SitePlanQuery, SiteResult, site_plan_query
from sparseeinsum.results.results import TensorResult
from sparseeinsum.storage.catalogue import require_tensors
from sparseeinsum.storage.measuring import measure_all
from sparseeinsum.storage.tensor_placement import distribution_of

# SQL has one kernel an operator: rules that make one of several are left out.
SQL_RULES = (*MOVEMENT_RULES.values(), *PRODUCT_RULES.values())


def open_relation(name: str, engine: Engine) -> TensorRelation:
    """A stored tensor as a relation: key columns are keys, in axis order; it has holes if it lacks a tuple.

    Raises:
        CatalogueError: There is no such tensor.
        DataError: Its rows are no tensor.
    """
    with engine.protected():
        return TensorRelation(_input(require_tensors(engine, [name])[name], engine))


def _input(stored: StoredTensor, engine: Engine) -> Input:
    name = stored.tensor.name
    measured = measure_all({name: stored}, engine)[name]
    of = type_of(stored.tensor, stored.decomposition, measured.is_complete)
    tiles = stored.decomposition.tiles
    distinct = tuple(measured.statistics.blocks(at, tiles[at]) for at in stored.decomposition.promoted)
    return Input(name, of, float(measured.measurement.tuples), distinct)


def compute_relation(relation: TensorRelation, engine: Engine) -> TensorResult:
    """Compute a relation, in a transaction of its own.

    Raises:
        AlgebraError: It has what SQL does not compute, or makes a key twice.
        EngineError: A tensor has changed since the relation was written, or the database refused a statement.
    """

    def compute() -> TensorResult:
        with one_after_the_other(engine):
            query = _query_of(relation, engine, engine.stage_namer(0.0))
        (found,) = _computed(query, engine)
        return found

    return in_snapshot(engine, compute)


def sites_of(cluster: Cluster) -> Sites:
    """The machines of a cluster, on which what is broadcast goes to the coordinator first."""
    return Sites(cluster.sites, detours=1)


def compute_plans(plans: Sequence[SitePlan], engine: Engine) -> list[TensorResult]:
    """Compute plans of the implementation algebra on a cluster whose tensors lie as they say, in a transaction.

    Raises:
        AlgebraError: They have what SQL does not compute, or make a key twice.
        EngineError: A tensor has changed since the plans were made, or the database refused a statement.
    """

    def compute() -> list[TensorResult]:
        with one_after_the_other(engine):
            query = plan_query(plans, engine)
        return _computed(query, engine)

    return in_snapshot(engine, compute)


def plan_query(plans: Sequence[SitePlan], engine: Engine) -> SitePlanQuery:
    """What computes plans of the implementation algebra on a cluster."""
    placed = [each.input for plan in plans for each in topological_order(plan) if isinstance(each, Placed)]
    cluster = engine.cluster()
    assert cluster is not None
    return site_plan_query(plans, _stored(placed, engine), engine.dialect, engine.stage_namer(0.0), cluster.shards)


def _computed(query: SitePlanQuery, engine: Engine) -> list[TensorResult]:
    """The results of a query."""
    with filled(query, engine):
        return [TensorResult(each.schema, engine.arrow(each.select)) for each in query.results]


def one_after_the_other(engine: Engine) -> AbstractContextManager[None]:
    """Within, machines work on one shard at a time, over one connection, as while reference tables are filled.

    They cannot after they have worked on several, until the transaction ends that is open.
    """
    return engine.transaction() if engine.dialect.distributes else nullcontext()


@contextmanager
def filled(query: SitePlanQuery, engine: Engine) -> Iterator[None]:
    """Within, results can be read from the tables of a query; in the transaction that is open.

    Raises:
        AlgebraError: A rekey makes a key twice.
    """
    with one_after_the_other(engine) if query.has_reference_tables else nullcontext():
        _fill(query, engine)
        yield
        for statement in query.stages:
            assert statement.stage is not None
            engine.execute(exp.Drop(tables=[statement.stage.copy()], kind="TABLE"))


def _fill(query: SitePlanQuery, engine: Engine) -> None:
    for done, statement in enumerate((*query.stages, None)):
        for repeated in (each for after, each in query.repeated if after == done):
            for key in engine.rows(repeated):
                parts = ", ".join(map(str, key)) if repeated.args.get("group") else ""
                raise AlgebraError(f"a rekey makes the key <{parts}> of several; keys must be unique")
        if statement is not None:
            engine.stage(statement)


def relation_sql(relation: TensorRelation, engine: Engine) -> str:
    """The SELECT that computes a relation; on several machines, what fills the tables that it reads before."""
    with engine.protected():
        query = _query_of(relation, engine, exp.table_)
    (result,) = query.results
    return ";\n\n".join((*(each.text for each in query.stages), write_sql(result.select, engine.dialect)))


def _query_of(relation: TensorRelation, engine: Engine, table_of: Callable[[str], exp.Table]) -> SitePlanQuery:
    """A relation as SQL; where tables are spread over machines, by the plan that moves least between these."""
    expression = relation.expression
    stored = _stored([each for each in topological_order(expression) if isinstance(each, Input)], engine)
    cluster = engine.cluster()
    if cluster is None:
        query = expression_query(expression, stored, engine.dialect)
        result = SiteResult(query.select, query.schema)
        return SitePlanQuery((), (result,), tuple((0, each) for each in query.repeated))
    placements = {
        name: placement_of(distribution_of(each, engine), each.decomposition) for name, each in stored.items()
    }
    (plan,) = best_plans([expression], placements, sites_of(cluster), SQL_RULES)
    return site_plan_query([plan], stored, engine.dialect, table_of, cluster.shards)


def _stored(inputs: Sequence[Input], engine: Engine) -> Mapping[str, StoredTensor]:
    """The tensors that are inputs, which are as they were when these were written."""
    stored = require_tensors(engine, [each.name for each in inputs])
    for each in inputs:
        if _input(stored[each.name], engine).type != each.type:
            raise EngineError(f"tensor {each.name} has changed since the relation was written; open it again")
    return stored

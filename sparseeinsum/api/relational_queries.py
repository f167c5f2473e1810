"""Queries in the tensor relational algebra, which users write on the tensors of a database: opened and computed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext

from sqlglot import exp

from sparseeinsum.algebra.implementation.movement_rules import MOVEMENT_RULES
from sparseeinsum.algebra.implementation.operator_costs import Sites
from sparseeinsum.algebra.implementation.plan_search import best_plans
from sparseeinsum.algebra.implementation.product_rules import PRODUCT_RULES
from sparseeinsum.algebra.implementation.site_operators import PlacedInput, SitePlan
from sparseeinsum.algebra.placement import distribution_of_keys
from sparseeinsum.algebra.relational.relational_expressions import Input, Join, Transform
from sparseeinsum.algebra.relational.tensor_types import type_of
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.api.tensor_relations import TensorRelation
from sparseeinsum.decompose.clusters.transfers import Cluster
from sparseeinsum.engines.engine import Engine
from sparseeinsum.engines.registered_functions import compile_functions
from sparseeinsum.engines.retries import in_snapshot
from sparseeinsum.engines.sequential_shards import sequential_shards
from sparseeinsum.errors import AlgebraError, EngineError
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.language.user_functions import user_functions_named
from sparseeinsum.render.dialects import write_sql
from sparseeinsum.render.expression_queries import expression_query
from sparseeinsum.render.site_plans import SitePlanQuery, SiteResult, site_plan_query
from sparseeinsum.results.results import TensorResult
from sparseeinsum.storage.catalogue import require_tensors
from sparseeinsum.storage.measuring import measure_all
from sparseeinsum.storage.tensor_placement import distribution_of

# SQL has one kernel for every operator, so rules that fuse operators are left out.
SQL_RULES = (*MOVEMENT_RULES.values(), *PRODUCT_RULES.values())


def open_relation(name: str, engine: Engine) -> TensorRelation:
    """A stored tensor as a relation, whose keys are the key columns in axis order; it has holes if tuples are absent.

    Raises:
        AlgebraError: `name` is no text.
        CatalogueError: There is no such tensor.
        DataError: The rows do not form a tensor.
    """
    if not isinstance(name, str):
        raise AlgebraError(f"a relation is opened by the name of a tensor, and {type(name).__name__} is no name")
    with engine.protected():
        return TensorRelation(_input(require_tensors(engine, [name])[name], engine))


def _input(stored: StoredTensor, engine: Engine) -> Input:
    name = stored.tensor.name
    measured = measure_all({name: stored}, engine)[name]
    relation_type = type_of(stored.tensor, stored.decomposition, measured.is_complete)
    tiles = stored.decomposition.tiles
    distinct = tuple(measured.statistics.blocks(at, tiles[at]) for at in stored.decomposition.promoted)
    return Input(name, relation_type, float(measured.measurement.tuples), distinct)


def compute_relation(relation: TensorRelation, engine: Engine) -> TensorResult:
    """Compute a relation in a transaction of its own.

    Raises:
        AlgebraError: SQL cannot compute an operator, or a rekey produces a key twice.
        EngineError: A tensor has changed since the relation was written, or the database refused a statement.
    """

    def compute() -> TensorResult:
        with sequential_shards(engine):
            query = _query_of(relation, engine, engine.stage_namer(0.0))
        (result,) = _results(query, engine)
        return result

    return in_snapshot(engine, compute)


def sites_of(cluster: Cluster) -> Sites:
    """The sites of a cluster; a broadcast goes through the coordinator, so it takes a detour."""
    return Sites(cluster.sites, detours=1)


def compute_plans(plans: Sequence[SitePlan], engine: Engine) -> list[TensorResult]:
    """Compute plans of the implementation algebra in a transaction, on a cluster where inputs are as they assume.

    Raises:
        AlgebraError: SQL cannot compute an operator, or a rekey produces a key twice.
        EngineError: A tensor has changed since the plans were made, or the database refused a statement.
    """

    def compute() -> list[TensorResult]:
        with sequential_shards(engine):
            query = plan_query(plans, engine)
        return _results(query, engine)

    return in_snapshot(engine, compute)


def plan_query(plans: Sequence[SitePlan], engine: Engine) -> SitePlanQuery:
    """The statements that compute plans of the implementation algebra on a cluster."""
    placed = [node.input for plan in plans for node in topological_order(plan) if isinstance(node, PlacedInput)]
    cluster = engine.cluster()
    assert cluster is not None
    return site_plan_query(plans, _stored(placed, engine), engine.dialect, engine.stage_namer(0.0), cluster.shards)


def _results(query: SitePlanQuery, engine: Engine) -> list[TensorResult]:
    """Run a query, and fetch its results."""
    with filled(query, engine):
        return [TensorResult(result.schema, engine.arrow(result.select)) for result in query.results]


@contextmanager
def filled(query: SitePlanQuery, engine: Engine) -> Iterator[None]:
    """Fills the stages of a query in the open transaction; inside the block, results can be read from them.

    Raises:
        AlgebraError: A rekey produces a key twice.
    """
    with sequential_shards(engine) if query.has_reference_tables else nullcontext():
        _fill(query, engine)
        yield
        for statement in query.stages:
            assert statement.stage is not None
            engine.execute(exp.Drop(tables=[statement.stage.copy()], kind="TABLE"))


def _fill(query: SitePlanQuery, engine: Engine) -> None:
    for position, statement in enumerate((*query.stages, None)):
        for repeated in (select for after, select in query.repeated if after == position):
            for key in engine.rows(repeated):
                key_text = ", ".join(map(str, key)) if repeated.args.get("group") else ""
                raise AlgebraError(f"a rekey makes the key <{key_text}> of several; keys must be unique")
        if statement is not None:
            engine.stage(statement)


def relation_sql(relation: TensorRelation, engine: Engine) -> str:
    """The SELECT that computes a relation; on a cluster also the statements that fill the stages that it reads."""
    with engine.protected():
        query = _query_of(relation, engine, exp.table_)
    (result,) = query.results
    return ";\n\n".join((*(stage.text for stage in query.stages), write_sql(result.select, engine.dialect)))


def _query_of(relation: TensorRelation, engine: Engine, table_of: Callable[[str], exp.Table]) -> SitePlanQuery:
    """The SQL of a relation; on a cluster, of the plan with the least transfer between machines."""
    if not isinstance(relation, TensorRelation):
        raise AlgebraError(
            f"a relation is computed, such as db.relation('A').transform('relu'), and not {type(relation).__name__}"
        )
    expression = relation.expression
    nodes = topological_order(expression)
    called = frozenset().union(*(node.kernel.functions for node in nodes if isinstance(node, Join | Transform)))
    compile_functions(user_functions_named(called), engine)
    stored = _stored([node for node in nodes if isinstance(node, Input)], engine)
    cluster = engine.cluster()
    if cluster is None:
        query = expression_query(expression, stored, engine.dialect)
        result = SiteResult(query.select, query.schema)
        return SitePlanQuery((), (result,), tuple((0, select) for select in query.repeated))
    distributions = {
        name: distribution_of_keys(distribution_of(tensor, engine), tensor.decomposition)
        for name, tensor in stored.items()
    }
    (plan,) = best_plans([expression], distributions, sites_of(cluster), SQL_RULES)
    return site_plan_query([plan], stored, engine.dialect, table_of, cluster.shards)


def _stored(inputs: Sequence[Input], engine: Engine) -> Mapping[str, StoredTensor]:
    """The stored tensors of inputs; refuses tensors that have changed since the inputs were opened."""
    stored = require_tensors(engine, [relation.name for relation in inputs])
    for relation in inputs:
        if _input(stored[relation.name], engine).type != relation.type:
            raise EngineError(f"tensor {relation.name} has changed since the relation was written; open it again")
    return stored

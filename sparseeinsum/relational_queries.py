"""Expressions of the tensor relational algebra, written by hand, on the tensors of a database: opened, and computed."""

from sparseeinsum.algebra.building import TensorRelation
from sparseeinsum.algebra.relational.dense import type_of
from sparseeinsum.algebra.relational.expressions import Expression, Input
from sparseeinsum.algebra.relational.traversal import in_order
from sparseeinsum.engines.engine import Engine
from sparseeinsum.errors import AlgebraError, EngineError
from sparseeinsum.language.tensors import StoredTensor
from sparseeinsum.render.dialects import write_sql
from sparseeinsum.render.expressions import ExpressionQuery, expression_query
from sparseeinsum.results.results import TensorResult
from sparseeinsum.statistics.measure import is_complete
from sparseeinsum.storage.catalogue import Catalogue, require
from sparseeinsum.storage.measuring import measure_all


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
    expression = relation.expression
    with engine.transaction():
        query = _query(expression, engine)
        for repeated in query.repeated:
            for key in engine.rows(repeated):
                parts = ", ".join(map(str, key)) if query.schema.keys or len(key) > 1 else ""
                raise AlgebraError(f"a rekey makes the key <{parts}> of several; keys must be unique")
        return TensorResult(query.schema, engine.arrow(query.select))


def relation_sql(relation: TensorRelation, engine: Engine) -> str:
    """The SELECT that computes a relation."""
    return write_sql(_query(relation.expression, engine).select, engine.sql)


def _query(expression: Expression, engine: Engine) -> ExpressionQuery:
    inputs = {each.name: each for each in in_order(expression) if isinstance(each, Input)}
    stored = require(Catalogue(engine), inputs)
    for name, each in inputs.items():
        if _input(stored[name], engine).type != each.type:
            raise EngineError(f"tensor {name} has changed since the relation was written; open it again")
    return expression_query(expression, stored, engine.sql)

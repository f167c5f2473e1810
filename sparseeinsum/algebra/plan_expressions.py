"""Algebra: operators of plans as expressions of the tensor relational algebra, which define what they compute.

An EinSum is a join and an aggregation; a repartition is a tile or a concat, with a rekey; a pass is a filter. A
relation that a plan stores in a table or in memory is the expression that computes it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import indent

from sparseeinsum.algebra.einsum_expressions import ContractionBuilder
from sparseeinsum.algebra.operators import (
    AllKeys,
    Compress,
    Computed,
    Contract,
    Convert,
    Densify,
    Materialized,
    OffGrid,
    OnGrid,
    Relation,
    Resident,
    Restrict,
    Slice,
    Stack,
    Stored,
)
from sparseeinsum.algebra.relational.expression_text import write_expression
from sparseeinsum.algebra.relational.kernels import Elementwise
from sparseeinsum.algebra.relational.keys import (
    Integer,
    KeyPart,
    KeyPredicate,
    Operation,
)
from sparseeinsum.algebra.relational.relational_expressions import (
    Expression,
    Filter,
    Input,
    Transform,
)
from sparseeinsum.algebra.relational.tensor_types import frontier_of, type_of
from sparseeinsum.algebra.repartition_expressions import completed, off_grid, on_grid, sliced, stacked
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.algebra.translate import ComputedResult
from sparseeinsum.operators.expressions import Call, Literal, Operand
from sparseeinsum.statistics.estimate import Statistics


@dataclass(frozen=True, slots=True)
class PlanAlgebra:
    """A plan in the tensor relational algebra.

    Attributes:
        einsums: For every EinSum, by the name of its result, the expression that computes it; they read tensors and
            each other.
        outputs: The expressions of the results that a run returns.
    """

    einsums: Mapping[str, Expression]
    outputs: Mapping[str, Expression]

    def __str__(self) -> str:
        delivered = {name: expression for name, expression in self.outputs.items() if not isinstance(expression, Input)}
        named_expressions = [
            *self.einsums.items(),
            *((f"{name}, delivered", expression) for name, expression in delivered.items()),
        ]
        return "\n\n".join(
            f"{name}\n{indent(write_expression(expression), '  ')}" for name, expression in named_expressions
        )


def plan_algebra(
    definitions: Sequence[ComputedResult],
    delivered: Mapping[str, Relation],
    statistics: Mapping[str, Statistics],
    complete: Collection[str],
) -> PlanAlgebra:
    """A plan in the tensor relational algebra.

    Args:
        definitions: All EinSums, in topological order.
        delivered: For every output, the relation to deliver.
        statistics: The statistics of all tensors.
        complete: The inputs whose relations hold every tuple.
    """
    expressions = PlanExpressions(statistics, set(complete))
    einsums = {}
    for definition in definitions:
        einsums[definition.name] = expressions.expression_of(definition.relation)
        relation_type, schema = einsums[definition.name].type, definition.relation.schema
        if relation_type.is_continuous and relation_type.frontier == frontier_of(schema.tensor, schema.decomposition):
            expressions.complete.add(definition.name)
    return PlanAlgebra(einsums, {name: expressions.expression_of(relation) for name, relation in delivered.items()})


_IS_TRUE = Elementwise(Call("ne", (Operand(0), Literal(0))))


@dataclass(frozen=True)
class PlanExpressions:
    """Turns operators of a plan into expressions; an operator that occurs again is the same expression.

    Attributes:
        statistics: The statistics of the tensors that plans read from tables or from each other, as far as they are
            known.
        complete: The tensors whose relations are known to hold every tuple.
    """

    statistics: Mapping[str, Statistics]
    complete: set[str]
    _expressions: dict[Relation, Expression] = field(default_factory=dict)

    def expression_of(self, relation: Relation) -> Expression:
        """The expression of an operator, and of all below it."""
        if relation not in self._expressions:
            self._expressions[relation] = self._build(relation)
        return self._expressions[relation]

    def _build(self, relation: Relation) -> Expression:
        match relation:
            case Stored() | Computed():
                return self._input(relation.schema)
            case Slice() | Stack() | Densify() | Resident() | OnGrid():
                return _repartitioned(relation, self.expression_of(relation.input))
            case Materialized(operand) | Compress(operand):
                return self.expression_of(operand)
            case Restrict(operand, axis, first, last):
                key_position = operand.schema.decomposition.promoted.index(axis)
                return _restricted(self.expression_of(operand), key_position, first, last)
            case OffGrid(operand):
                return off_grid(self.expression_of(operand))
            case Convert(operand):
                return Transform(self.expression_of(operand), _IS_TRUE)
            case AllKeys():
                raise TypeError("keys alone have no values; use the relation that they complete")
            case Contract():
                return ContractionBuilder(relation, tuple(map(self.expression_of, relation.inputs))).expression()

    def _input(self, schema: Schema) -> Input:
        name, decomposition = schema.tensor.name, schema.decomposition
        relation_type = type_of(schema.tensor, decomposition, name in self.complete)
        statistics = self.statistics.get(name)
        if statistics is None or len(statistics.shape) != len(decomposition.tiles):  # nothing is known of cells
            return Input(name, relation_type)
        distinct = tuple(statistics.blocks(at, decomposition.tiles[at]) for at in decomposition.promoted)
        return Input(name, relation_type, statistics.tuples(decomposition.tiles), distinct)


def _repartitioned(relation: Slice | Stack | Densify | Resident | OnGrid, operand: Expression) -> Expression:
    """The expression of a relation with the numbers of another one: in other tuples, or in more of them."""
    schema = relation.input.schema
    match relation:
        case Slice(_, decomposition):
            return sliced(operand, schema, decomposition)
        case Stack(_, decomposition):
            return stacked(operand, schema, decomposition)
        case Densify() | Resident():
            return completed(operand, schema)
        case OnGrid(_, place):
            return on_grid(operand, schema, place)


def _restricted(expression: Expression, position: int, first: int, last: int) -> Filter:
    bounds = (Operation(">=", KeyPart(position), Integer(first)), Operation("<=", KeyPart(position), Integer(last)))
    return Filter(expression, KeyPredicate(expression.type.arity, Operation("&", *bounds)))

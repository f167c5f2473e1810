"""Algebra: operators of plans as expressions of the tensor relational algebra, which define what they compute.

An EinSum is a join and an aggregation; a repartition is a tile or a concat, with a rekey; a pass is a filter. A
relation that a plan stores in a table or in memory is the expression that computes it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import indent

from sparseeinsum.algebra.implementation.distributed import DistributedPlans, distribute
from sparseeinsum.algebra.implementation.placements import PlacementLike
from sparseeinsum.algebra.operators import (
    AllKeys,
    Compress,
    Computed,
    Contract,
    Convert,
    Densify,
    Materialized,
    Relation,
    Resident,
    Restrict,
    Schema,
    Slice,
    Stack,
    Stored,
)
from sparseeinsum.algebra.relational.absence import AbsentArray, TileExtent
from sparseeinsum.algebra.relational.compositions import DropAxis, InsertAxis
from sparseeinsum.algebra.relational.expression_text import write_expression
from sparseeinsum.algebra.relational.folds import AggregateFold, CompensatedFold, Fold
from sparseeinsum.algebra.relational.kernels import NAMES, Elementwise, Kernel, kernel_of
from sparseeinsum.algebra.relational.keys import (
    Integer,
    KeyExpression,
    KeyMap,
    KeyPart,
    KeyPredicate,
    Operation,
    projection,
)
from sparseeinsum.algebra.relational.relational_expressions import (
    Aggregation,
    Complete,
    Concat,
    Expression,
    Filter,
    Input,
    Join,
    Rekey,
    Tile,
    Transform,
    inputs_of,
    with_inputs,
)
from sparseeinsum.algebra.relational.tensor_types import absent_of, extent_at, frontier_of, type_of
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.algebra.translate import Definition
from sparseeinsum.errors import AlgebraError
from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.tensors import DEMOTED, Decomposition
from sparseeinsum.operators.expressions import Call, Literal, Operand
from sparseeinsum.operators.user_aggregates import USER_AGGREGATES
from sparseeinsum.semantics.exactness import JoinKind
from sparseeinsum.statistics.estimate import Statistics


@dataclass(frozen=True, slots=True)
class PlanAlgebra:
    """A plan in the tensor relational algebra.

    Attributes:
        einsums: For every EinSum, by the name of its result, the expression that computes it; they read tensors and
            each other.
        outputs: The expressions of the results that a run returns.
        sites: The number of machines of the cluster that the plan is for; None if it is for one machine.
        stored: How inputs are placed on these machines; others are scattered.
    """

    einsums: Mapping[str, Expression]
    outputs: Mapping[str, Expression]
    sites: int | None = None
    stored: Mapping[str, PlacementLike] = field(default_factory=dict)

    def distributed(
        self,
        sites: int | None = None,
        stored: Mapping[str, PlacementLike] | None = None,
        memory_floats: float | None = None,
    ) -> DistributedPlans:
        """The cheapest plans found to compute all of it on several sites; see `distribute`.

        Args:
            sites: The number of sites; by default the machines of the cluster that the plan is for.
            stored: How inputs are placed, by name: positions of the keys by which they are partitioned, or
                `everywhere`; by default as on that cluster.
            memory_floats: How many floats a site can hold for the inputs and the result of one operator.

        Raises:
            AlgebraError: The plan is for one machine, and `sites` is missing; or see `distribute`.
        """
        count = self.sites if sites is None else sites
        if count is None:
            raise AlgebraError("the plan is for one machine; say how many sites there are")
        inlined: dict[str, Expression] = {}
        for name, expression in self.einsums.items():
            inlined[name] = _inlined(expression, inlined)
        outputs = {name: _inlined(expression, inlined) for name, expression in self.outputs.items()}
        if stored is None:
            inputs = inputs_of(outputs.values())
            stored = {name: placement for name, placement in self.stored.items() if name in inputs}
        return distribute(outputs, count, stored, memory_floats)

    def __str__(self) -> str:
        delivered = {name: expression for name, expression in self.outputs.items() if not isinstance(expression, Input)}
        named_expressions = [
            *self.einsums.items(),
            *((f"{name}, delivered", expression) for name, expression in delivered.items()),
        ]
        return "\n\n".join(
            f"{name}\n{indent(write_expression(expression), '  ')}" for name, expression in named_expressions
        )


def _inlined(expression: Expression, expressions: Mapping[str, Expression]) -> Expression:
    """The expression with its inputs replaced by the expressions that compute them, where these are known."""
    replaced: dict[int, Expression] = {}
    for node in topological_order(expression):
        if isinstance(node, Input):
            replaced[id(node)] = expressions.get(node.name, node)
        else:
            replaced[id(node)] = with_inputs(node, [replaced[id(operand)] for operand in node.inputs])
    return replaced[id(expression)]


def plan_algebra(
    definitions: Sequence[Definition],
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
            case Slice(operand, decomposition):
                return _sliced(self.expression_of(operand), operand.schema, decomposition)
            case Stack(operand, decomposition):
                return _stacked(self.expression_of(operand), operand.schema, decomposition)
            case Densify(operand) | Resident(operand):
                return _completed(self.expression_of(operand), operand.schema)
            case Materialized(operand) | Compress(operand):
                return self.expression_of(operand)
            case Restrict(operand, axis, first, last):
                key_position = operand.schema.decomposition.promoted.index(axis)
                return _restricted(self.expression_of(operand), key_position, first, last)
            case Convert(operand):
                return Transform(self.expression_of(operand), _IS_TRUE)
            case AllKeys():
                raise TypeError("keys without values are no relation of the algebra; what they complete is")
            case Contract():
                return _ContractionBuilder(relation, tuple(map(self.expression_of, relation.inputs))).expression()

    def _input(self, schema: Schema) -> Input:
        name, decomposition = schema.tensor.name, schema.decomposition
        relation_type = type_of(schema.tensor, decomposition, name in self.complete)
        statistics = self.statistics.get(name)
        if statistics is None:
            return Input(name, relation_type)
        distinct = tuple(statistics.blocks(at, decomposition.tiles[at]) for at in decomposition.promoted)
        return Input(name, relation_type, statistics.tuples(decomposition.tiles), distinct)


def _completed(expression: Expression, schema: Schema) -> Complete:
    absent = absent_of(schema.tensor, schema.decomposition)
    return Complete(expression, absent, frontier_of(schema.tensor, schema.decomposition))


def _restricted(expression: Expression, position: int, first: int, last: int) -> Filter:
    bounds = (Operation(">=", KeyPart(position), Integer(first)), Operation("<=", KeyPart(position), Integer(last)))
    return Filter(expression, KeyPredicate(expression.type.arity, Operation("&", *bounds)))


def _sliced(expression: Expression, schema: Schema, decomposition: Decomposition) -> Expression:
    """Take axes out of the arrays one by one: each axis is tiled, and the number of the tile becomes a key."""
    current = schema.decomposition
    for axis in decomposition.differing_axes(current):
        tile, new_tile = current.tiles[axis], decomposition.tiles[axis]
        inside = current.array_axes.index(axis)
        expression = Tile(expression, inside, new_tile)
        if new_tile == 1:
            expression = Transform(expression, DropAxis(inside))
        after = _with_tile(current, axis, new_tile)
        key_position, tile_key = after.promoted.index(axis), expression.type.arity - 1
        parts: list[KeyExpression] = [*map(KeyPart, range(tile_key))]
        if tile == DEMOTED:
            parts.insert(key_position, KeyPart(tile_key))
        else:
            count = Operation("*", KeyPart(key_position), Integer(tile // new_tile))
            parts[key_position] = Operation("+", count, KeyPart(tile_key))
        keys = KeyMap(tile_key + 1, tuple(parts))
        expression = expression if keys.is_identity else Rekey(expression, keys)
        current = after
    return expression


def _with_tile(decomposition: Decomposition, axis: int, tile: int) -> Decomposition:
    tiles = decomposition.tiles
    return Decomposition((*tiles[:axis], tile, *tiles[axis + 1 :]))


def _stacked(expression: Expression, schema: Schema, decomposition: Decomposition) -> Expression:
    """Put keys into the arrays one by one; for a larger tile that stays a key, the key is split into tile and place."""
    current, tensor = schema.decomposition, schema.tensor
    for axis in decomposition.differing_axes(current):
        tile, new_tile = current.tiles[axis], decomposition.tiles[axis]
        after = _with_tile(current, axis, new_tile)
        inside = after.array_axes.index(axis)
        if tile == 1:
            expression = Transform(expression, InsertAxis(inside))
        key_position = current.promoted.index(axis)
        if new_tile != DEMOTED:
            expression = Rekey(expression, _split(expression.type.arity, key_position, new_tile // tile))
            key_position += 1
        expression = Concat(expression, key_position, inside, extent_at(tensor, after, axis), tensor.fill)
        current = after
    if not current.promoted:  # one tuple, also if the input has none
        expression = _completed(expression, Schema(tensor, current))
    return expression


def _split(arity: int, position: int, ratio: int) -> KeyMap:
    """Split a part of a key into the number of the larger tile, and the place in it."""
    split = (Operation("//", KeyPart(position), Integer(ratio)), Operation("%", KeyPart(position), Integer(ratio)))
    parts: list[KeyExpression] = [*map(KeyPart, range(arity))]
    parts[position : position + 1] = split
    return KeyMap(arity, tuple(parts))


@dataclass(frozen=True, slots=True)
class _Side:
    """An operand of a contraction.

    Attributes:
        expression: Its tuples.
        labels: The labels of its keys, each once.
        absent: What its absent tuples would hold.
    """

    expression: Expression
    labels: tuple[str, ...]
    absent: AbsentArray


@dataclass(frozen=True, slots=True)
class _ContractionBuilder:
    """Builds the expression of an EinSum over relations."""

    contract: Contract
    operands: tuple[Expression, ...]

    def expression(self) -> Expression:
        """A join, if there are two operands, and an aggregation, if the result lacks some keys.

        Raises:
            AlgebraError: The aggregate is a user's.
        """
        einsum = self.contract.einsum
        if einsum.aggregate in USER_AGGREGATES:
            raise AlgebraError(
                f"{einsum.output.tensor}: {einsum.aggregate} is a user's aggregate, which the algebra does not support"
            )
        sides = [self._side(index) for index in range(len(self.operands))]
        if len(sides) == 1:
            joined, labels = Transform(sides[0].expression, self._kernel()), sides[0].labels
            return self._aggregated(joined, labels)
        left, right = sides
        shared = [label for label in left.labels if label in right.labels]
        left_keys = tuple(left.labels.index(label) for label in shared)
        right_keys = tuple(right.labels.index(label) for label in shared)
        absent = (None, None) if self.contract.join == JoinKind.INNER else (left.absent, right.absent)
        kernel, kind = self._kernel(), self.contract.join
        pairs = Join(left.expression, right.expression, left_keys, right_keys, kernel, kind, absent)
        return self._aggregated(pairs, (*left.labels, *(label for label in right.labels if label not in shared)))

    def _schema(self, index: int) -> Schema:
        return self.contract.inputs[index].schema

    def _side(self, index: int) -> _Side:
        """An operand; if its keys have a label twice, only the diagonal."""
        schema, labels = self._schema(index), self.contract.einsum.operands[index].labels
        expression = self.operands[index]
        keys = [labels[position] for position in schema.decomposition.promoted]
        first_positions = [keys.index(label) for label in dict.fromkeys(keys)]
        for position, label in enumerate(keys):
            if keys.index(label) != position:
                equal = Operation("==", KeyPart(keys.index(label)), KeyPart(position))
                expression = Filter(expression, KeyPredicate(len(keys), equal))
        if len(first_positions) < len(keys):
            expression = Rekey(expression, projection(len(keys), first_positions))
        absent = absent_of(schema.tensor, schema.decomposition)
        extents = (
            extent
            if extent.key is None
            else TileExtent(extent.tile, extent.bound, first_positions.index(keys.index(keys[extent.key])))
            for extent in absent.extents
        )
        unique = tuple(keys[position] for position in first_positions)
        return _Side(expression, unique, AbsentArray(absent.fill, tuple(extents), absent.dtype))

    def _inside(self, index: int) -> tuple[str, ...]:
        """The labels inside the arrays of an operand."""
        labels = self.contract.einsum.operands[index].labels
        return tuple(labels[position] for position in self._schema(index).decomposition.array_axes)

    def _kernel(self) -> Kernel:
        """The kernel: the EinSum over the labels inside arrays."""
        einsum, output = self.contract.einsum, self.contract.output
        inside = [self._inside(index) for index in range(len(self.operands))]
        output_labels = tuple(self.contract.labels[position] for position in output.decomposition.array_axes)
        is_aggregated = any(label not in output_labels for labels in inside for label in labels)
        references = tuple(Reference(name, labels) for name, labels in zip(NAMES, inside, strict=False))
        aggregate = einsum.aggregate if is_aggregated or einsum.along is not None else None
        return kernel_of(EinSum(Reference("w", output_labels), references, einsum.join, aggregate, along=einsum.along))

    def _aggregated(self, expression: Expression, labels: Sequence[str]) -> Expression:
        """The aggregation to the keys of the result, in their order."""
        output = self.contract.output
        key_labels = [self.contract.labels[position] for position in output.decomposition.promoted]
        positions = tuple(labels.index(label) for label in key_labels)
        if set(key_labels) == set(labels):
            keys = projection(len(labels), positions)
            return expression if keys.is_identity else Rekey(expression, keys)
        aggregated = [label for label in labels if label not in key_labels]
        aggregation = Aggregation(expression, positions, self._fold(aggregated))
        if key_labels:
            return aggregation
        return _completed(aggregation, output)  # one tuple, also without pairs

    def _fold(self, aggregated: Sequence[str]) -> Fold:
        """The aggregate, with the contribution of the pairs that the join omits."""
        aggregate, compensation = self.contract.einsum.aggregate, self.contract.compensation
        assert aggregate is not None
        if compensation is None:
            return AggregateFold(aggregate)
        extents = tuple(self._extent(label, aggregated) for label in self._aggregated_inside())
        return CompensatedFold(AggregateFold(aggregate), compensation.constant, compensation.indices, extents)

    def _aggregated_inside(self) -> list[str]:
        inside = dict.fromkeys(label for index in range(len(self.operands)) for label in self._inside(index))
        return [label for label in inside if label not in self.contract.einsum.output.labels]

    def _extent(self, label: str, aggregated: Sequence[str]) -> TileExtent:
        """How many indices of a label the array of a pair has, which the kernel aggregates."""
        for index, operand in enumerate(self.contract.einsum.operands):
            if label in operand.labels:
                schema, position = self._schema(index), operand.labels.index(label)
                tile, bound = schema.decomposition.tiles[position], schema.tensor.axes[position].bound
                is_whole = tile == DEMOTED
                return TileExtent(bound, bound, None) if is_whole else TileExtent(tile, bound, aggregated.index(label))
        raise KeyError(label)

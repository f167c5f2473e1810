"""Algebra: operators of plans as expressions of the tensor relational algebra, which say what they mean.

An EinSum is a join and an aggregation, a repartition a tile, or a concat, with keys put in their places; a pass is a
filter. Relations that plans keep in tables, or in memory, are what they are computed from.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import indent

from sparseeinsum.algebra.implementation.distributed import DistributedPlans, distribute
from sparseeinsum.algebra.implementation.placements import PlacementLike
from sparseeinsum.algebra.operators import (
    AllKeys,
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
from sparseeinsum.algebra.relational.absence import Absent, Extent
from sparseeinsum.algebra.relational.compositions import DropAxis, InsertAxis
from sparseeinsum.algebra.relational.dense import absent_of, extent_at, frontier_of, type_of
from sparseeinsum.algebra.relational.expressions import (
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
    with_inputs,
)
from sparseeinsum.algebra.relational.folds import AggregateFold, CompensatedFold, Fold
from sparseeinsum.algebra.relational.kernels import NAMES, EinSumKernel, Elementwise, Kernel
from sparseeinsum.algebra.relational.keys import (
    Integer,
    KeyExpression,
    KeyMap,
    KeyPart,
    KeyPredicate,
    Operation,
    projection,
)
from sparseeinsum.algebra.relational.traversal import topological_order
from sparseeinsum.algebra.relational.writing import write_expression
from sparseeinsum.algebra.translate import Definition
from sparseeinsum.errors import AlgebraError
from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.tensors import DEMOTED, Decomposition, Tensor
from sparseeinsum.operators.expressions import Call, Literal, Operand
from sparseeinsum.operators.users_aggregates import USERS_AGGREGATES
from sparseeinsum.semantics.exactness import JoinKind
from sparseeinsum.statistics.estimate import Statistics


@dataclass(frozen=True, slots=True)
class PlanAlgebra:
    """A plan in the tensor relational algebra.

    Attributes:
        einsums: What computes the result of every EinSum, by its name, in order; they read tensors and each other.
        outputs: What delivers the results that a run returns.
        sites: Machines of the cluster that the plan is for; None where it is for one machine.
        stored: How inputs lie on those; others are scattered.
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
        """The cheapest way found to compute all of it on several sites; see `distribute`.

        Args:
            sites: How many there are; by default the machines of the cluster that the plan is for.
            stored: How inputs lie, by name: positions of the keys that they are partitioned by, or `everywhere`; by
                default as they do on that cluster.
            memory_floats: That a site has for what one operator reads and makes.

        Raises:
            AlgebraError: The plan is for one machine, and nobody says how many sites there are; or see `distribute`.
        """
        count = self.sites if sites is None else sites
        if count is None:
            raise AlgebraError("the plan is for one machine; say how many sites there are")
        known: dict[str, Expression] = {}
        for name, expression in self.einsums.items():
            known[name] = _put_together(expression, known)
        wanted = {name: _put_together(expression, known) for name, expression in self.outputs.items()}
        return distribute(wanted, count, self.stored if stored is None else stored, memory_floats)

    def __str__(self) -> str:
        delivered = {name: each for name, each in self.outputs.items() if not isinstance(each, Input)}
        parts = [*self.einsums.items(), *((f"{name}, delivered", each) for name, each in delivered.items())]
        return "\n\n".join(f"{name}\n{indent(write_expression(each), '  ')}" for name, each in parts)


def _put_together(expression: Expression, known: Mapping[str, Expression]) -> Expression:
    """The expression with what computes its inputs in their places, where that is known."""
    found: dict[int, Expression] = {}
    for each in topological_order(expression):
        if isinstance(each, Input):
            found[id(each)] = known.get(each.name, each)
        else:
            found[id(each)] = with_inputs(each, [found[id(operand)] for operand in each.inputs])
    return found[id(expression)]


def plan_algebra(
    definitions: Sequence[Definition],
    deliveries: Mapping[str, Relation],
    statistics: Mapping[str, Statistics],
    complete: Collection[str],
) -> PlanAlgebra:
    """A plan in the tensor relational algebra.

    Args:
        definitions: Of all EinSums, in topological order.
        deliveries: For every output, the relation to deliver.
        statistics: T and V of all tensors.
        complete: Inputs whose relations hold every tuple.
    """
    made = PlanExpressions(statistics, set(complete))
    einsums = {}
    for definition in definitions:
        einsums[definition.name] = made.of(definition.relation)
        found, schema = einsums[definition.name].type, definition.relation.schema
        if found.is_continuous and found.frontier == frontier_of(schema.tensor, schema.decomposition):
            made.complete.add(definition.name)
    return PlanAlgebra(einsums, {name: made.of(relation) for name, relation in deliveries.items()})


_IS_TRUE = Elementwise(Call("ne", (Operand(0), Literal(0))))


@dataclass(frozen=True)
class PlanExpressions:
    """Turns operators of a plan into expressions; one that is met again is the same expression.

    Attributes:
        statistics: T and V of the tensors that plans read from tables or from each other, as far as they are known.
        complete: Tensors whose relations are known to hold every tuple.
    """

    statistics: Mapping[str, Statistics]
    complete: set[str]
    _known: dict[Relation, Expression] = field(default_factory=dict)

    def of(self, relation: Relation) -> Expression:
        """The expression of an operator, and of all below it."""
        if relation not in self._known:
            self._known[relation] = self._made(relation)
        return self._known[relation]

    def _made(self, relation: Relation) -> Expression:
        match relation:
            case Stored() | Computed():
                return self._input(relation.schema)
            case Slice(given, decomposition):
                return _sliced(self.of(given), given.schema, decomposition)
            case Stack(given, decomposition):
                return _stacked(self.of(given), given.schema, decomposition)
            case Densify(given) | Resident(given):
                return _completed(self.of(given), given.schema)
            case Materialized(given):
                return self.of(given)
            case Restrict(given, axis, first, last):
                return _restricted(self.of(given), given.schema.decomposition.promoted.index(axis), first, last)
            case Convert(given):
                return Transform(self.of(given), _IS_TRUE)
            case AllKeys():
                raise TypeError("keys without values are no relation of the algebra; what they complete is")
            case Contract():
                return _Contraction(relation, tuple(map(self.of, relation.inputs))).expression()

    def _input(self, schema: Schema) -> Input:
        name, decomposition = schema.tensor.name, schema.decomposition
        of = type_of(schema.tensor, decomposition, name in self.complete)
        statistics = self.statistics.get(name)
        if statistics is None:
            return Input(name, of)
        distinct = tuple(statistics.blocks(at, decomposition.tiles[at]) for at in decomposition.promoted)
        return Input(name, of, statistics.tuples(decomposition.tiles), distinct)


def _completed(given: Expression, schema: Schema) -> Complete:
    absent = absent_of(schema.tensor, schema.decomposition)
    return Complete(given, absent, frontier_of(schema.tensor, schema.decomposition))


def _restricted(given: Expression, position: int, first: int, last: int) -> Filter:
    bounds = (Operation(">=", KeyPart(position), Integer(first)), Operation("<=", KeyPart(position), Integer(last)))
    return Filter(given, KeyPredicate(given.type.arity, Operation("&", *bounds)))


def _sliced(given: Expression, schema: Schema, decomposition: Decomposition) -> Expression:
    """Axes out of the arrays one by one: each is tiled, and what counts its tiles goes among the keys."""
    current = schema.decomposition
    for axis in decomposition.differing_axes(current):
        tile, wanted = current.tiles[axis], decomposition.tiles[axis]
        inside = current.array_axes.index(axis)
        given = Tile(given, inside, wanted)
        if wanted == 1:
            given = Transform(given, DropAxis(inside))
        after = _with_tile(current, axis, wanted)
        place, new = after.promoted.index(axis), given.type.arity - 1
        parts: list[KeyExpression] = [*map(KeyPart, range(new))]
        if tile == DEMOTED:
            parts.insert(place, KeyPart(new))
        else:
            count = Operation("*", KeyPart(place), Integer(tile // wanted))
            parts[place] = Operation("+", count, KeyPart(new))
        keys = KeyMap(new + 1, tuple(parts))
        given = given if keys.is_identity else Rekey(given, keys)
        current = after
    return given


def _with_tile(decomposition: Decomposition, axis: int, tile: int) -> Decomposition:
    tiles = decomposition.tiles
    return Decomposition((*tiles[:axis], tile, *tiles[axis + 1 :]))


def _stacked(given: Expression, schema: Schema, decomposition: Decomposition) -> Expression:
    """Keys into the arrays one by one: each is split into what stays and what tells places, if any stays."""
    current, tensor = schema.decomposition, schema.tensor
    for axis in decomposition.differing_axes(current):
        tile, wanted = current.tiles[axis], decomposition.tiles[axis]
        after = _with_tile(current, axis, wanted)
        inside = after.array_axes.index(axis)
        if tile == 1:
            given = Transform(given, InsertAxis(inside))
        place = current.promoted.index(axis)
        if wanted != DEMOTED:
            given = Rekey(given, _split(given.type.arity, place, wanted // tile))
            place += 1
        given = Concat(given, place, inside, extent_at(tensor, after, axis), tensor.fill)
        current = after
    if not current.promoted:  # one tuple, also of nothing
        given = _completed(given, Schema(tensor, current))
    return given


def _split(arity: int, place: int, ratio: int) -> KeyMap:
    """A part of a key into the larger tile that it is in, and its place there."""
    split = (Operation("//", KeyPart(place), Integer(ratio)), Operation("%", KeyPart(place), Integer(ratio)))
    parts: list[KeyExpression] = [*map(KeyPart, range(arity))]
    parts[place : place + 1] = split
    return KeyMap(arity, tuple(parts))


@dataclass(frozen=True, slots=True)
class _Side:
    """An operand of a contraction.

    Attributes:
        expression: Its tuples.
        labels: Those of its keys, each of them once.
        absent: What tuples would hold that are absent.
    """

    expression: Expression
    labels: tuple[str, ...]
    absent: Absent


@dataclass(frozen=True, slots=True)
class _Contraction:
    """An EinSum over relations."""

    contract: Contract
    operands: tuple[Expression, ...]

    def expression(self) -> Expression:
        """A join, if there are two operands, and an aggregation, if keys are gone afterwards.

        Raises:
            AlgebraError: It is an aggregate of a user's.
        """
        einsum = self.contract.einsum
        if einsum.aggregate in USERS_AGGREGATES:
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
        """An operand, of labels that stand twice only the diagonal."""
        schema, labels = self._schema(index), self.contract.einsum.operands[index].labels
        given = self.operands[index]
        keys = [labels[position] for position in schema.decomposition.promoted]
        firsts = [keys.index(label) for label in dict.fromkeys(keys)]
        for position, label in enumerate(keys):
            if keys.index(label) != position:
                equal = Operation("==", KeyPart(keys.index(label)), KeyPart(position))
                given = Filter(given, KeyPredicate(len(keys), equal))
        if len(firsts) < len(keys):
            given = Rekey(given, projection(len(keys), firsts))
        absent = absent_of(schema.tensor, schema.decomposition)
        extents = (
            each if each.key is None else Extent(each.tile, each.bound, firsts.index(keys.index(keys[each.key])))
            for each in absent.extents
        )
        unique = tuple(keys[position] for position in firsts)
        return _Side(given, unique, Absent(absent.fill, tuple(extents), absent.dtype))

    def _inside(self, index: int) -> tuple[str, ...]:
        """Labels inside the arrays of an operand."""
        labels = self.contract.einsum.operands[index].labels
        return tuple(labels[position] for position in self._schema(index).decomposition.array_axes)

    def _kernel(self) -> Kernel:
        """The EinSum over the labels inside arrays."""
        einsum, output = self.contract.einsum, self.contract.output
        inside = [self._inside(index) for index in range(len(self.operands))]
        kept = tuple(self.contract.labels[position] for position in output.decomposition.array_axes)
        is_elementwise = einsum.along is None and all(labels == kept for labels in inside)
        if is_elementwise and len(set(kept)) == len(kept):
            return Elementwise(einsum.join)
        is_aggregated = any(label not in kept for labels in inside for label in labels)
        references = tuple(Reference(name, labels) for name, labels in zip(NAMES, inside, strict=False))
        aggregate = einsum.aggregate if is_aggregated or einsum.along is not None else None
        return EinSumKernel(EinSum(Reference("w", kept), references, einsum.join, aggregate, along=einsum.along))

    def _aggregated(self, given: Expression, labels: Sequence[str]) -> Expression:
        """The groups of keys that the result has, in the order in which it has them."""
        output = self.contract.output
        wanted = [self.contract.labels[position] for position in output.decomposition.promoted]
        positions = tuple(labels.index(label) for label in wanted)
        if set(wanted) == set(labels):
            keys = projection(len(labels), positions)
            return given if keys.is_identity else Rekey(given, keys)
        gone = [label for label in labels if label not in wanted]
        found = Aggregation(given, positions, self._fold(gone))
        if wanted:
            return found
        return _completed(found, output)  # one tuple, also of nothing

    def _fold(self, gone: Sequence[str]) -> Fold:
        """The aggregate, with what pairs contribute that are left out."""
        aggregate, compensation = self.contract.einsum.aggregate, self.contract.compensation
        assert aggregate is not None
        if compensation is None:
            return AggregateFold(aggregate)
        extents = tuple(self._extent(label, gone) for label in self._aggregated_inside())
        return CompensatedFold(AggregateFold(aggregate), compensation.constant, compensation.indices, extents)

    def _aggregated_inside(self) -> list[str]:
        inside = dict.fromkeys(label for index in range(len(self.operands)) for label in self._inside(index))
        return [label for label in inside if label not in self.contract.einsum.output.labels]

    def _extent(self, label: str, gone: Sequence[str]) -> Extent:
        """How many indices of a label the array of a pair has, which the kernel folds."""
        for index, operand in enumerate(self.contract.einsum.operands):
            if label in operand.labels:
                schema, position = self._schema(index), operand.labels.index(label)
                tile, bound = schema.decomposition.tiles[position], _bound(schema.tensor, position)
                return Extent(bound, bound, None) if tile == DEMOTED else Extent(tile, bound, gone.index(label))
        raise KeyError(label)


def _bound(tensor: Tensor, position: int) -> int:
    return tensor.axes[position].bound

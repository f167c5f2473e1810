"""Algebra: the operators of a plan as those of a cluster, on which every one reads tables and fills one.

Where results lie is chosen with the plan. Here tables come between operators: wherever an operand is brought elsewhere,
and for every operator that stands between two EinSums. What all machines are to read is a table of the coordinator, if
it is no stored tensor that they have: it is sent to them with each statement that reads it.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sparseeinsum.algebra.implementation.placements import EVERYWHERE, SCATTERED, Placement, partitioned
from sparseeinsum.algebra.operators import (
    AllKeys,
    Computed,
    Contract,
    Densify,
    Materialized,
    Relation,
    Schema,
    Slice,
    Stack,
    Stored,
)
from sparseeinsum.algebra.translate import Definition
from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.clusters.cluster_plans import ClusterPlan
from sparseeinsum.decompose.clusters.costs import TransferCosts, Volume, volume_of
from sparseeinsum.decompose.clusters.distribution import (
    Central,
    Distribution,
    Hashed,
    Replicated,
    Scattered,
    transfer_bytes,
)
from sparseeinsum.decompose.clusters.local_strategies import LocalStrategy
from sparseeinsum.decompose.clusters.partial_groups import partial_result, volume_of_partials
from sparseeinsum.decompose.clusters.repartition_routes import PlacedOperator, PricedOperator, Routes, SizedRelation
from sparseeinsum.decompose.clusters.wire import keys_bytes
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.tensors import Decomposition
from sparseeinsum.operators.expressions import Operand
from sparseeinsum.semantics.exactness import JoinKind


@dataclass(frozen=True, slots=True)
class PlacedDefinitions:
    """Definitions whose relations have places.

    Attributes:
        definitions: The same, with tables wherever an operand is brought elsewhere.
        transferred_bytes: Expected to go from machine to machine, for each result and relation that has a table.
    """

    definitions: tuple[Definition, ...]
    transferred_bytes: Mapping[Relation, float]

    @property
    def total_bytes(self) -> float:
        """Of all tables."""
        return sum(self.transferred_bytes.values())


def place_definitions(
    definitions: Sequence[Definition], cluster_plan: ClusterPlan, model: CostModel
) -> PlacedDefinitions:
    """Put tables between the operators of a plan.

    Args:
        definitions: Of all EinSums, in topological order.
        cluster_plan: Where their results and the stored tensors lie.
        model: Knows sizes.
    """
    placement = _Placement(cluster_plan, model)
    placed = tuple(map(placement.placed, definitions))
    return PlacedDefinitions(placed, placement.transferred)


@dataclass(frozen=True, slots=True)
class _Source:
    """A relation that is read from a table, and where that lies."""

    relation: Relation
    place: Distribution


@dataclass(frozen=True)
class _Placement:
    cluster_plan: ClusterPlan
    model: CostModel
    transferred: dict[Relation, float] = field(default_factory=dict)
    tables: dict[Relation, list[_Source]] = field(default_factory=dict)

    @property
    def costs(self) -> TransferCosts:
        return self.cluster_plan.machines.costs

    def volume_of(self, schema: Schema) -> Volume:
        """Expected of a relation."""
        return volume_of(self.model, schema.tensor.name, schema.decomposition.tiles)

    def placed(self, definition: Definition) -> Definition:
        """A definition over tables, in its place."""
        name, relation = definition.name, definition.relation
        way, place = self._way(relation), self.cluster_plan.distributions[name]
        wanted = self._wanted(relation.inputs, way)
        operands = tuple(map(self._read, relation.inputs, wanted))
        distributed = [index for index, each in enumerate(way.operands) if isinstance(each, Hashed)]
        contract = replace(relation, inputs=operands, keys_from=min(distributed, default=0))
        transferred = sum(map(self._sent_along, relation.inputs, wanted))
        choice = definition.step.choice
        parts = volume_of_partials(self.model, relation.einsum, choice, way, self.costs.cluster).size_bytes
        if way.parts_by is not None:
            kept = self._parts(contract, choice, way)
            self.transferred[kept] = transferred + transfer_bytes(parts, Scattered(), way.result, self.costs.cluster)
            contract, transferred, parts = _put_together(contract, way.parts_by, kept), 0.0, 0.0
        transferred += parts + self._moving_bytes(contract.schema, way, place)
        self.transferred[contract] = transferred
        return replace(definition, relation=contract, distribution=place)

    def _way(self, contract: Contract) -> LocalStrategy:
        """How an EinSum is computed: of groups of one pair there are no parts."""
        way = self.cluster_plan.strategies[contract.schema.tensor.name]
        has_parts = way.gathers or way.parts_by is not None
        return LocalStrategy(way.operands, Scattered()) if has_parts and contract.has_single_pairs else way

    def _parts(self, contract: Contract, choice: Choice, way: LocalStrategy) -> Materialized:
        """What machines have of groups, in a table where the groups are to be."""
        assert way.parts_by is not None
        assert isinstance(way.result, Hashed)
        output = Schema(*partial_result(self.model, contract.einsum, choice, way.parts_by))
        parts = replace(contract, output=output, detects_nonfinite=False, parts_by=way.parts_by)
        return Materialized(parts, 0, 1, Hashed(way.result.axis + 1))  # after the axis of parts

    def _wanted(self, operands: Sequence[Relation], way: LocalStrategy) -> tuple[Distribution, ...]:
        """Where operands are read: a table that the coordinator has is not sent to what one machine computes."""
        if way.runs_on_one_site and not all(map(self._is_everywhere, operands)):
            return (Central(),) * len(operands)
        return way.operands

    def _is_everywhere(self, operand: Relation) -> bool:
        """Whether all machines have an operand, as only stored tensors can be."""
        if not isinstance(operand, Stored):
            return False
        return self.cluster_plan.machines.distributions[operand.schema.tensor.name] == Replicated()

    def _sent_along(self, operand: Relation, wanted: Distribution) -> float:
        """Bytes of an operand that a statement has sent to all machines."""
        if wanted != Replicated() or self._is_everywhere(operand):
            return 0.0
        return transfer_bytes(self.volume_of(operand.schema).size_bytes, Central(), Replicated(), self.costs.cluster)

    def _moving_bytes(self, schema: Schema, way: LocalStrategy, place: Distribution) -> float:
        return transfer_bytes(self.volume_of(schema).size_bytes, way.result, place, self.costs.cluster)

    def _read(self, operand: Relation, wanted: Distribution) -> Relation:
        """An operand out of a table in a distribution: on the cheapest way from a table that there is."""
        routes = Routes(self.costs, len(operand.schema.tensor.axes))
        chain = _chain(operand)
        rests = [chain[number:] for number in range(len(chain))]
        starts = [(rest, source) for rest in rests for source in self._sources(rest[0])]

        def seconds(start: tuple[list[Relation], _Source]) -> float:
            rest, source = start
            return routes.between(
                routes.seconds(self._sized(rest[0]), self._priced_operators(rest)), source.place, wanted
            )

        (first, *others), source = min(starts, key=seconds)
        placed_operators = routes.placed_operators(
            self._sized(first), self._priced_operators([first, *others]), source.place, wanted
        )
        for relation, placed in zip(others, placed_operators, strict=True):
            source = self._filled(relation, self._brought(source, placed.strategy.operands[0]), placed)
        return self._brought(source, wanted)

    def _sources(self, relation: Relation) -> list[_Source]:
        """Tables that hold a relation already."""
        if isinstance(relation, Stored):
            return [_Source(relation, self.cluster_plan.machines.distributions[relation.schema.tensor.name])]
        if isinstance(relation, Computed):
            return [_Source(relation, self.cluster_plan.distributions[relation.schema.tensor.name])]
        return self.tables.get(relation, [])

    def _filled(self, relation: Relation, operand: Relation, placed: PlacedOperator) -> _Source:
        """The table that an operator fills."""
        inner = relation.input if isinstance(relation, Materialized) else relation
        assert isinstance(inner, Slice | Stack | Densify)
        made: Relation = replace(inner, input=operand)
        if isinstance(inner, Densify) and isinstance(placed.strategy.result, Hashed):
            made = Densify(operand, self._indices(inner.schema, placed.strategy.result))
        axis, count = (relation.axis, relation.count) if isinstance(relation, Materialized) else (0, 1)
        kept = Materialized(made, axis, count, placed.distribution)
        self.transferred[kept] = self._moving_bytes(inner.schema, placed.strategy, placed.distribution)
        source = _Source(kept, placed.distribution)
        self.tables.setdefault(relation, []).append(source)
        return source

    def _indices(self, schema: Schema, place: Distribution) -> Materialized:
        """All keys of a schema in a table, where relations of that schema lie."""
        indices = Materialized(AllKeys(schema), 0, 1, place)
        size = self.model.tuples(schema.tensor.name, schema.decomposition.tiles) * keys_bytes(schema.decomposition)
        self.transferred[indices] = transfer_bytes(size, Central(), place, self.costs.cluster)
        return indices

    def _brought(self, source: _Source, wanted: Distribution) -> Relation:
        """A relation in a table of the distribution in which it is wanted, or from which it is sent there."""
        is_sent = (source.place, wanted) == (Central(), Replicated()) and not isinstance(source.relation, Stored)
        if source.place == wanted or is_sent:  # stored tensors may be views
            return source.relation
        place = Central() if wanted == Replicated() else wanted
        kept = Materialized(source.relation, 0, 1, place)
        size = self.volume_of(source.relation.schema).size_bytes
        self.transferred[kept] = transfer_bytes(size, source.place, place, self.costs.cluster)
        return kept

    def _sized(self, relation: Relation) -> SizedRelation:
        return SizedRelation(relation.schema.decomposition, self.volume_of(relation.schema))

    def _priced_operators(self, chain: Sequence[Relation]) -> list[PricedOperator]:
        """The operators between relations of which each is made of the one before, as if their work took no time."""
        sized = map(self._sized, chain)
        return [PricedOperator.between(self.costs, given, made) for given, made in itertools.pairwise(sized)]


def _put_together(contract: Contract, label: str, parts: Materialized) -> Contract:
    """The groups of an EinSum from their parts, whose first key is that of a label."""
    output = contract.einsum.output
    whole = Reference(parts.schema.tensor.name, (label, *output.labels))
    folded = EinSum(output, (whole,), Operand(0), contract.einsum.aggregate)
    return replace(contract, einsum=folded, inputs=(parts,), join=JoinKind.INNER, keys_from=0)


def placement_of(place: Distribution, decomposition: Decomposition) -> Placement:
    """Where the tuples of a relation lie, in the words of the implementation algebra."""
    match place:
        case Hashed(axis):
            return partitioned(decomposition.promoted.index(axis))
        case Replicated():
            return EVERYWHERE
        case Scattered() | Central():  # on another machine than those that work
            return SCATTERED


def _chain(operand: Relation) -> list[Relation]:
    """What an operand is made of: first a table that there is, last the operand."""
    inner = operand.input if isinstance(operand, Materialized) else operand
    if isinstance(inner, Stored | Computed):
        return [inner]
    assert isinstance(inner, Slice | Stack | Densify)
    return [*_chain(inner.input), operand]

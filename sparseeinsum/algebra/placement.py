"""Algebra: the operators of a plan on a cluster, where each of them reads tables and fills one.

The distributions of results are chosen with the plan. Here tables are put between operators: wherever an operand is
sent to other machines, and for every operator between two EinSums. If all machines are to read an operand that is not a
stored tensor which they have, it is a table of the coordinator: the rows are sent to them with each statement that
reads it. If several statements would send the same rows, a table that all machines have may cost less.
"""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sparseeinsum.algebra.operators import (
    AllKeys,
    Computed,
    Contract,
    Densify,
    Materialized,
    OffGrid,
    OnGrid,
    Relation,
    Slice,
    Stack,
    Stored,
)
from sparseeinsum.algebra.schemas import Schema
from sparseeinsum.algebra.translate import ComputedResult
from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.clusters.cluster_plans import ClusterPlan
from sparseeinsum.decompose.clusters.costs import NOTHING, TransferCosts, Volume, volume_of, volume_of_all_keys
from sparseeinsum.decompose.clusters.grid_strategies import CELL, cell_label
from sparseeinsum.decompose.clusters.local_strategies import LocalStrategy
from sparseeinsum.decompose.clusters.partial_groups import partial_result, volume_of_partials
from sparseeinsum.decompose.clusters.repartition_routes import (
    PlacedOperator,
    PossiblePlaces,
    PricedOperator,
    Routes,
    SizedRelation,
)
from sparseeinsum.decompose.clusters.transfers import transfer_bytes
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.places.distribution import (
    Central,
    Distribution,
    Grid,
    Gridded,
    Hashed,
    Replicated,
    Scattered,
    with_keys,
)
from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.language.tensors import Decomposition, unused_axis_name
from sparseeinsum.operators.expressions import Operand
from sparseeinsum.semantics.exactness import JoinKind


@dataclass(frozen=True, slots=True)
class PlacedDefinitions:
    """Definitions whose relations have distributions.

    Attributes:
        definitions: The definitions, with tables wherever an operand is sent to other machines.
        transferred_bytes: For each result and relation that has a table, the bytes that are expected to go from machine
            to machine to fill it.
    """

    definitions: tuple[ComputedResult, ...]
    transferred_bytes: Mapping[Relation, float]

    @property
    def total_bytes(self) -> float:
        """The bytes that are expected to go from machine to machine, for all tables."""
        return sum(self.transferred_bytes.values())


def place_definitions(
    definitions: Sequence[ComputedResult], cluster_plan: ClusterPlan, model: CostModel
) -> PlacedDefinitions:
    """Put tables between the operators of a plan.

    Args:
        definitions: All EinSums, in topological order.
        cluster_plan: The distributions of their results and of the stored tensors.
        model: The cost model, which estimates sizes.
    """
    placer = _Placer(cluster_plan, model)
    placed = tuple(map(placer.placed, definitions))
    shared = placer.worth_sharing(definitions)
    if shared:
        placer = _Placer(cluster_plan, model, shared)
        placed = tuple(map(placer.placed, definitions))
    return PlacedDefinitions(placed, placer.transferred)


@dataclass(frozen=True, slots=True)
class _TableSource:
    """A relation that is read from a table, and the distribution of the table.

    On a grid, the relation has a key for the cell.
    """

    relation: Relation
    distribution: Distribution

    @property
    def without_cells(self) -> Relation:
        """The relation without a key for the cell."""
        return OffGrid(self.relation) if isinstance(self.distribution, Gridded) else self.relation


@dataclass(frozen=True)
class _Placer:
    """Puts tables between the operators of a plan; keeps the tables so far, and the bytes sent to fill them.

    Attributes:
        cluster_plan: The distributions of results and of stored tensors.
        model: The cost model, which estimates sizes.
        shared: The relations that are sent to all machines once, into a table that several statements read.
        broadcasts: How many statements read a relation on all machines.
    """

    cluster_plan: ClusterPlan
    model: CostModel
    shared: frozenset[Relation] = frozenset()
    broadcasts: Counter[Relation] = field(default_factory=Counter)
    transferred: dict[Relation, float] = field(default_factory=dict)
    tables: dict[Relation, list[_TableSource]] = field(default_factory=dict)

    @property
    def costs(self) -> TransferCosts:
        return self.cluster_plan.machines.costs

    def volume_of(self, schema: Schema) -> Volume:
        """The expected size of a relation."""
        return volume_of(self.model, schema.tensor.name, schema.decomposition.tiles)

    def placed(self, definition: ComputedResult) -> ComputedResult:
        """A definition that reads tables, with the distribution of its result."""
        name, relation = definition.name, definition.relation
        strategy, distribution = self._strategy(relation), self.cluster_plan.distributions[name]
        read_from = self._operand_distributions(relation.inputs, strategy)
        operands = tuple(map(self._read, relation.inputs, read_from))
        hashed = [index for index, operand in enumerate(strategy.operands) if isinstance(operand, Hashed)]
        contract = replace(relation, inputs=operands, keys_from=min(hashed, default=0))
        if strategy.grid is not None:
            contract = _on_grid(contract, strategy)
        transferred = sum(map(self._broadcast_bytes, operands, read_from))
        choice = definition.step.choice
        partial_bytes = volume_of_partials(self.model, relation.einsum, choice, strategy, self.costs.cluster).size_bytes
        if strategy.parts_by is not None:
            partial_groups = self._partial_groups(contract, relation.einsum, choice, strategy)
            partial_bytes = transfer_bytes(partial_bytes, Scattered(), strategy.result, self.costs.cluster)
            self.transferred[partial_groups] = transferred + partial_bytes
            contract, transferred, partial_bytes = _whole_groups(contract, strategy.parts_by, partial_groups), 0.0, 0.0
        transferred += partial_bytes + self._transfer_bytes(relation.schema, strategy, distribution)
        self.transferred[contract] = transferred
        has_cells = isinstance(distribution, Gridded)  # then the cell is the first key
        return replace(definition, relation=contract, distribution=Hashed(0) if has_cells else distribution)

    def worth_sharing(self, definitions: Sequence[ComputedResult]) -> frozenset[Relation]:
        """The relations that a table on all machines sends at a lower cost than the statements that read them do.

        While such a table is filled and read, every machine works on one shard at a time.
        """
        savings = {
            relation: self.costs.saving_of_sharing(self.volume_of(relation.schema), count)
            for relation, count in self.broadcasts.items()
        }
        worth = {relation: seconds for relation, seconds in savings.items() if seconds > 0}
        if sum(worth.values()) <= self.costs.turns_seconds(sum(map(self._work_seconds, definitions))):
            return frozenset()
        return frozenset(worth)

    def _work_seconds(self, definition: ComputedResult) -> float:
        """The seconds of an EinSum on the machines that share its work."""
        step, strategy = definition.step, self.cluster_plan.strategies[definition.name]
        if strategy.runs_on_one_site:
            return 0.0
        return self.model.vertex_cost(step.einsum, step.choice).seconds * self.costs.work_share(strategy)

    def _strategy(self, contract: Contract) -> LocalStrategy:
        """The local strategy of an EinSum; groups of one pair need no partial groups, except on a grid."""
        strategy = self.cluster_plan.strategies[contract.schema.tensor.name]
        has_parts = strategy.gathers or (strategy.parts_by is not None and strategy.grid is None)
        return LocalStrategy(strategy.operands, Scattered()) if has_parts and contract.has_single_pairs else strategy

    def _partial_groups(
        self, contract: Contract, einsum: EinSum, choice: Choice, strategy: LocalStrategy
    ) -> Materialized:
        """The partial groups that machines have, in a table that is distributed as the whole groups will be."""
        assert strategy.parts_by is not None
        assert isinstance(strategy.result, Hashed)
        output = Schema(*partial_result(self.model, einsum, choice, strategy))
        partial_groups = replace(contract, output=output, detects_nonfinite=False, parts_by=strategy.parts_by)
        return Materialized(partial_groups, 0, 1, Hashed(strategy.result.axis + 1))  # after the axis of parts

    def _operand_distributions(self, operands: Sequence[Relation], strategy: LocalStrategy) -> tuple[Distribution, ...]:
        """The distributions in which operands are read; what one machine computes reads the coordinator's tables."""
        if strategy.runs_on_one_site and not all(map(self._is_everywhere, operands)):
            return (Central(),) * len(operands)
        return strategy.operands

    def _is_everywhere(self, operand: Relation) -> bool:
        """Whether all machines have an operand, which is possible only for stored tensors."""
        if not isinstance(operand, Stored):
            return False
        return self.cluster_plan.machines.distributions[operand.schema.tensor.name] == Replicated()

    def _broadcast_bytes(self, operand: Relation, distribution: Distribution) -> float:
        """The bytes of an operand, as a statement reads it, that are sent to all machines with the statement."""
        is_shared = isinstance(operand, Materialized) and operand.distribution == Replicated()
        if distribution != Replicated() or is_shared or self._is_everywhere(operand):
            return 0.0
        return transfer_bytes(self.volume_of(operand.schema).size_bytes, Central(), Replicated(), self.costs.cluster)

    def _transfer_bytes(self, schema: Schema, strategy: LocalStrategy, distribution: Distribution) -> float:
        return transfer_bytes(self.volume_of(schema).size_bytes, strategy.result, distribution, self.costs.cluster)

    def _read(self, operand: Relation, distribution: Distribution) -> Relation:
        """An operand in a distribution, by the cheapest route from the tables that exist."""
        chain = _chain(operand)
        suffixes = [chain[number:] for number in range(len(chain))]
        starts = [(operators, source) for operators in suffixes for source in self._sources(operators[0])]
        places = dict.fromkeys([distribution, *(source.distribution for _, source in starts)])
        grids = tuple(place for place in places if isinstance(place, Gridded))
        routes = Routes(self.costs, PossiblePlaces(len(operand.schema.tensor.axes), grids))

        def seconds(start: tuple[list[Relation], _TableSource]) -> float:
            operators, source = start
            return routes.between(
                routes.seconds(self._sized(operators[0]), self._priced_operators(operators)),
                source.distribution,
                distribution,
            )

        (first, *others), source = min(starts, key=seconds)
        placed_operators = routes.placed_operators(
            self._sized(first), self._priced_operators([first, *others]), source.distribution, distribution
        )
        for relation, placed in zip(others, placed_operators, strict=True):
            source = self._materialize(relation, self._redistributed(source, placed.strategy.operands[0]), placed)
        return self._redistributed(source, distribution)

    def _sources(self, relation: Relation) -> list[_TableSource]:
        """The tables that hold a relation already."""
        if isinstance(relation, Stored):
            return [_TableSource(relation, self.cluster_plan.machines.distributions[relation.schema.tensor.name])]
        if isinstance(relation, Computed):
            distribution = self.cluster_plan.distributions[relation.schema.tensor.name]
            if isinstance(distribution, Gridded):
                relation = Computed(_cell_schema(relation.schema, distribution.grid))
            return [_TableSource(relation, distribution)]
        return self.tables.get(relation, [])

    def _materialize(self, relation: Relation, operand: Relation, placed: PlacedOperator) -> _TableSource:
        """The table that an operator fills.

        Args:
            relation: The operator in the plan of one machine.
            operand: Its input on the cluster.
            placed: Its local strategy and the distribution of its result.
        """
        inner = relation.input if isinstance(relation, Materialized) else relation
        assert isinstance(inner, Slice | Stack | Densify)
        operator: Relation = replace(inner, input=operand)
        if isinstance(inner, Densify) and isinstance(placed.strategy.result, Hashed):
            operator = Densify(operand, self._all_keys(inner.schema, placed.strategy.result))
        axis, count = (relation.axis, relation.count) if isinstance(relation, Materialized) else (0, 1)
        materialized = Materialized(operator, axis, count, placed.distribution)
        self.transferred[materialized] = self._transfer_bytes(inner.schema, placed.strategy, placed.distribution)
        source = _TableSource(materialized, placed.distribution)
        self.tables.setdefault(relation, []).append(source)
        return source

    def _all_keys(self, schema: Schema, distribution: Distribution) -> Materialized:
        """All keys of a schema in a table that is distributed as relations of that schema."""
        all_keys = Materialized(AllKeys(schema), 0, 1, distribution)
        size_bytes = volume_of_all_keys(schema.tensor, schema.decomposition).size_bytes
        self.transferred[all_keys] = transfer_bytes(size_bytes, Central(), distribution, self.costs.cluster)
        return all_keys

    def _redistributed(self, source: _TableSource, distribution: Distribution) -> Relation:
        """A relation in a table of a distribution, or in one of the coordinator that is sent to all machines."""
        if source.distribution == distribution:
            return source.relation
        if isinstance(distribution, Gridded):
            return self._on_grid(source, distribution)
        relation, table_distribution = source.without_cells, distribution
        if distribution == Replicated():
            self.broadcasts[relation] += 1
            if relation not in self.shared:
                if source.distribution == Central() and not isinstance(relation, Stored):  # may be a view
                    return relation
                table_distribution = Central()
        materialized = Materialized(relation, 0, 1, table_distribution)
        size = self.volume_of(relation.schema).size_bytes
        self.transferred[materialized] = transfer_bytes(
            size, source.distribution, table_distribution, self.costs.cluster
        )
        return materialized

    def _on_grid(self, source: _TableSource, place: Gridded) -> Materialized:
        """A relation in a table that is distributed by the cells of a grid."""
        relation = source.without_cells
        schema = relation.schema
        copied = OnGrid(relation, place, unused_axis_name(CELL, schema.tensor))
        materialized = Materialized(copied, 0, 1, Hashed(0))
        size = self.volume_of(schema).in_place(place).size_bytes
        self.transferred[materialized] = transfer_bytes(size, source.distribution, place, self.costs.cluster)
        return materialized

    def _sized(self, relation: Relation) -> SizedRelation:
        return SizedRelation(relation.schema.decomposition, self.volume_of(relation.schema))

    def _priced_operators(self, chain: Sequence[Relation]) -> list[PricedOperator]:
        """The operators between relations, each of which is computed of the one before, as if that took no time."""
        return [self._priced_operator(before, after) for before, after in itertools.pairwise(chain)]

    def _priced_operator(self, before: Relation, after: Relation) -> PricedOperator:
        schema = after.schema
        adds_tuples = schema.decomposition == before.schema.decomposition
        all_keys = volume_of_all_keys(schema.tensor, schema.decomposition) if adds_tuples else NOTHING
        return PricedOperator.between(self.costs, self._sized(before), self._sized(after), all_keys=all_keys)


def _on_grid(contract: Contract, strategy: LocalStrategy) -> Contract:
    """An EinSum whose operands have a key for the cell, before the others, by which they are joined, too.

    So has the result, if it stays on the grid. Groups are aggregated, also those of one pair: whether they still have
    one is checked by the stored operands before a run, and here copies are read.
    """
    contract = replace(contract, has_single_pairs=False)
    einsum = contract.einsum
    label = cell_label(einsum)

    def with_cell(reference: Reference) -> Reference:
        return Reference(reference.tensor, (label, *reference.labels))

    operands = tuple(map(with_cell, einsum.operands))
    if not isinstance(strategy.result, Gridded):
        return replace(contract, einsum=replace(einsum, operands=operands))
    on_grid = replace(einsum, operands=operands, output=with_cell(einsum.output))
    return replace(contract, einsum=on_grid, output=_cell_schema(contract.schema, strategy.result.grid))


def _cell_schema(schema: Schema, grid: Grid) -> Schema:
    """The schema of a result on a grid, whose first key is that of the cell."""
    return schema.with_first_key(unused_axis_name(CELL, schema.tensor), grid.bound)


def _whole_groups(contract: Contract, label: str, partial_groups: Materialized) -> Contract:
    """An EinSum that aggregates the whole groups from partial ones, whose first key is that of `label`."""
    output = contract.einsum.output
    reference = Reference(partial_groups.schema.tensor.name, (label, *output.labels))
    folded = EinSum(output, (reference,), Operand(0), contract.einsum.aggregate)
    return replace(contract, einsum=folded, inputs=(partial_groups,), join=JoinKind.INNER, keys_from=0)


def distribution_of_keys(distribution: Distribution, decomposition: Decomposition) -> Distribution:
    """A distribution by axes of a tensor, by the positions of their keys in the relation instead."""
    if isinstance(distribution, Central):  # on another machine than those that work
        return Scattered()
    return with_keys(distribution, lambda axis: (decomposition.promoted.index(axis),))


def _chain(operand: Relation) -> list[Relation]:
    """The relations of which an operand is made: first one that has a table, last the operand."""
    inner = operand.input if isinstance(operand, Materialized) else operand
    if isinstance(inner, Stored | Computed):
        return [inner]
    assert isinstance(inner, Slice | Stack | Densify)
    return [*_chain(inner.input), operand]

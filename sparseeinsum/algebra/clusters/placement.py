"""Algebra: where every relation of a plan is put on several machines, so that little goes from one to another.

Every operator reads tables and fills one. Of each relation the least transfer to have it in each distribution follows
from those of its operands; results that are read several times are put where all of their readers together want them.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sparseeinsum.algebra.clusters.distribution import (
    Central,
    Cluster,
    Distribution,
    Hashed,
    Replicated,
    Scattered,
    gathering_bytes,
    transfer_bytes,
)
from sparseeinsum.algebra.clusters.local_ways import Way, local_ways
from sparseeinsum.algebra.operators import (
    Computed,
    Contract,
    Densify,
    Indices,
    Kept,
    Relation,
    Schema,
    Slice,
    Stack,
    Stored,
)
from sparseeinsum.algebra.translate import Definition, is_aggregating

# Of the bytes that are in a table: to write them again takes time, too, though nothing is transferred.
_WRITING_SHARE = 0.1


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


def place(
    definitions: Sequence[Definition],
    stored: Mapping[str, Distribution],
    size_of: Callable[[Schema], float],
    cluster: Cluster,
) -> PlacedDefinitions:
    """Put every relation of a plan where the least is transferred.

    Args:
        definitions: Of all EinSums, in topological order.
        stored: Where the input tensors are, by name.
        size_of: Expected bytes of a relation.
        cluster: The machines.
    """
    grouped = tuple(replace(each, relation=replace(each.relation, has_single_pairs=False)) for each in definitions)
    return _Placement(grouped, stored, size_of, cluster).placed()


class _Placement:
    """What is known of the places of one plan's relations; a node is an operator that fills a table."""

    def __init__(
        self,
        definitions: Sequence[Definition],
        stored: Mapping[str, Distribution],
        size_of: Callable[[Schema], float],
        cluster: Cluster,
    ) -> None:
        self._definitions = definitions
        self._stored = stored
        self._size_of = size_of
        self._cluster = cluster
        self._results: dict[str, Relation] = {each.name: each.relation for each in definitions}
        self._grouped = {each.name for each in definitions if is_aggregating(each.step)}
        self._least: dict[Relation, dict[Distribution, float]] = {}
        self._ways: dict[tuple[Relation, Distribution], Way] = {}
        self._places: dict[Relation, Distribution] = {}
        self._transferred: dict[Relation, float] = {}

    def placed(self) -> PlacedDefinitions:
        """Prices in topological order, choices from the outputs back, then the same operators over tables."""
        nodes = list(dict.fromkeys(node for each in self._definitions for node in _nodes(each.relation)))
        for node in nodes:
            self._price(node)
        wishes: dict[Relation, list[Distribution]] = {}
        for node in reversed(nodes):
            place = self._best_place(node, wishes.get(node, []))
            self._places[node] = place
            for operand, wanted in zip(_operands(node), self._ways[node, place].operands, strict=True):
                wishes.setdefault(self._table_of(operand), []).append(wanted)
        definitions = tuple(map(self._definition, self._definitions))
        return PlacedDefinitions(definitions, self._transferred)

    def _table_of(self, operand: Relation) -> Relation:
        """The node whose table an operand is, or a stored tensor."""
        if isinstance(operand, Computed):
            return self._results[operand.schema.tensor.name]
        return operand.input if isinstance(operand, Kept) else operand

    def _price(self, node: Relation) -> None:
        """The least transfer to have a relation in every distribution, and the way to compute it for that."""
        is_grouped = isinstance(node, Contract) and node.einsum.output.tensor in self._grouped
        least: dict[Distribution, float] = {}
        for way in local_ways(node, is_grouped):
            fetched = sum(map(self._fetching_cost, _operands(node), way.operands))
            for place in _tables_for(node.schema):
                total = fetched + self._sent_bytes(node.schema, way, place)
                if total < least.get(place, math.inf):
                    least[place] = total
                    self._ways[node, place] = way
        self._least[node] = least

    def _sent_bytes(self, schema: Schema, way: Way, place: Distribution) -> float:
        """What is transferred between the operands of a node and its table."""
        size = self._size_of(schema)
        gathered = gathering_bytes(size, self._cluster) if way.gathers else 0.0
        return gathered + transfer_bytes(size, way.result, place, self._cluster)

    def _fetching_cost(self, operand: Relation, wanted: Distribution) -> float:
        """The least cost of reading an operand in a distribution."""
        table, size = self._table_of(operand), self._size_of(operand.schema)
        known = {self._place_of_stored(table): 0.0} if isinstance(table, Stored) else self._least[table]
        return min(before + self._moving_cost(size, place, wanted) for place, before in known.items())

    def _place_of_stored(self, table: Stored) -> Distribution:
        return self._stored[table.source.tensor.name]

    def _moving_cost(self, size: float, place: Distribution, wanted: Distribution) -> float:
        """Of bringing a table elsewhere, where it can be brought."""
        if place == wanted:
            return 0.0
        if isinstance(wanted, Scattered):
            return math.inf
        return transfer_bytes(size, place, wanted, self._cluster) + _WRITING_SHARE * size

    def _best_place(self, node: Relation, wishes: Sequence[Distribution]) -> Distribution:
        """Where a table serves all of its readers best; where it is only delivered, as it comes out."""
        size, least = self._size_of(node.schema), self._least[node]
        wanted = dict.fromkeys(wishes)
        return min(least, key=lambda place: least[place] + sum(self._moving_cost(size, place, each) for each in wanted))

    def _definition(self, definition: Definition) -> Definition:
        """A definition over tables, in its place."""
        node = definition.relation
        relation = self._over_tables(node)
        assert isinstance(relation, Contract)
        place = self._places[node]
        self._transferred[relation] = self._sent_bytes(node.schema, self._ways[node, place], place)
        return replace(definition, relation=relation, distribution=place)

    def _over_tables(self, node: Relation) -> Relation:
        """An operator whose operands are tables in the distributions that it wants."""
        way = self._ways[node, self._places[node]]
        operands = tuple(map(self._read, _operands(node), way.operands))
        match node:
            case Contract():
                return replace(node, inputs=operands)
            case Densify() if isinstance(way.result, Hashed):
                indices = Indices(node.schema)
                sent = transfer_bytes(self._size_of(indices.schema), Central(), way.result, self._cluster)
                return Densify(operands[0], self._kept(indices, way.result, sent))
            case Slice() | Stack() | Densify():
                return replace(node, input=operands[0])
        raise TypeError(f"{type(node).__name__} has no operands")

    def _read(self, operand: Relation, wanted: Distribution) -> Relation:
        """An operand out of a table in a distribution."""
        table = self._table_of(operand)
        if isinstance(table, Stored):
            source, place = operand, self._place_of_stored(table)
        elif isinstance(operand, Computed):
            source, place = operand, self._places[table]
        else:
            place = self._places[table]
            axis, count = (operand.axis, operand.count) if isinstance(operand, Kept) else (0, 1)
            source = Kept(self._over_tables(table), axis, count, place)
            self._transferred[source] = self._sent_bytes(table.schema, self._ways[table, place], place)
        if place == wanted:
            return source
        return self._kept(source, wanted, transfer_bytes(self._size_of(source.schema), place, wanted, self._cluster))

    def _kept(self, relation: Relation, place: Distribution, sent_bytes: float) -> Kept:
        kept = Kept(relation, 0, 1, place)
        self._transferred[kept] = sent_bytes
        return kept


def _nodes(relation: Relation) -> Iterator[Relation]:
    """What is computed for a result: what its operands are made of, then itself."""
    for operand in _operands(relation):
        if isinstance(operand, Kept):
            operand = operand.input
        if not isinstance(operand, Stored | Computed):
            yield from _nodes(operand)
    yield relation


def _operands(relation: Relation) -> tuple[Relation, ...]:
    assert isinstance(relation, Contract | Slice | Stack | Densify)
    return relation.inputs if isinstance(relation, Contract) else (relation.input,)


def _tables_for(schema: Schema) -> list[Distribution]:
    """Distributions that a table of a schema can have."""
    return [*(Hashed(axis) for axis in schema.decomposition.promoted), Central(), Replicated()]

"""Decompose: what a choice of promoted labels costs for an EinSum, and a change of decomposition between two."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sparseeinsum.decompose.access import ResidentSizes, StoredOrder, indexable_operands, indexed
from sparseeinsum.decompose.choice import (
    Choice,
    has_other_keys,
    is_matrix_product,
    promoted_labels,
    promoted_tiles,
    reference_tiles,
    result_tiles,
)
from sparseeinsum.decompose.cost import (
    Accounting,
    ContractionSizes,
    CostConstants,
    EmbeddedAccounting,
    RepartitionSizes,
    Work,
)
from sparseeinsum.decompose.joining import Operand, groups_of, pairs_of, share_keys
from sparseeinsum.decompose.memory import (
    REREAD_BYTES,
    STATE_OVERHEAD_BYTES,
    UNLIMITED,
    Arrays,
    Footprint,
    Memory,
    Passes,
    vector_bytes,
)
from sparseeinsum.decompose.moves import Move, Moving
from sparseeinsum.decompose.vertex_costs import VertexCost
from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.language.scalar import count_operations
from sparseeinsum.language.tensors import (
    DEMOTED,
    Decomposition,
    array_bytes,
    common_tile,
    count_keys,
    mean_extent,
    tuple_bytes,
)
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.dtypes import ITEM_BYTES, is_complex
from sparseeinsum.semantics.exactness import Absence, Evaluation, JoinKind
from sparseeinsum.statistics.estimate import Statistics, by_label, dense_statistics

_EMBEDDED = EmbeddedAccounting()

# Operands whose values a join fills in where they are missing: the engine copies them for every row.
_FILLED_IN = {JoinKind.INNER: (), JoinKind.LEFT: (1,), JoinKind.RIGHT: (0,), JoinKind.FULL: (0, 1)}


@dataclass(frozen=True, slots=True)
class CostModel:
    """Costs of the EinSums of one graph on one engine.

    Attributes:
        graph: The EinSums.
        statistics: T and V of every tensor.
        evaluations: What is exact for every EinSum.
        constants: What elementary work takes.
        accounting: What work the engine does.
        memory: What a run may take; EinSums that would take more are priced in passes.
        resident_bytes: How large an operand may be that is kept in memory and read by index.
        orders: How the tuples of stored tensors lie, where that is known.
    """

    graph: EinGraph
    statistics: Mapping[str, Statistics]
    evaluations: Mapping[str, Evaluation]
    constants: CostConstants
    accounting: Accounting = _EMBEDDED
    memory: Memory = UNLIMITED
    resident_bytes: float = 0.0
    orders: Mapping[str, StoredOrder] = field(default_factory=dict)
    _sizes: dict[tuple[str, Choice], tuple[float, int]] = field(default_factory=dict, init=False, repr=False)
    _operands: dict[tuple[Reference, Choice, bool], Operand] = field(default_factory=dict, init=False, repr=False)
    _costs: dict[tuple[str, Choice], VertexCost] = field(default_factory=dict, init=False, repr=False)
    _readers: Counter[str] = field(default_factory=Counter, init=False, repr=False)

    def vertex_cost(self, einsum: EinSum, choice: Choice) -> VertexCost:
        """Cost of an EinSum whose operands come in the decompositions that the choice asks for."""
        known = self._costs.get((einsum.output.tensor, choice))
        if known is None:
            promoted = promoted_labels(einsum, choice)
            keys = tuple(promoted.intersection(operand.labels) for operand in einsum.operands)
            evaluation = self.evaluations[einsum.output.tensor]
            ways = [self._priced(einsum, choice, absence) for absence in evaluation.absences(keys)]
            if self.resident_bytes > 0:
                ways += self._ways_to_index(einsum, choice, evaluation)
            known = self._kept_to_memory(einsum, choice, ways)
            self._costs[einsum.output.tensor, choice] = known
        return known

    def _ways_to_index(self, einsum: EinSum, choice: Choice, evaluation: Evaluation) -> Iterator[VertexCost]:
        """Costs if an operand is kept in memory; what is absent in that one reads as the fill, whether it matters."""
        for index in indexable_operands(einsum, choice, self.graph, evaluation.computed_in):
            if self._resident(einsum, choice, index).size_bytes <= self.resident_bytes:
                dense = tuple(matters and other != index for other, matters in enumerate(evaluation.matters))
                yield self._priced(einsum, choice, Absence(JoinKind.INNER, dense), index)

    def _resident(self, einsum: EinSum, choice: Choice, index: int) -> ResidentSizes:
        operand = einsum.operands[index]
        tiles, shape = reference_tiles(einsum, operand, choice), self.graph.tensors[operand.tensor].shape
        tuples = math.prod(map(count_keys, tiles, shape))
        return ResidentSizes(self.tuples(operand.tensor, tiles), tuples * self.tuple_bytes(operand.tensor, tiles))

    def _is_in_order(self, einsum: EinSum, choice: Choice, index: int) -> bool:
        """Whether an operand's tuples come in the order of the groups that they go to, read as they are stored."""
        operand = einsum.operands[index]
        order = self.orders.get(operand.tensor)
        if order is None or order.tiles != reference_tiles(einsum, operand, choice):
            return False
        return any(operand.labels[axis] in einsum.output.labels for axis in order.ascending)

    def _priced(self, einsum: EinSum, choice: Choice, absence: Absence, index: int | None = None) -> VertexCost:
        """Costs of one way; `index` is the operand that is read by index, as if every tuple of it were there."""
        promoted = promoted_labels(einsum, choice)
        operands = [
            self._operand(operand, reference_tiles(einsum, operand, choice), dense or place == index)
            for place, (operand, dense) in enumerate(zip(einsum.operands, absence.dense, strict=True))
        ]
        sizes = ContractionSizes(
            joined=pairs_of(operands, absence.join) * self._crowding(einsum, choice, absence),
            matched=sum(operand.tuples for operand in operands) if share_keys(operands) else 0.0,
            groups=groups_of(einsum, operands, absence.join),
            is_grouped=not promoted <= frozenset(einsum.output.labels),
            has_keys=not promoted.isdisjoint(einsum.output.labels),
            operand_bytes=sum(operand.tuple_bytes for operand in operands),
            result_bytes=self.tuple_bytes(einsum.output.tensor, result_tiles(einsum, choice)),
            result_size=self._array_size(einsum.output, result_tiles(einsum, choice)),
            operations=self._operations(einsum, choice),
            is_matrix_product=self.is_matrix_product(einsum, choice),
            is_expression=not einsum.is_multilinear and any(tile != 1 for tile in choice),
            copied_bytes=0 if index is not None else self._copied_bytes(einsum, choice, absence, operands),
            is_streamed=self._is_read_once(einsum) and all(tile == 1 for tile in result_tiles(einsum, choice)),
        )
        join, aggregation = self.accounting.join(sizes), self.accounting.aggregation(sizes)
        created = [0.0 if place == index else each.tuples - each.present for place, each in enumerate(operands)]
        moved = sum(tuples * operand.tuple_bytes for tuples, operand in zip(created, operands, strict=True))
        moved += sizes.joined * sum(operands[index].tuple_bytes for index in _FILLED_IN[absence.join])
        filling = Work(sum(created), moved, operators=sum(tuples > 0 for tuples in created))
        if index is not None:
            is_scattered = sizes.is_grouped and not self._is_in_order(einsum, choice, 1 - index)
            join = indexed(join, sizes.joined * operands[index].tuple_bytes if is_scattered else 0.0)
            filling += self._resident(einsum, choice, index).keeping()
        seconds = (join + aggregation + filling).seconds(self.constants)
        return VertexCost(sizes.joined, sizes.aggregated, join, aggregation, filling, seconds, absence, index)

    def _is_read_once(self, einsum: EinSum) -> bool:
        """Whether one other EinSum alone reads a result."""
        name = einsum.output.tensor
        if not self._readers:
            self._readers.update(Counter(operand.tensor for each in self.graph.einsums for operand in each.operands))
        return self._readers[name] == 1 and name not in self.graph.outputs

    def _copied_bytes(self, einsum: EinSum, choice: Choice, absence: Absence, operands: list[Operand]) -> int:
        """Bytes of the array that a join copies for every pair: of two arrays it refers to the larger one alone."""
        tiles = [reference_tiles(einsum, operand, choice) for operand in einsum.operands]
        has_two_arrays = len(tiles) == 2 and all(any(tile != 1 for tile in each) for each in tiles)
        is_matching = absence.join == JoinKind.INNER and has_two_arrays and share_keys(operands)
        return min(operand.tuple_bytes for operand in operands) if is_matching else 0

    def _kept_to_memory(self, einsum: EinSum, choice: Choice, ways: list[VertexCost]) -> VertexCost:
        """The cheapest way that keeps to the memory, in passes where it must; where none does, what needs least."""
        cheapest = min(ways, key=lambda way: way.seconds)
        if self._shortage(einsum, choice, cheapest) == 0:
            return cheapest
        ways = [each for way in ways for each in (way, *self._ways_in_passes(einsum, choice, way))]
        return min(ways, key=lambda way: (self._shortage(einsum, choice, way), way.seconds))

    def _shortage(self, einsum: EinSum, choice: Choice, cost: VertexCost) -> float:
        """Bytes that are needed beyond the limit."""
        if self.memory.limit_bytes == math.inf:
            return 0.0
        needed = self._footprint(einsum, choice, cost).needed_bytes(self.memory, cost.passes)
        return max(needed - self.memory.limit_bytes, 0.0)

    def _ways_in_passes(self, einsum: EinSum, choice: Choice, cost: VertexCost) -> Iterator[VertexCost]:
        for passes in self._footprint(einsum, choice, cost).ways(self.memory):
            yield self._in_passes(einsum, choice, cost, passes)

    def _in_passes(self, einsum: EinSum, choice: Choice, cost: VertexCost, passes: Passes) -> VertexCost:
        """The cost in passes: operands that have the label are looked through, the others joined or kept again."""
        again = Work()
        for index, (operand, dense) in enumerate(zip(einsum.operands, cost.absence.dense, strict=True)):
            if index == cost.indexed:
                again += self._resident(einsum, choice, index).keeping()
                continue
            found = self._operand(operand, reference_tiles(einsum, operand, choice), dense)
            if found.tuples > found.present:  # made dense again
                again += Work(found.tuples, found.tuples * found.tuple_bytes, hashed_tuples=found.tuples, operators=1)
            size = 0 if passes.label in operand.labels else found.tuple_bytes
            again += Work(found.tuples, found.tuples * size * REREAD_BYTES)
        kept = Work(cost.tuples, cost.tuples * self.tuple_bytes(einsum.output.tensor, result_tiles(einsum, choice)))
        rereading = again.times(passes.count - 1) + kept
        seconds = cost.seconds + rereading.seconds(self.constants)
        return replace(cost, passes=passes, rereading=rereading, seconds=seconds)

    def single_pass_seconds(self, einsum: EinSum, choice: Choice) -> float:
        """What an EinSum would cost if memory had no end."""
        cost = self.vertex_cost(einsum, choice)
        return cost.seconds - cost.rereading.seconds(self.constants)

    def footprint(self, einsum: EinSum, choice: Choice) -> Footprint:
        """What an EinSum takes of the memory under a choice, in one pass."""
        return self._footprint(einsum, choice, self.vertex_cost(einsum, choice))

    def needed_bytes(self, einsum: EinSum, choice: Choice) -> float:
        """The memory limit that is enough for an EinSum under a choice, in the passes that are priced."""
        cost = self.vertex_cost(einsum, choice)
        return self._footprint(einsum, choice, cost).needed_bytes(self.memory, cost.passes)

    def _footprint(self, einsum: EinSum, choice: Choice, cost: VertexCost) -> Footprint:
        promoted = promoted_tiles(einsum, choice)
        keys = {label: count_keys(tile, self.graph.bound_of(einsum, label)) for label, tile in promoted.items()}
        is_grouped = not promoted.keys() <= frozenset(einsum.output.labels)
        # A sum of products adds to its groups in place, and has no result a row.
        returned = () if einsum.is_multilinear and is_grouped else (Arrays(keys, self._result_bytes(einsum, choice)),)
        read = tuple(
            Arrays(
                {label: keys[label] for label in keys if label in operand.labels},
                self.array_bytes(einsum, operand, choice),
            )
            for index, operand in enumerate(einsum.operands)
            if index != cost.indexed  # which is not copied
        )
        resident = 0 if cost.indexed is None else self._resident(einsum, choice, cost.indexed).size_bytes
        known = {label for operand in einsum.operands for label in operand.labels}
        kept = {label: keys[label] for label in einsum.output.labels if label in keys and label in known}
        state_bytes = self._result_bytes(einsum, choice) if is_grouped else 0
        if self._has_engine_states(einsum, choice):
            state_bytes = 0
        states = cost.tuples if cost.tuples < cost.joined / 2 else cost.joined  # T_agg stops at half of the pairs
        return Footprint(
            read, returned, states, cost.joined, state_bytes, resident, self.kept_bytes(einsum, choice), kept
        )

    def kept_bytes(self, einsum: EinSum, choice: Choice) -> float:
        """Bytes of the operands and the result of an EinSum, if all of them are in tables or hash tables."""
        references = (*einsum.operands, einsum.output)
        relations = {(each.tensor, reference_tiles(einsum, each, choice)) for each in references}
        sizes = (self._size(tensor, tiles) for tensor, tiles in relations)
        return sum(tuples * (size_bytes + STATE_OVERHEAD_BYTES) for tuples, size_bytes in sizes)

    def _has_engine_states(self, einsum: EinSum, choice: Choice) -> bool:
        """Whether the engine's own function folds numbers, in states that it can spill."""
        is_number = all(tile == 1 for tile in result_tiles(einsum, choice))
        dtype = self.evaluations[einsum.output.tensor].computed_in
        has_own = einsum.base_aggregate in AGGREGATES and bool(AGGREGATES[einsum.base_aggregate].sql)
        return is_number and not is_complex(dtype) and has_own

    def _result_bytes(self, einsum: EinSum, choice: Choice) -> int:
        return self.array_bytes(einsum, einsum.output, choice)

    def _crowding(self, einsum: EinSum, choice: Choice, absence: Absence) -> float:
        """How many times more tuples join than if entries were spread evenly.

        Tuples whose only key is the shared one are one an index, so that none of theirs crowd.
        """
        if absence.join != JoinKind.INNER:
            return 1.0
        tiles = dict(zip(einsum.labels, choice, strict=True))
        crowding = self.statistics[einsum.output.tensor].crowding
        crowded = (
            factor
            for label, factor in crowding.items()
            if tiles[label] == 1 and all(has_other_keys(operand, label, tiles) for operand in einsum.operands)
        )
        return math.prod(crowded)

    def repartition_work(self, tensor: str, before: Choice, after: Choice) -> Work:
        """Work of changing a tensor's decomposition from the tiles `before` to the tiles `after`, all at once."""
        if before == after:
            return Work()
        return self.accounting.repartition(self._repartition_sizes(tensor, before, after))

    def move(self, tensor: str, before: Choice, after: Choice, reads: int = 1) -> Move:
        """The cheapest change of a tensor's decomposition that keeps to the memory, to be read so often."""
        if before == after:
            return Move(Work())
        schema = self.graph.tensors[tensor]
        keys = {
            axis.name: count_keys(tile, axis.bound)
            for axis, tile in zip(schema.axes, after, strict=True)
            if tile != DEMOTED
        }
        sizes = self._repartition_sizes(tensor, before, after)
        vectors = {
            tiles: vector_bytes(self.tuples(tensor, tiles), array_bytes(schema, Decomposition(tiles)), self.memory)
            for tiles in (before, tuple(map(common_tile, before, after)), after)
            if any(tile != 1 for tile in tiles)  # vectors of numbers are small
        }
        taken = sum(vectors.values())
        work = self.accounting.repartition(sizes)
        moving = Moving(sizes, work, keys, taken, taken - vectors.get(before, 0))
        return moving.cheapest(self.memory, self.constants, reads)

    def _repartition_sizes(self, tensor: str, before: Choice, after: Choice) -> RepartitionSizes:
        between = tuple(map(common_tile, before, after))
        return RepartitionSizes(
            before=self.tuples(tensor, before),
            parts=self._parts(tensor, before, between),
            between=self.tuples(tensor, between),
            after=self.tuples(tensor, after),
            between_bytes=self.tuple_bytes(tensor, between),
            after_bytes=self.tuple_bytes(tensor, after),
            slices=between != before,
            stacks=between != after,
        )

    def sizes_in_repartitions(self, tensor: str, tiles: Choice) -> tuple[float, ...]:
        """All that the cost of a repartition follows from, of the tiles before, between or afterwards."""
        shape = self.graph.tensors[tensor].shape
        keys = [count_keys(tile, bound) for tile, bound in zip(tiles, shape, strict=True) if tile != DEMOTED]
        is_number = all(tile == 1 for tile in tiles)
        return *self._size(tensor, tiles), self._mean_size(tensor, tiles), max(keys, default=0), is_number

    def repartition_cost(self, tensor: str, before: Choice, after: Choice, reads: int = 1) -> float:
        """Seconds of changing a tensor's decomposition, to be read so often; without end where memory is not enough."""
        return self.move(tensor, before, after, reads).seconds(self.constants)

    def tuples(self, tensor: str, tiles: Choice) -> float:
        """Expected tuples of a tensor in a decomposition."""
        return self._size(tensor, tiles)[0]

    def tuple_bytes(self, tensor: str, tiles: Choice) -> int:
        """Bytes of one tuple of a tensor in a decomposition."""
        return self._size(tensor, tiles)[1]

    def _size(self, tensor: str, tiles: Choice) -> tuple[float, int]:
        """Tuples and bytes of each; kept, because every pair of decompositions of a tensor asks for them."""
        known = self._sizes.get((tensor, tiles))
        if known is None:
            size_bytes = tuple_bytes(self.graph.tensors[tensor], Decomposition(tiles))
            known = (self.statistics[tensor].tuples(tiles), size_bytes)
            self._sizes[tensor, tiles] = known
        return known

    def array_bytes(self, einsum: EinSum, reference: Reference, choice: Choice) -> int:
        """Bytes of the array in one tuple of an operand or of the result, stored or as it is computed with."""
        computed_in = self.evaluations[einsum.output.tensor].computed_in
        item_bytes = max(ITEM_BYTES[self.graph.tensors[reference.tensor].dtype], ITEM_BYTES[computed_in])
        return self._array_size(reference, reference_tiles(einsum, reference, choice)) * item_bytes

    def is_matrix_product(self, einsum: EinSum, choice: Choice) -> bool:
        """Whether the kernel of an EinSum is a matrix product, of a dtype that BLAS knows."""
        has_blas = self.evaluations[einsum.output.tensor].computed_in != "int64"
        return has_blas and is_matrix_product(einsum, choice)

    def _operations(self, einsum: EinSum, choice: Choice) -> float:
        """Floating-point operations of the kernel for one pair of tuples."""
        bounds = (self.graph.bound_of(einsum, label) for label in einsum.labels)
        operations = count_operations(einsum.join) + (einsum.aggregate is not None)
        return operations * math.prod(map(mean_extent, choice, bounds))

    def _array_size(self, reference: Reference, tiles: Choice) -> int:
        return Decomposition(tiles).array_size(self.graph.tensors[reference.tensor].shape)

    def _parts(self, tensor: str, before: Choice, between: Choice) -> float:
        """Tuples that arrays are cut into, those of nothing but the fill included; none where a bound is 0."""
        size = self._mean_size(tensor, between)
        return self.tuples(tensor, before) * self._mean_size(tensor, before) / size if size else 0.0

    def _mean_size(self, tensor: str, tiles: Choice) -> float:
        """Elements of an array, on average."""
        return math.prod(map(mean_extent, tiles, self.graph.tensors[tensor].shape))

    def _operand(self, operand: Reference, tiles: Choice, dense: bool) -> Operand:
        """An operand in the tiles of its axes; kept, because many choices have it in the same."""
        known = self._operands.get((operand, tiles, dense))
        if known is None:
            of_labels = dict(zip(operand.labels, tiles, strict=True))
            stored = by_label(operand.labels, self.statistics[operand.tensor])
            full = by_label(operand.labels, dense_statistics(self.graph.tensors[operand.tensor].shape))
            used = full if dense else stored
            size = self.tuple_bytes(operand.tensor, tiles)
            known = Operand(used.tuples(of_labels), stored.tuples(of_labels), used.distinct(of_labels), size)
            self._operands[operand, tiles, dense] = known
        return known

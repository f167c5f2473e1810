"""Decompose: the cost of an EinSum under a choice of promoted labels, and of repartitions between EinSums."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sparseeinsum.decompose.choice import (
    Choice,
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
from sparseeinsum.decompose.indexed_access import ResidentSizes, StoredOrder, indexable_operands, indexed
from sparseeinsum.decompose.joining import OperandSizes, joined_groups, joined_pairs, share_keys, skew_factor
from sparseeinsum.decompose.memory_footprint import (
    REREAD_BYTES,
    STATE_OVERHEAD_BYTES,
    UNLIMITED,
    Footprint,
    KernelArrays,
    Passes,
    RunMemory,
    vector_bytes,
)
from sparseeinsum.decompose.repartitions import Repartition, RepartitionOptions
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

# Operands for which a join fills in values where tuples are missing; the engine copies these operands for every row.
_FILLED_IN = {JoinKind.INNER: (), JoinKind.LEFT: (1,), JoinKind.RIGHT: (0,), JoinKind.FULL: (0, 1)}


@dataclass(frozen=True, slots=True)
class CostModel:
    """Costs of the EinSums of one graph on one engine.

    Attributes:
        graph: The EinSums.
        statistics: T and V of every tensor.
        evaluations: The exact evaluations of every EinSum.
        constants: Seconds of elementary work.
        accounting: Counts the work that the engine does.
        memory: The memory limit of a run; EinSums that would exceed it are priced in passes.
        resident_bytes: The largest size of an operand that may be kept in memory and read by index.
        orders: The order of the tuples of stored tensors, where it is known.
    """

    graph: EinGraph
    statistics: Mapping[str, Statistics]
    evaluations: Mapping[str, Evaluation]
    constants: CostConstants
    accounting: Accounting = _EMBEDDED
    memory: RunMemory = UNLIMITED
    resident_bytes: float = 0.0
    orders: Mapping[str, StoredOrder] = field(default_factory=dict)
    _known_sizes: dict[tuple[str, Choice], tuple[float, int]] = field(default_factory=dict, init=False, repr=False)
    _known_operands: dict[tuple[Reference, Choice, bool], OperandSizes] = field(
        default_factory=dict, init=False, repr=False
    )
    _known_costs: dict[tuple[str, Choice], VertexCost] = field(default_factory=dict, init=False, repr=False)
    _reader_counts: Counter[str] = field(default_factory=Counter, init=False, repr=False)

    def vertex_cost(self, einsum: EinSum, choice: Choice) -> VertexCost:
        """The cost of an EinSum whose operands are already in the decompositions that the choice requires."""
        cost = self._known_costs.get((einsum.output.tensor, choice))
        if cost is None:
            promoted = promoted_labels(einsum, choice)
            keys = tuple(promoted.intersection(operand.labels) for operand in einsum.operands)
            evaluation = self.evaluations[einsum.output.tensor]
            costs = [self._price(einsum, choice, absence) for absence in evaluation.absence_options(keys)]
            if self.resident_bytes > 0:
                costs += self._indexed_costs(einsum, choice, evaluation)
            cost = self._within_memory(einsum, choice, costs)
            self._known_costs[einsum.output.tensor, choice] = cost
        return cost

    def _indexed_costs(self, einsum: EinSum, choice: Choice, evaluation: Evaluation) -> Iterator[VertexCost]:
        """Costs if one operand is kept in memory and read by index, so that its absent entries read as the fill."""
        for index in indexable_operands(einsum, choice, self.graph, evaluation.computed_in):
            if self._resident(einsum, choice, index).size_bytes <= self.resident_bytes:
                dense = tuple(matters and other != index for other, matters in enumerate(evaluation.matters))
                yield self._price(einsum, choice, Absence(JoinKind.INNER, dense), index)

    def _resident(self, einsum: EinSum, choice: Choice, index: int) -> ResidentSizes:
        operand = einsum.operands[index]
        tiles, shape = reference_tiles(einsum, operand, choice), self.graph.tensors[operand.tensor].shape
        tuples = math.prod(map(count_keys, tiles, shape))
        return ResidentSizes(self.tuples(operand.tensor, tiles), tuples * self.tuple_bytes(operand.tensor, tiles))

    def _is_in_order(self, einsum: EinSum, choice: Choice, index: int) -> bool:
        """Whether an operand, read as it is stored, has its tuples in the order of the groups of the result."""
        operand = einsum.operands[index]
        order = self.orders.get(operand.tensor)
        if order is None or order.tiles != reference_tiles(einsum, operand, choice):
            return False
        return any(operand.labels[axis] in einsum.output.labels for axis in order.ascending)

    def _price(self, einsum: EinSum, choice: Choice, absence: Absence, index: int | None = None) -> VertexCost:
        """The cost if absent tuples are treated in one way.

        Args:
            einsum: The EinSum.
            choice: Tiles of its labels.
            absence: How absent tuples are treated.
            index: The number of the operand that is read by index, as if it had all tuples; None if there is none.
        """
        promoted = promoted_labels(einsum, choice)
        operands = [
            self._operand_sizes(operand, reference_tiles(einsum, operand, choice), dense or position == index)
            for position, (operand, dense) in enumerate(zip(einsum.operands, absence.dense, strict=True))
        ]
        skew = self.statistics[einsum.output.tensor].skew
        sizes = ContractionSizes(
            joined=joined_pairs(operands, absence.join) * skew_factor(einsum, choice, absence.join, skew),
            matched=sum(operand.tuples for operand in operands) if share_keys(operands) else 0.0,
            groups=joined_groups(einsum, operands, absence.join),
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
        added = [
            0.0 if position == index else operand.tuples - operand.present for position, operand in enumerate(operands)
        ]
        bytes_moved = sum(tuples * operand.tuple_bytes for tuples, operand in zip(added, operands, strict=True))
        bytes_moved += sizes.joined * sum(operands[index].tuple_bytes for index in _FILLED_IN[absence.join])
        filling = Work(sum(added), bytes_moved, operators=sum(tuples > 0 for tuples in added))
        if index is not None:
            is_scattered = sizes.is_grouped and not self._is_in_order(einsum, choice, 1 - index)
            join = indexed(join, sizes.joined * operands[index].tuple_bytes if is_scattered else 0.0)
            filling += self._resident(einsum, choice, index).keeping()
        seconds = (join + aggregation + filling).seconds(self.constants)
        return VertexCost(sizes.joined, sizes.aggregated, join, aggregation, filling, seconds, absence, index)

    def _is_read_once(self, einsum: EinSum) -> bool:
        """Whether exactly one other EinSum reads the result, and no output is made of it."""
        name = einsum.output.tensor
        if not self._reader_counts:
            self._reader_counts.update(operand.tensor for reader in self.graph.einsums for operand in reader.operands)
        return self._reader_counts[name] == 1 and name not in self.graph.outputs

    def _copied_bytes(self, einsum: EinSum, choice: Choice, absence: Absence, operands: list[OperandSizes]) -> int:
        """Bytes of the array that a join copies for every pair: of two arrays, it refers only to the larger one."""
        tilings = [reference_tiles(einsum, operand, choice) for operand in einsum.operands]
        has_two_arrays = len(tilings) == 2 and all(any(tile != 1 for tile in tiles) for tiles in tilings)
        is_matching = absence.join == JoinKind.INNER and has_two_arrays and share_keys(operands)
        return min(operand.tuple_bytes for operand in operands) if is_matching else 0

    def _within_memory(self, einsum: EinSum, choice: Choice, costs: list[VertexCost]) -> VertexCost:
        """The cheapest cost within the memory limit, in passes if necessary; if there is none, that of least memory."""
        cheapest = min(costs, key=lambda cost: cost.seconds)
        if self._shortage(einsum, choice, cheapest) == 0:
            return cheapest
        options = [option for cost in costs for option in (cost, *self._costs_in_passes(einsum, choice, cost))]
        return min(options, key=lambda option: (self._shortage(einsum, choice, option), option.seconds))

    def _shortage(self, einsum: EinSum, choice: Choice, cost: VertexCost) -> float:
        """Bytes that are needed in excess of the memory limit."""
        if self.memory.limit_bytes == math.inf:
            return 0.0
        needed = self._footprint(einsum, choice, cost).needed_bytes(self.memory, cost.passes)
        return max(needed - self.memory.limit_bytes, 0.0)

    def _costs_in_passes(self, einsum: EinSum, choice: Choice, cost: VertexCost) -> Iterator[VertexCost]:
        for passes in self._footprint(einsum, choice, cost).possible_passes(self.memory):
            yield self._in_passes(einsum, choice, cost, passes)

    def _in_passes(self, einsum: EinSum, choice: Choice, cost: VertexCost, passes: Passes) -> VertexCost:
        """The cost in passes: each scans operands that have the label of the passes, and joins or keeps the others."""
        repeated = Work()
        for index, (operand, dense) in enumerate(zip(einsum.operands, cost.absence.dense, strict=True)):
            if index == cost.indexed:
                repeated += self._resident(einsum, choice, index).keeping()
                continue
            sizes = self._operand_sizes(operand, reference_tiles(einsum, operand, choice), dense)
            if sizes.tuples > sizes.present:  # made dense again
                repeated += Work(
                    sizes.tuples, sizes.tuples * sizes.tuple_bytes, hashed_tuples=sizes.tuples, operators=1
                )
            size = 0 if passes.label in operand.labels else sizes.tuple_bytes
            repeated += Work(sizes.tuples, sizes.tuples * size * REREAD_BYTES)
        written = Work(cost.tuples, cost.tuples * self.tuple_bytes(einsum.output.tensor, result_tiles(einsum, choice)))
        rereading = repeated.times(passes.count - 1) + written
        seconds = cost.seconds + rereading.seconds(self.constants)
        return replace(cost, passes=passes, rereading=rereading, seconds=seconds)

    def single_pass_seconds(self, einsum: EinSum, choice: Choice) -> float:
        """Seconds of an EinSum without the cost of passes, as if memory were unlimited."""
        cost = self.vertex_cost(einsum, choice)
        return cost.seconds - cost.rereading.seconds(self.constants)

    def footprint(self, einsum: EinSum, choice: Choice) -> Footprint:
        """The memory that an EinSum takes under a choice, in one pass."""
        return self._footprint(einsum, choice, self.vertex_cost(einsum, choice))

    def needed_bytes(self, einsum: EinSum, choice: Choice) -> float:
        """The memory limit that is enough for an EinSum under a choice, in the passes of its `vertex_cost`."""
        cost = self.vertex_cost(einsum, choice)
        return self._footprint(einsum, choice, cost).needed_bytes(self.memory, cost.passes)

    def _footprint(self, einsum: EinSum, choice: Choice, cost: VertexCost) -> Footprint:
        """The memory that an EinSum takes in one pass, with absent tuples treated as in `cost`."""
        promoted = promoted_tiles(einsum, choice)
        keys = {label: count_keys(tile, self.graph.bound_of(einsum, label)) for label, tile in promoted.items()}
        is_grouped = not promoted.keys() <= frozenset(einsum.output.labels)
        # A sum of products adds to its groups in place, and has no result a row.
        returned = (
            () if einsum.is_multilinear and is_grouped else (KernelArrays(keys, self._result_bytes(einsum, choice)),)
        )
        read = tuple(
            KernelArrays(
                {label: keys[label] for label in keys if label in operand.labels},
                self.array_bytes(einsum, operand, choice),
            )
            for index, operand in enumerate(einsum.operands)
            if index != cost.indexed  # that one is not copied into vectors
        )
        resident_bytes = 0 if cost.indexed is None else self._resident(einsum, choice, cost.indexed).size_bytes
        read_labels = {label for operand in einsum.operands for label in operand.labels}
        result_keys = {label: keys[label] for label in einsum.output.labels if label in keys and label in read_labels}
        state_bytes = self._result_bytes(einsum, choice) if is_grouped else 0
        if self._has_engine_states(einsum, choice):
            state_bytes = 0
        states = cost.tuples if cost.tuples < cost.joined / 2 else cost.joined  # T_agg stops at half of the pairs
        return Footprint(
            read,
            returned,
            states,
            cost.joined,
            state_bytes,
            resident_bytes,
            self.kept_bytes(einsum, choice),
            result_keys,
        )

    def kept_bytes(self, einsum: EinSum, choice: Choice) -> float:
        """Bytes of the operands and the result of an EinSum, if all of them are in tables or hash tables."""
        relations = {
            (reference.tensor, reference_tiles(einsum, reference, choice))
            for reference in (*einsum.operands, einsum.output)
        }
        sizes = (self._size(tensor, tiles) for tensor, tiles in relations)
        return sum(tuples * (size_bytes + STATE_OVERHEAD_BYTES) for tuples, size_bytes in sizes)

    def _has_engine_states(self, einsum: EinSum, choice: Choice) -> bool:
        """Whether a SQL aggregate of the engine computes the result, with states that the engine can spill."""
        is_number = all(tile == 1 for tile in result_tiles(einsum, choice))
        dtype = self.evaluations[einsum.output.tensor].computed_in
        has_sql_aggregate = einsum.base_aggregate in AGGREGATES and bool(AGGREGATES[einsum.base_aggregate].sql)
        return is_number and not is_complex(dtype) and has_sql_aggregate

    def _result_bytes(self, einsum: EinSum, choice: Choice) -> int:
        return self.array_bytes(einsum, einsum.output, choice)

    def repartition_work(self, tensor: str, before: Choice, after: Choice) -> Work:
        """Work of a repartition from the tiles `before` to the tiles `after`, without passes."""
        if before == after:
            return Work()
        return self.accounting.repartition(self._repartition_sizes(tensor, before, after))

    def repartition(self, tensor: str, before: Choice, after: Choice, reads: int = 1) -> Repartition:
        """The cheapest repartition of a tensor within the memory limit, if its result is read `reads` times."""
        if before == after:
            return Repartition(Work())
        schema = self.graph.tensors[tensor]
        keys = {
            axis.name: count_keys(tile, axis.bound)
            for axis, tile in zip(schema.axes, after, strict=True)
            if tile != DEMOTED
        }
        sizes = self._repartition_sizes(tensor, before, after)
        bytes_by_tiles = {
            tiles: vector_bytes(self.tuples(tensor, tiles), array_bytes(schema, Decomposition(tiles)), self.memory)
            for tiles in (before, tuple(map(common_tile, before, after)), after)
            if any(tile != 1 for tile in tiles)  # vectors of numbers are small
        }
        total = sum(bytes_by_tiles.values())
        work = self.accounting.repartition(sizes)
        options = RepartitionOptions(sizes, work, keys, total, total - bytes_by_tiles.get(before, 0))
        return options.cheapest(self.memory, self.constants, reads)

    def _repartition_sizes(self, tensor: str, before: Choice, after: Choice) -> RepartitionSizes:
        between = tuple(map(common_tile, before, after))
        return RepartitionSizes(
            before=self.tuples(tensor, before),
            parts=self._cut_parts(tensor, before, between),
            between=self.tuples(tensor, between),
            after=self.tuples(tensor, after),
            between_bytes=self.tuple_bytes(tensor, between),
            after_bytes=self.tuple_bytes(tensor, after),
            slices=between != before,
            stacks=between != after,
        )

    def repartition_price_key(self, tensor: str, tiles: Choice) -> tuple[float, ...]:
        """What the cost of a repartition depends on, of the tiles before, between or afterwards."""
        shape = self.graph.tensors[tensor].shape
        keys = [count_keys(tile, bound) for tile, bound in zip(tiles, shape, strict=True) if tile != DEMOTED]
        is_number = all(tile == 1 for tile in tiles)
        return *self._size(tensor, tiles), self._mean_size(tensor, tiles), max(keys, default=0), is_number

    def repartition_cost(self, tensor: str, before: Choice, after: Choice, reads: int = 1) -> float:
        """Seconds of a repartition whose result is read `reads` times; infinite if the memory limit is not enough."""
        return self.repartition(tensor, before, after, reads).seconds(self.constants)

    def tuples(self, tensor: str, tiles: Choice) -> float:
        """Expected tuples of a tensor in a decomposition."""
        return self._size(tensor, tiles)[0]

    def tuple_bytes(self, tensor: str, tiles: Choice) -> int:
        """Bytes of one tuple of a tensor in a decomposition."""
        return self._size(tensor, tiles)[1]

    def _size(self, tensor: str, tiles: Choice) -> tuple[float, int]:
        """Tuples and bytes per tuple; cached, because every pair of decompositions of a tensor asks for them."""
        size = self._known_sizes.get((tensor, tiles))
        if size is None:
            size_bytes = tuple_bytes(self.graph.tensors[tensor], Decomposition(tiles))
            size = (self.statistics[tensor].tuples(tiles), size_bytes)
            self._known_sizes[tensor, tiles] = size
        return size

    def array_bytes(self, einsum: EinSum, reference: Reference, choice: Choice) -> int:
        """Bytes of the array in one tuple of an operand or of the result, as stored or as computed with, if larger."""
        computed_in = self.evaluations[einsum.output.tensor].computed_in
        item_bytes = max(ITEM_BYTES[self.graph.tensors[reference.tensor].dtype], ITEM_BYTES[computed_in])
        return self._array_size(reference, reference_tiles(einsum, reference, choice)) * item_bytes

    def is_matrix_product(self, einsum: EinSum, choice: Choice) -> bool:
        """Whether the kernel of an EinSum is a matrix product, in a dtype that BLAS supports."""
        has_blas = self.evaluations[einsum.output.tensor].computed_in != "int64"
        return has_blas and is_matrix_product(einsum, choice)

    def _operations(self, einsum: EinSum, choice: Choice) -> float:
        """Floating-point operations of the kernel for one pair of tuples."""
        bounds = (self.graph.bound_of(einsum, label) for label in einsum.labels)
        operations = count_operations(einsum.join) + (einsum.aggregate is not None)
        return operations * math.prod(map(mean_extent, choice, bounds))

    def _array_size(self, reference: Reference, tiles: Choice) -> int:
        return Decomposition(tiles).array_size(self.graph.tensors[reference.tensor].shape)

    def _cut_parts(self, tensor: str, before: Choice, between: Choice) -> float:
        """Tuples that arrays are cut into, including those that hold only the fill; none if a bound is 0."""
        size = self._mean_size(tensor, between)
        return self.tuples(tensor, before) * self._mean_size(tensor, before) / size if size else 0.0

    def _mean_size(self, tensor: str, tiles: Choice) -> float:
        """The mean number of elements of an array."""
        return math.prod(map(mean_extent, tiles, self.graph.tensors[tensor].shape))

    def _operand_sizes(self, operand: Reference, tiles: Choice, dense: bool) -> OperandSizes:
        """Sizes of an operand in the tiles of its axes; cached, because many choices give it the same tiles."""
        sizes = self._known_operands.get((operand, tiles, dense))
        if sizes is None:
            tiles_by_label = dict(zip(operand.labels, tiles, strict=True))
            stored = by_label(operand.labels, self.statistics[operand.tensor])
            dense_sizes = by_label(operand.labels, dense_statistics(self.graph.tensors[operand.tensor].shape))
            joined = dense_sizes if dense else stored
            size = self.tuple_bytes(operand.tensor, tiles)
            sizes = OperandSizes(
                joined.tuples(tiles_by_label), stored.tuples(tiles_by_label), joined.distinct(tiles_by_label), size
            )
            self._known_operands[operand, tiles, dense] = sizes
        return sizes

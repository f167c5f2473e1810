"""Decompose: the cost of an EinSum under a choice of promoted labels, and of repartitions between EinSums."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.compressed_access import (
    CompressedSizes,
    RowOrder,
    can_compress,
    count_indices,
    in_row_products,
    in_rows,
    row_products,
)
from sparseeinsum.decompose.cost import (
    Accounting,
    ContractionSizes,
    CostConstants,
    EmbeddedAccounting,
    RepartitionSizes,
    Work,
)
from sparseeinsum.decompose.decomposed_einsum import DecomposedEinSum, Kernel, is_of_numbers
from sparseeinsum.decompose.indexed_access import ResidentSizes, StoredOrder, indexable_operands, indexed
from sparseeinsum.decompose.joining import (
    OperandSizes,
    TensorSizes,
    copied_bytes,
    joined_groups,
    joined_pairs,
    share_keys,
    skew_factor,
)
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
    _known_sizes: dict[tuple[str, Choice], TensorSizes] = field(default_factory=dict, init=False, repr=False)
    _known_kernels: dict[str, Kernel] = field(default_factory=dict, init=False, repr=False)
    _known_operands: dict[tuple[Reference, Choice, bool], OperandSizes] = field(
        default_factory=dict, init=False, repr=False
    )
    _known_costs: dict[tuple[str, Choice], VertexCost] = field(default_factory=dict, init=False, repr=False)
    _reader_counts: Counter[str] = field(default_factory=Counter, init=False, repr=False)

    def vertex_cost(self, einsum: EinSum, choice: Choice) -> VertexCost:
        """The cost of an EinSum whose operands are already in the decompositions that the choice requires."""
        cost = self._known_costs.get((einsum.output.tensor, choice))
        if cost is None:
            decomposed = DecomposedEinSum.of(einsum, choice)
            keys = tuple([decomposed.promoted.intersection(operand.labels) for operand in einsum.operands])
            evaluation = self.evaluations[decomposed.name]
            costs = [self._price(decomposed, absence) for absence in evaluation.absence_options(keys)]
            if self.resident_bytes > 0:
                costs += [*self._row_product_costs(decomposed, costs), *self._indexed_costs(decomposed, evaluation)]
            cost = self._within_memory(decomposed, costs)
            self._known_costs[decomposed.name, choice] = cost
        return cost

    def _indexed_costs(self, decomposed: DecomposedEinSum, evaluation: Evaluation) -> Iterator[VertexCost]:
        """Costs if one operand is kept in memory and read by index, so that its absent entries read as the fill."""
        for index in indexable_operands(decomposed, self.graph, evaluation.computed_in):
            if self._resident(decomposed, index).size_bytes <= self.resident_bytes:
                dense = tuple([matters and other != index for other, matters in enumerate(evaluation.matters)])
                cost = self._price(decomposed, Absence(JoinKind.INNER, dense), index)
                yield cost
                if can_compress(decomposed, index, self.graph, evaluation):
                    yield from self._compressed_costs(decomposed, cost)

    def _compressed_costs(self, decomposed: DecomposedEinSum, joined: VertexCost) -> Iterator[VertexCost]:
        """The cost if one operand is kept in memory, and the other one is ordered by row, where that fits in."""
        assert joined.indexed is not None
        cost = replace(joined, compressed=(1 - joined.indexed,))
        if self._memory_bytes(decomposed, cost) <= self.resident_bytes:
            (sizes,) = self._compressed(decomposed, cost)
            yield self._in_rows(decomposed, cost, in_rows(cost.join, sizes))

    def _row_product_costs(self, decomposed: DecomposedEinSum, costs: list[VertexCost]) -> Iterator[VertexCost]:
        """Costs if both operands are ordered by row, and multiplied row by row, where that fits into memory."""
        for compressed in row_products(decomposed, self.graph, self.evaluations[decomposed.name]):
            for cost in (replace(cost, compressed=compressed) for cost in costs):
                if cost.absence.join == JoinKind.INNER and self._memory_bytes(decomposed, cost) <= self.resident_bytes:
                    work = in_row_products(cost.joined, cost.tuples, self._compressed(decomposed, cost))
                    yield self._in_rows(decomposed, cost, work)

    def _in_rows(self, decomposed: DecomposedEinSum, cost: VertexCost, join: Work) -> VertexCost:
        """The cost if groups are computed at once, by a join that takes that work."""
        result = self._sizes(decomposed.name, decomposed.result)
        written = Work(bytes_moved=cost.tuples * result.tuple_bytes)
        seconds = sum([work.seconds(self.constants) for work in (join, written, cost.filling)])
        return replace(cost, join=join, aggregation=written, seconds=seconds)

    def _compressed(self, decomposed: DecomposedEinSum, cost: VertexCost) -> Iterator[CompressedSizes]:
        """Sizes of the operands that are ordered by row, in the order of `cost`."""
        einsum = decomposed.einsum
        for index in cost.compressed:
            order = RowOrder.of(einsum, decomposed.promoted, cost.compressed, index)
            operand, dense = einsum.operands[index], cost.absence.dense[index]
            sizes = self._operand_sizes(operand, decomposed.operands[index], dense)
            yield CompressedSizes(count_indices(order.rows, einsum, self.graph), sizes.tuples)

    def _memory_bytes(self, decomposed: DecomposedEinSum, cost: VertexCost) -> int:
        """Bytes of the operands of an EinSum that a statement keeps in memory."""
        compressed = sum([sizes.size_bytes for sizes in self._compressed(decomposed, cost)])
        resident = 0 if cost.indexed is None else self._resident(decomposed, cost.indexed).size_bytes
        return resident + math.ceil(compressed)

    def _resident(self, decomposed: DecomposedEinSum, index: int) -> ResidentSizes:
        name, tiles = decomposed.einsum.operands[index].tensor, decomposed.operands[index]
        tuples = math.prod(map(count_keys, tiles, self.graph.tensors[name].shape))
        return ResidentSizes(self.tuples(name, tiles), tuples * self.tuple_bytes(name, tiles))

    def _is_in_order(self, decomposed: DecomposedEinSum, index: int) -> bool:
        """Whether an operand, read as it is stored, has its tuples in the order of the groups of the result."""
        operand = decomposed.einsum.operands[index]
        order = self.orders.get(operand.tensor)
        if order is None or order.tiles != decomposed.operands[index]:
            return False
        return any(operand.labels[axis] in decomposed.einsum.output.labels for axis in order.ascending)

    def _price(self, decomposed: DecomposedEinSum, absence: Absence, index: int | None = None) -> VertexCost:
        """The cost if absent tuples are treated in one way.

        Args:
            decomposed: The EinSum under a choice.
            absence: How absent tuples are treated.
            index: The number of the operand that is read by index, as if it had all tuples; None if there is none.
        """
        einsum = decomposed.einsum
        operands = [
            self._operand_sizes(operand, tiles, dense or position == index)
            for position, (operand, tiles, dense) in enumerate(
                zip(einsum.operands, decomposed.operands, absence.dense, strict=True)
            )
        ]
        sizes = self._contraction_sizes(decomposed, operands, absence, index)
        join, aggregation = self.accounting.join(sizes), self.accounting.aggregation(sizes)
        added = [
            0.0 if position == index else operand.tuples - operand.present for position, operand in enumerate(operands)
        ]
        bytes_moved = sum([tuples * operand.tuple_bytes for tuples, operand in zip(added, operands, strict=True)])
        bytes_moved += sizes.joined * sum([operands[index].tuple_bytes for index in _FILLED_IN[absence.join]])
        filling = Work(sum(added), bytes_moved, operators=sum([tuples > 0 for tuples in added]))
        if index is not None:
            is_scattered = sizes.is_grouped and not self._is_in_order(decomposed, 1 - index)
            join = indexed(join, sizes.joined * operands[index].tuple_bytes if is_scattered else 0.0)
            filling += self._resident(decomposed, index).keeping()
        seconds = sum([work.seconds(self.constants) for work in (join, aggregation, filling)])
        return VertexCost(sizes.joined, sizes.aggregated, join, aggregation, filling, seconds, absence, index)

    def _contraction_sizes(
        self, decomposed: DecomposedEinSum, operands: list[OperandSizes], absence: Absence, index: int | None
    ) -> ContractionSizes:
        """Sizes of an EinSum under a choice; the arguments are those of `_price`, and the sizes of the operands."""
        einsum, kernel = decomposed.einsum, self._kernel(decomposed.einsum)
        result = self._sizes(decomposed.name, decomposed.result)
        has_shared_keys = share_keys(operands)
        skew = self.statistics[decomposed.name].skew
        joined = joined_pairs(operands, absence.join)
        return ContractionSizes(
            joined=joined * skew_factor(decomposed, absence.join, skew) if skew else joined,
            matched=sum([operand.tuples for operand in operands]) if has_shared_keys else 0.0,
            groups=joined_groups(einsum, operands, absence.join),
            is_grouped=decomposed.is_grouped,
            has_keys=not decomposed.promoted.isdisjoint(einsum.output.labels),
            operand_bytes=sum([operand.tuple_bytes for operand in operands]),
            result_bytes=result.tuple_bytes,
            result_size=result.elements,
            operations=kernel.operations * math.prod(map(mean_extent, decomposed.choice, kernel.bounds)),
            is_matrix_product=kernel.is_matrix_product(decomposed),
            is_expression=not kernel.is_multilinear and not is_of_numbers(decomposed.choice),
            copied_bytes=0 if index is not None else copied_bytes(decomposed, absence.join, operands),
            is_streamed=decomposed.has_number_result and self._is_read_once(einsum),
        )

    def _kernel(self, einsum: EinSum) -> Kernel:
        """What the costs of all choices of an EinSum need; cached."""
        name = einsum.output.tensor
        kernel = self._known_kernels.get(name)
        if kernel is None:
            kernel = Kernel.of(einsum, self.graph, self.evaluations[name].computed_in)
            self._known_kernels[name] = kernel
        return kernel

    def _is_read_once(self, einsum: EinSum) -> bool:
        """Whether exactly one other EinSum reads the result, and no output is made of it."""
        name = einsum.output.tensor
        if not self._reader_counts:
            self._reader_counts.update(operand.tensor for reader in self.graph.einsums for operand in reader.operands)
        return self._reader_counts[name] == 1 and name not in self.graph.outputs

    def _within_memory(self, decomposed: DecomposedEinSum, costs: list[VertexCost]) -> VertexCost:
        """The cheapest cost within the memory limit, in passes if necessary; if there is none, that of least memory."""
        cheapest = min(costs, key=lambda cost: cost.seconds)
        if self._shortage(decomposed, cheapest) == 0:
            return cheapest
        options = [option for cost in costs for option in (cost, *self._costs_in_passes(decomposed, cost))]
        shortages = [self._shortage(decomposed, option) for option in options]
        least, best = min(zip(shortages, options, strict=True), key=lambda pair: (pair[0], pair[1].seconds))
        return replace(best, is_within_memory=least == 0)

    def _shortage(self, decomposed: DecomposedEinSum, cost: VertexCost) -> float:
        """Bytes that are needed in excess of the memory limit."""
        if self.memory.limit_bytes == math.inf:
            return 0.0
        needed = self._footprint(decomposed, cost).needed_bytes(self.memory, cost.passes)
        return max(needed - self.memory.limit_bytes, 0.0)

    def _costs_in_passes(self, decomposed: DecomposedEinSum, cost: VertexCost) -> Iterator[VertexCost]:
        for passes in self._footprint(decomposed, cost).possible_passes(self.memory):
            yield self._in_passes(decomposed, cost, passes)

    def _in_passes(self, decomposed: DecomposedEinSum, cost: VertexCost, passes: Passes) -> VertexCost:
        """The cost in passes: each scans operands that have the label of the passes, and joins or keeps the others."""
        repeated = Work()
        triples = zip(decomposed.einsum.operands, decomposed.operands, cost.absence.dense, strict=True)
        for index, (operand, tiles, dense) in enumerate(triples):
            if index == cost.indexed:
                repeated += self._resident(decomposed, index).keeping()
                continue
            sizes = self._operand_sizes(operand, tiles, dense)
            if sizes.tuples > sizes.present:  # made dense again
                repeated += Work(
                    sizes.tuples, sizes.tuples * sizes.tuple_bytes, hashed_tuples=sizes.tuples, operators=1
                )
            size = 0 if passes.label in operand.labels else sizes.tuple_bytes
            repeated += Work(sizes.tuples, sizes.tuples * size * REREAD_BYTES)
        written = Work(cost.tuples, cost.tuples * self.tuple_bytes(decomposed.name, decomposed.result))
        rereading = repeated.times(passes.count - 1) + written
        seconds = cost.seconds + rereading.seconds(self.constants)
        return replace(cost, passes=passes, rereading=rereading, seconds=seconds)

    def single_pass_seconds(self, einsum: EinSum, choice: Choice) -> float:
        """Seconds of an EinSum without the cost of passes, as if memory were unlimited."""
        cost = self.vertex_cost(einsum, choice)
        return cost.seconds - cost.rereading.seconds(self.constants)

    def footprint(self, einsum: EinSum, choice: Choice) -> Footprint:
        """The memory that an EinSum takes under a choice, in one pass."""
        return self._footprint(DecomposedEinSum.of(einsum, choice), self.vertex_cost(einsum, choice))

    def needed_bytes(self, einsum: EinSum, choice: Choice) -> float:
        """The memory limit that is enough for an EinSum under a choice, in the passes of its `vertex_cost`."""
        return self.footprint(einsum, choice).needed_bytes(self.memory, self.vertex_cost(einsum, choice).passes)

    def _footprint(self, decomposed: DecomposedEinSum, cost: VertexCost) -> Footprint:
        """The memory that an EinSum takes in one pass, with absent tuples treated as in `cost`."""
        einsum = decomposed.einsum
        bounds = zip(einsum.labels, decomposed.choice, self._kernel(einsum).bounds, strict=True)
        keys = {label: count_keys(tile, bound) for label, tile, bound in bounds if tile != DEMOTED}
        item_bytes = ITEM_BYTES[self.evaluations[decomposed.name].computed_in]
        result_bytes = self._array_bytes(decomposed.name, decomposed.result, item_bytes)
        # A sum of products adds to its groups in place, and has no result a row.
        adds_in_place = self._kernel(einsum).is_multilinear and decomposed.is_grouped and not cost.compressed
        read = tuple(
            [
                KernelArrays(
                    {label: keys[label] for label in operand.labels if label in keys},
                    self._array_bytes(operand.tensor, tiles, item_bytes),
                )
                for index, (operand, tiles) in enumerate(zip(einsum.operands, decomposed.operands, strict=True))
                if index != cost.indexed  # that one is not copied into vectors
            ]
        )
        read_labels = {label for operand in einsum.operands for label in operand.labels}
        has_states = decomposed.is_grouped and not self._has_engine_states(decomposed) and not cost.compressed
        return Footprint(
            read,
            returned=() if adds_in_place else (KernelArrays(keys, result_bytes),),
            states=cost.tuples if cost.tuples < cost.joined / 2 else cost.joined,  # T_agg stops at half of the pairs
            all_states=cost.joined,
            state_bytes=result_bytes if has_states else 0,
            resident_bytes=self._memory_bytes(decomposed, cost),
            kept_bytes=self._kept_bytes(decomposed),
            keys={label: keys[label] for label in einsum.output.labels if label in keys and label in read_labels},
        )

    def _array_bytes(self, tensor: str, tiles: Choice, computed_item_bytes: int) -> int:
        """Bytes of the array in one tuple of a tensor, as stored or as computed with, if larger."""
        item_bytes = max(ITEM_BYTES[self.graph.tensors[tensor].dtype], computed_item_bytes)
        return self._sizes(tensor, tiles).elements * item_bytes

    def _kept_bytes(self, decomposed: DecomposedEinSum) -> float:
        """Bytes of the operands and the result of an EinSum, if all of them are in tables or hash tables."""
        read = zip([operand.tensor for operand in decomposed.einsum.operands], decomposed.operands, strict=True)
        relations = {*read, (decomposed.name, decomposed.result)}
        sizes = [self._sizes(tensor, tiles) for tensor, tiles in relations]
        return sum([size.tuples * (size.tuple_bytes + STATE_OVERHEAD_BYTES) for size in sizes])

    def _has_engine_states(self, decomposed: DecomposedEinSum) -> bool:
        """Whether a SQL aggregate of the engine computes the result, with states that the engine can spill."""
        dtype, aggregate = self.evaluations[decomposed.name].computed_in, decomposed.einsum.base_aggregate
        has_sql_aggregate = aggregate in AGGREGATES and bool(AGGREGATES[aggregate].sql)
        return decomposed.has_number_result and not is_complex(dtype) and has_sql_aggregate

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
        sizes = self._sizes(tensor, tiles)
        return sizes.tuples, sizes.tuple_bytes, self._mean_size(tensor, tiles), max(keys, default=0), is_number

    def repartition_cost(self, tensor: str, before: Choice, after: Choice, reads: int = 1) -> float:
        """Seconds of a repartition whose result is read `reads` times; infinite if the memory limit is not enough."""
        return self.repartition(tensor, before, after, reads).seconds(self.constants)

    def tuples(self, tensor: str, tiles: Choice) -> float:
        """Expected tuples of a tensor in a decomposition."""
        return self._sizes(tensor, tiles).tuples

    def tuple_bytes(self, tensor: str, tiles: Choice) -> int:
        """Bytes of one tuple of a tensor in a decomposition."""
        return self._sizes(tensor, tiles).tuple_bytes

    def _sizes(self, name: str, tiles: Choice) -> TensorSizes:
        """Sizes of a tensor in a decomposition; cached, because every pair of its decompositions asks for them."""
        sizes = self._known_sizes.get((name, tiles))
        if sizes is None:
            tensor, decomposition = self.graph.tensors[name], Decomposition(tiles)
            elements = decomposition.array_size(tensor.shape)
            size_bytes = tuple_bytes(tensor, decomposition)
            sizes = TensorSizes(self.statistics[name].tuples(tiles), size_bytes, elements)
            self._known_sizes[name, tiles] = sizes
        return sizes

    def is_matrix_product(self, einsum: EinSum, choice: Choice) -> bool:
        """Whether the kernel of an EinSum is a matrix product, in a dtype that BLAS supports."""
        return self._kernel(einsum).is_matrix_product(DecomposedEinSum.of(einsum, choice))

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
            joined = stored = by_label(operand.labels, self.statistics[operand.tensor])
            present = stored.tuples(tiles_by_label)
            if dense:
                joined = by_label(operand.labels, dense_statistics(self.graph.tensors[operand.tensor].shape))
            tuples = joined.tuples(tiles_by_label) if dense else present
            size = self.tuple_bytes(operand.tensor, tiles)
            sizes = OperandSizes(tuples, present, joined.distinct(tiles_by_label), size)
            self._known_operands[operand, tiles, dense] = sizes
        return sizes

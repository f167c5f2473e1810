"""Decompose: the memory that the EinSums of a graph take for arrays, for states, and for operands kept in memory."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.compressed_access import (
    AS_COMPUTED,
    IN_ARRAYS,
    OF_HANDLES,
    OF_VALUES,
    CompressedSizes,
    OrderingPrices,
    ProductPrices,
    RowOrder,
    count_indices,
)
from sparseeinsum.decompose.decomposed_einsum import DecomposedEinSum, KernelFacts
from sparseeinsum.decompose.graph_sizes import GraphSizes
from sparseeinsum.decompose.indexed_access import ResidentSizes
from sparseeinsum.decompose.memory_footprint import STATE_OVERHEAD_BYTES, Footprint, KernelArrays
from sparseeinsum.decompose.staying_operands import NOTHING_STAYS, StayingOperands
from sparseeinsum.decompose.vertex_costs import VertexCost
from sparseeinsum.language.eingraph import EinGraph, EinSum, Reference
from sparseeinsum.language.tensors import DEMOTED, count_keys
from sparseeinsum.operators.aggregates import AGGREGATES
from sparseeinsum.operators.dtypes import ITEM_BYTES, is_complex
from sparseeinsum.semantics.exactness import Evaluation


@dataclass(frozen=True, slots=True)
class Footprints:
    """The memory of the EinSums of a graph.

    Attributes:
        graph: The EinSums.
        sizes: The sizes of their tensors.
        evaluations: The exact evaluations of every EinSum.
        in_lists: The names of tensors that are stored in lists.
        staying: The stored tensors of which operands in memory stay there from run to run.
        has_handles: Whether functions read operands in memory by handles. If not, these are values, and sums over rows
            read the entries of one row after the other.
        copies: How many copies there are of an operand that is kept in memory: one of handles, which all threads
            read, and one of values in every process.
        sparse_products: The names of products of sparse matrices that are computed ordered by row, as values.
    """

    graph: EinGraph
    sizes: GraphSizes
    evaluations: Mapping[str, Evaluation]
    in_lists: frozenset[str] = frozenset()
    staying: StayingOperands = NOTHING_STAYS
    has_handles: bool = True
    copies: int = 1
    sparse_products: frozenset[str] = frozenset()
    _known_kernels: dict[str, KernelFacts] = field(default_factory=dict, init=False, repr=False)

    def compressed(self, decomposed: DecomposedEinSum, cost: VertexCost) -> Iterator[CompressedSizes]:
        """Sizes of the operands that are ordered by row, in the order of `cost`."""
        einsum = decomposed.einsum
        for index, order in cost.orders.items():
            operand, dense = einsum.operands[index], cost.absence.dense[index]
            sizes = self.sizes.operand(operand, decomposed.operands[index], dense)
            rows, is_in_lists = count_indices(order.rows, einsum, self.graph), operand.tensor in self.in_lists
            loads = self.staying.loads_of(operand.tensor)
            prices = self._ordering_prices(cost, operand, order, loads)
            yield CompressedSizes(rows, sizes.tuples, is_in_lists and not dense, loads, prices)

    def _ordering_prices(self, cost: VertexCost, operand: Reference, order: RowOrder, loads: float) -> OrderingPrices:
        if not self.has_handles and operand.tensor in self.sparse_products and order.rows == operand.labels[:1]:
            return AS_COMPUTED
        stays = loads < 1.0
        if self._is_streamed(cost) and not stays:
            return IN_ARRAYS
        return self.product_prices.before_array if cost.multiplies_array else self.product_prices.ordering

    @property
    def product_prices(self) -> ProductPrices:
        """What products row by row take."""
        return OF_HANDLES if self.has_handles else OF_VALUES

    def _is_streamed(self, cost: VertexCost) -> bool:
        """Whether ordered rows are read one after the other, and never are in memory together."""
        return not self.has_handles and cost.indexed is not None

    def memory_bytes(self, decomposed: DecomposedEinSum, cost: VertexCost) -> int:
        """Bytes of one copy of the operands of an EinSum that a statement keeps in memory."""
        compressed = 0.0
        if cost.orders and not self._is_streamed(cost):
            compressed = sum([sizes.size_bytes for sizes in self.compressed(decomposed, cost)])
        resident = 0 if cost.indexed is None else self.resident(decomposed, cost.indexed).size_bytes
        return resident + math.ceil(compressed)

    def _divided_bytes(self, decomposed: DecomposedEinSum, cost: VertexCost) -> Counter[str]:
        """Bytes of the entries that are ordered by row in memory, by the labels that their passes may be over."""
        divided = Counter[str]()
        for index, sizes in zip(cost.orders, self.compressed(decomposed, cost), strict=True):
            labels = decomposed.einsum.operands[index].labels
            divided.update(dict.fromkeys(labels, self.copies * math.ceil(sizes.entries_bytes)))
        return divided

    def resident(self, decomposed: DecomposedEinSum, index: int) -> ResidentSizes:
        """Sizes of an operand, by its number, if it is kept in memory with all its tuples."""
        name, tiles = decomposed.einsum.operands[index].tensor, decomposed.operands[index]
        tuples = math.prod(map(count_keys, tiles, self.graph.tensors[name].shape))
        row_bytes = self.sizes.tuple_bytes(name, tiles)
        loads = self.staying.loads_of(name)
        scanned = self.sizes.stored_bytes(name, tiles) if self.has_handles else 0.0
        return ResidentSizes(
            self.sizes.tuples(name, tiles), tuples * row_bytes, row_bytes, loads, scanned, not self.has_handles
        )

    def kernel(self, einsum: EinSum) -> KernelFacts:
        """What the costs of all choices of an EinSum need; cached."""
        name = einsum.output.tensor
        kernel = self._known_kernels.get(name)
        if kernel is None:
            kernel = KernelFacts.of(einsum, self.graph, self.evaluations[name].computed_in)
            self._known_kernels[name] = kernel
        return kernel

    def footprint(self, decomposed: DecomposedEinSum, cost: VertexCost) -> Footprint:
        """The memory that an EinSum takes in one pass, with absent tuples treated as in `cost`."""
        einsum = decomposed.einsum
        bounds = zip(einsum.labels, decomposed.choice, self.kernel(einsum).bounds, strict=True)
        keys = {label: count_keys(tile, bound) for label, tile, bound in bounds if tile != DEMOTED}
        item_bytes = ITEM_BYTES[self.evaluations[decomposed.name].computed_in]
        result_bytes = self._array_bytes(decomposed.name, decomposed.result, item_bytes)
        # A sum of products adds to its groups in place, and has no result a row.
        adds_in_place = self.kernel(einsum).is_multilinear and decomposed.is_grouped and not cost.has_whole_groups
        read = tuple(
            [
                KernelArrays(
                    {label: keys[label] for label in operand.labels if label in keys},
                    self._array_bytes(operand.tensor, tiles, item_bytes),
                )
                for index, (operand, tiles) in enumerate(zip(einsum.operands, decomposed.operands, strict=True))
                if index != cost.indexed and not (cost.copied and index == 0)  # these are not copied into vectors
            ]
        )
        read_labels = {label for operand in einsum.operands for label in operand.labels}
        has_states = decomposed.is_grouped and not self._has_engine_states(decomposed)
        has_states = has_states and not cost.has_whole_groups and cost.copied is None
        return Footprint(
            read,
            returned=() if adds_in_place else (KernelArrays(keys, result_bytes),),
            states=cost.tuples if cost.tuples < cost.joined / 2 else cost.joined,  # T_agg stops at half of the pairs
            all_states=cost.joined,
            state_bytes=result_bytes if has_states else 0,
            resident_bytes=self.copies * self.memory_bytes(decomposed, cost),
            divided_bytes=self._divided_bytes(decomposed, cost),
            kept_bytes=self._kept_bytes(decomposed),
            keys={label: keys[label] for label in einsum.output.labels if label in keys and label in read_labels},
        )

    def fused(self, decomposed: DecomposedEinSum, memory_bytes: float) -> Footprint:
        """The memory of a product of three operands, which it keeps in so many bytes; numbers take none in vectors."""
        einsum = decomposed.einsum
        bounds = {label: self.graph.bound_of(einsum, label) for label in einsum.labels}
        keys = {
            label: count_keys(tile, bounds[label])
            for label, tile in zip(einsum.labels, decomposed.choice, strict=True)
            if tile != DEMOTED
        }
        inside = [label for label in einsum.output.labels if label not in keys]
        item_bytes = ITEM_BYTES[self.evaluations[decomposed.name].computed_in]
        result_bytes = math.prod(bounds[label] for label in inside) * item_bytes
        return Footprint(
            read=(),
            returned=(KernelArrays(keys, result_bytes),),
            states=0,
            all_states=0,
            state_bytes=0,
            resident_bytes=self.copies * math.ceil(memory_bytes),
            divided_bytes={},
            kept_bytes=0,
            keys={},
        )

    def _array_bytes(self, tensor: str, tiles: Choice, computed_item_bytes: int) -> int:
        """Bytes of the array in one tuple of a tensor, as stored or as computed with, if larger."""
        item_bytes = max(ITEM_BYTES[self.graph.tensors[tensor].dtype], computed_item_bytes)
        return self.sizes.of(tensor, tiles).elements * item_bytes

    def _kept_bytes(self, decomposed: DecomposedEinSum) -> float:
        """Bytes of the operands and the result of an EinSum, if all of them are in tables or hash tables."""
        read = zip([operand.tensor for operand in decomposed.einsum.operands], decomposed.operands, strict=True)
        relations = {*read, (decomposed.name, decomposed.result)}
        sizes = [self.sizes.of(tensor, tiles) for tensor, tiles in relations]
        return sum([size.tuples * (size.tuple_bytes + STATE_OVERHEAD_BYTES) for size in sizes])

    def _has_engine_states(self, decomposed: DecomposedEinSum) -> bool:
        """Whether a SQL aggregate of the engine computes the result, with states that the engine can spill."""
        dtype, aggregate = self.evaluations[decomposed.name].computed_in, decomposed.einsum.base_aggregate
        has_sql_aggregate = aggregate in AGGREGATES and bool(AGGREGATES[aggregate].sql)
        return decomposed.has_number_result and not is_complex(dtype) and has_sql_aggregate

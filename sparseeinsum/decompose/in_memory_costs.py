"""Decompose: the costs of EinSums that read operands in memory: by index, or ordered by row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sparseeinsum.decompose.compressed_access import (
    in_row_products,
    in_rows,
    order_of_other,
    row_products,
    writing_rows,
)
from sparseeinsum.decompose.cost import CostConstants, Work
from sparseeinsum.decompose.costs_within_memory import CostsWithinMemory
from sparseeinsum.decompose.decomposed_einsum import DecomposedEinSum
from sparseeinsum.decompose.footprints import Footprints
from sparseeinsum.decompose.indexed_access import indexable_operands
from sparseeinsum.decompose.matched_access import in_matched_rows, in_matched_values, matched_order
from sparseeinsum.decompose.vertex_costs import VertexCost
from sparseeinsum.semantics.exactness import Absence, JoinKind


@dataclass(frozen=True, slots=True)
class InMemoryCosts:
    """Costs of EinSums that read operands in memory.

    Attributes:
        footprints: The sizes of what is kept in memory.
        within_memory: Chooses passes where operands are too large.
        constants: Seconds of elementary work.
        resident_bytes: The most bytes of operands that an EinSum may keep in memory and read there.
    """

    footprints: Footprints
    within_memory: CostsWithinMemory
    constants: CostConstants
    resident_bytes: float

    def indexable(self, decomposed: DecomposedEinSum) -> Iterator[tuple[Absence, int]]:
        """The operands that may be read by index, with how absent tuples of the other one are treated."""
        evaluation = self.footprints.evaluations[decomposed.name]
        for index in indexable_operands(decomposed, self.footprints.graph, evaluation.computed_in):
            if self.footprints.resident(decomposed, index).size_bytes <= max(self.resident_bytes, self._alone_bytes):
                dense = tuple([matters and other != index for other, matters in enumerate(evaluation.matters)])
                yield Absence(JoinKind.INNER, dense), index

    def costs(
        self, decomposed: DecomposedEinSum, joined: Sequence[VertexCost], indexed: Sequence[VertexCost]
    ) -> Iterator[VertexCost]:
        """The costs in memory.

        Args:
            decomposed: The EinSum under a choice that promotes labels.
            joined: Its costs if it joins its operands.
            indexed: Its costs if it reads one of the `indexable` operands by index.
        """
        yield from self._row_product_costs(decomposed, joined)
        yield from self._matched_costs(decomposed, joined)
        for cost in indexed:
            yield from self._indexed_costs(decomposed, cost)

    def _indexed_costs(self, decomposed: DecomposedEinSum, cost: VertexCost) -> Iterator[VertexCost]:
        """The cost if an operand is read by index, and that if the other one is ordered by row, too."""
        index, has_handles = cost.indexed, self.footprints.has_handles
        graph, evaluation = self.footprints.graph, self.footprints.evaluations[decomposed.name]
        assert index is not None
        if has_handles and self.footprints.resident(decomposed, index).size_bytes <= self.resident_bytes:
            yield cost
        order = order_of_other(decomposed, index, graph, evaluation, has_handles)
        if order is not None:
            yield from self._compressed_costs(decomposed, replace(cost, orders={1 - index: order}))

    @property
    def _alone_bytes(self) -> float:
        """The most bytes of operands in the memory of an EinSum in passes, whose statements have all memory."""
        memory = self.within_memory.memory
        return memory.limit_bytes / memory.margins.states if self.footprints.has_handles else 0.0

    def _compressed_costs(self, decomposed: DecomposedEinSum, cost: VertexCost) -> Iterator[VertexCost]:
        """The cost if one operand is kept in memory, and the other one is ordered by row, in passes if necessary."""
        (sizes,) = self.footprints.compressed(decomposed, cost)
        (resident,) = [self.footprints.resident(decomposed, 1 - index) for index in cost.orders]
        prices, missed = self.footprints.product_prices, resident.missed_bytes(cost.joined)
        ordered = self._in_rows(decomposed, cost, in_rows(cost.join, sizes, prices, missed))
        if self.footprints.memory_bytes(decomposed, cost) <= self.resident_bytes:
            yield ordered
        elif self.footprints.has_handles:
            yield from self.within_memory.in_fitting_passes(decomposed, ordered)

    def _row_product_costs(self, decomposed: DecomposedEinSum, costs: Sequence[VertexCost]) -> Iterator[VertexCost]:
        """Costs if both operands are ordered by row, and multiplied row by row, where that fits into memory."""
        for orders in row_products(decomposed, self.footprints.graph, self.footprints.evaluations[decomposed.name]):
            for cost in (replace(cost, orders=orders) for cost in costs if cost.absence.join == JoinKind.INNER):
                if self.footprints.memory_bytes(decomposed, cost) <= self.resident_bytes:
                    _, of_other = orders.values()
                    sizes, prices = list(self.footprints.compressed(decomposed, cost)), self.footprints.product_prices
                    work = in_row_products(cost.joined, cost.tuples, sizes, not of_other.positions, prices)
                    yield self._in_rows(decomposed, cost, work)

    def _matched_costs(self, decomposed: DecomposedEinSum, costs: Sequence[VertexCost]) -> Iterator[VertexCost]:
        """Costs if both operands are ordered by row, and matched row by row, where that fits into memory."""
        order = matched_order(decomposed, self.footprints.graph, self.footprints.evaluations[decomposed.name])
        if order is None:
            return
        for joined in costs:
            cost = replace(joined, orders={0: order, 1: order}, is_matched=True)
            fits = self.footprints.memory_bytes(decomposed, cost) <= self.resident_bytes
            if fits and not any(cost.absence.dense) and cost.copied is None:
                in_memory = in_matched_rows if self.footprints.has_handles else in_matched_values
                join = in_memory(cost.join, self.footprints.compressed(decomposed, cost))
                seconds = sum([work.seconds(self.constants) for work in (join, cost.aggregation, cost.filling)])
                yield replace(cost, join=join, seconds=seconds)

    def _in_rows(self, decomposed: DecomposedEinSum, cost: VertexCost, join: Work) -> VertexCost:
        """The cost if groups are computed at once, by a join that takes that work."""
        result = self.footprints.sizes.of(decomposed.name, decomposed.result)
        size_bytes = cost.tuples * result.tuple_bytes
        written = Work(bytes_moved=size_bytes)
        if cost.multiplies_array:
            written = writing_rows(size_bytes, self.footprints.has_handles)
        seconds = sum([work.seconds(self.constants) for work in (join, written, cost.filling)])
        return replace(cost, join=join, aggregation=written, seconds=seconds)

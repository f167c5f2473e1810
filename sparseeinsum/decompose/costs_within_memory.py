"""Decompose: the cheapest cost of an EinSum that keeps to the memory limit, in passes over a label if necessary."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sparseeinsum.decompose.cost import CostConstants, Work
from sparseeinsum.decompose.decomposed_einsum import DecomposedEinSum
from sparseeinsum.decompose.footprints import Footprints
from sparseeinsum.decompose.graph_sizes import GraphSizes
from sparseeinsum.decompose.memory_footprint import REREAD_BYTES, Passes, RunMemory
from sparseeinsum.decompose.vertex_costs import VertexCost
from sparseeinsum.language.eingraph import Reference


@dataclass(frozen=True, slots=True)
class CostsWithinMemory:
    """Chooses among the costs of an EinSum.

    Attributes:
        sizes: The sizes of the tensors.
        footprints: The memory that EinSums take.
        memory: The memory limit of a run.
        constants: Seconds of elementary work.
        inputs: The tensors of the graph that no EinSum computes.
    """

    sizes: GraphSizes
    footprints: Footprints
    memory: RunMemory
    constants: CostConstants
    inputs: frozenset[str]

    def cheapest(self, decomposed: DecomposedEinSum, costs: list[VertexCost]) -> VertexCost:
        """The cheapest cost within the memory limit, in passes if necessary; if there is none, that of least memory."""
        fastest = min(costs, key=lambda cost: cost.seconds)
        if self._shortage(decomposed, fastest) == 0:
            return fastest
        options = [option for cost in costs for option in (cost, *self._costs_in_passes(decomposed, cost))]
        shortages = [self._shortage(decomposed, option) for option in options]
        least, best = min(zip(shortages, options, strict=True), key=lambda pair: (pair[0], pair[1].seconds))
        return replace(best, is_within_memory=least == 0)

    def _shortage(self, decomposed: DecomposedEinSum, cost: VertexCost) -> float:
        """Bytes that are needed in excess of the memory limit."""
        if self.memory.limit_bytes == math.inf:
            return 0.0
        needed = self.footprints.footprint(decomposed, cost).needed_bytes(self.memory, cost.passes)
        return max(needed - self.memory.limit_bytes, 0.0)

    def in_fitting_passes(self, decomposed: DecomposedEinSum, cost: VertexCost) -> Iterator[VertexCost]:
        """The costs in passes that keep to the memory limit."""
        for option in self._costs_in_passes(decomposed, cost):
            if self._shortage(decomposed, option) == 0:
                yield option

    def _costs_in_passes(self, decomposed: DecomposedEinSum, cost: VertexCost) -> Iterator[VertexCost]:
        if cost.passes is not None:
            return
        for passes in self.footprints.footprint(decomposed, cost).possible_passes(self.memory):
            yield self._in_passes(decomposed, cost, passes)

    def _in_passes(self, decomposed: DecomposedEinSum, cost: VertexCost, passes: Passes) -> VertexCost:
        """The cost in passes: each scans operands that have the label of the passes, and joins the others.

        An operand in memory is put there once if it is made of a stored tensor, or else by each pass.
        """
        repeated, skipped = Work(), Work()  # skipped: loads that runs without passes do not repeat
        triples = zip(decomposed.einsum.operands, decomposed.operands, cost.absence.dense, strict=True)
        for index, (operand, tiles, dense) in enumerate(triples):
            if index == cost.indexed:
                resident = self.footprints.resident(decomposed, index)
                if not self._stays_for_passes(operand):
                    repeated += resident.loading()
                skipped += resident.loading().times(1 - resident.loads_per_run)
                continue
            sizes = self.sizes.operand(operand, tiles, dense)
            if sizes.tuples > sizes.present:  # made dense again
                repeated += Work(
                    sizes.tuples, sizes.tuples * sizes.tuple_bytes, hashed_tuples=sizes.tuples, operators=1
                )
            size = 0 if passes.label in operand.labels else sizes.tuple_bytes
            repeated += Work(sizes.tuples, sizes.tuples * size * REREAD_BYTES)
        written = Work(cost.tuples, cost.tuples * self.sizes.tuple_bytes(decomposed.name, decomposed.result))
        rereading = repeated.times(passes.count - 1) + skipped + written
        seconds = cost.seconds + rereading.seconds(self.constants)
        return replace(cost, passes=passes, rereading=rereading, seconds=seconds)

    def _stays_for_passes(self, operand: Reference) -> bool:
        """Whether an operand in memory stays there while all passes read it."""
        return self.footprints.has_handles and operand.tensor in self.inputs

"""Decompose: the cost of tables of results, which results get one, and the cost of collecting results for the user."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from sparseeinsum.decompose.choice import LARGEST_ROW_ARRAY, Choice, is_single_array, result_tiles
from sparseeinsum.decompose.cost import Accounting, CostConstants, Work
from sparseeinsum.decompose.einsum_kinds import Uses
from sparseeinsum.decompose.graph_sizes import GraphSizes
from sparseeinsum.decompose.memory_footprint import RunMemory
from sparseeinsum.decompose.vertex_costs import VertexCost
from sparseeinsum.language.eingraph import EinSum


@dataclass(frozen=True, slots=True)
class StoringCosts:
    """Costs of tables and of collected rows of results on one engine.

    Attributes:
        sizes: The sizes of the tensors.
        memory: The memory limit of a run.
        accounting: Counts the work that the engine does.
        constants: Seconds of elementary work.
        chains_arrays: Whether EinSums over single arrays are computed together in one row.
        collects_rows: Whether rows of results are copied as they are collected for the user, as a single array is not
            that one call computes.
    """

    sizes: GraphSizes
    memory: RunMemory
    accounting: Accounting
    constants: CostConstants
    chains_arrays: bool
    collects_rows: bool

    def with_storing(self, einsum: EinSum, choice: Choice, uses: Uses, cost: VertexCost) -> VertexCost:
        """The cost with that of a table of the result, which results get that are read more than once.

        Single arrays that are too large for a row take as long where one operator hands them to the next: every copy
        is in memory that the system must provide first. A result that nothing reads is collected for the user.
        """
        if uses.readers == 0:
            is_copied = self.collects_rows and not is_single_array(choice)
            return self._with_work(einsum, choice, cost, self.accounting.collecting) if is_copied else cost
        is_free = self.fits_into_row(einsum.output.tensor) if self.is_in_chain(choice) else uses.total < 2
        if is_free and not self.are_large_arrays(einsum, choice, cost):
            return cost
        return self._with_work(einsum, choice, cost, self.accounting.storing)

    def _with_work(
        self, einsum: EinSum, choice: Choice, cost: VertexCost, work_of: Callable[[float], Work]
    ) -> VertexCost:
        storing = work_of(cost.tuples * self.sizes.tuple_bytes(einsum.output.tensor, result_tiles(einsum, choice)))
        return replace(cost, storing=storing, seconds=cost.seconds + storing.seconds(self.constants))

    def are_large_arrays(self, einsum: EinSum, choice: Choice, cost: VertexCost) -> bool:
        """Whether an EinSum reads and computes single arrays that are so large that its result gets a table."""
        if not is_single_array(choice):
            return False
        read = [(operand.tensor, cost.operand_tiles(einsum, i, choice)) for i, operand in enumerate(einsum.operands)]
        arrays = [*read, (einsum.output.tensor, result_tiles(einsum, choice))]
        return sum([self.sizes.tuple_bytes(*array) for array in arrays]) > self.memory.largest_arrays_bytes

    def is_in_chain(self, choice: Choice) -> bool:
        """Whether one array is computed from others, in an engine that computes several of them in one row."""
        return self.chains_arrays and is_single_array(choice)

    def fits_into_row(self, tensor: str) -> bool:
        """Whether an array of all elements of a tensor may be in one row with others."""
        return self.sizes.graph.tensors[tensor].size <= LARGEST_ROW_ARRAY

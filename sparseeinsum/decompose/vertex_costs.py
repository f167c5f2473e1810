"""Decompose: the expected cost of an EinSum under one choice."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparseeinsum.decompose.choice import Choice, reference_tiles
from sparseeinsum.decompose.compressed_access import RowOrder
from sparseeinsum.decompose.copied_parts import CopiedPart
from sparseeinsum.decompose.cost import NO_WORK, Work
from sparseeinsum.decompose.memory_footprint import Passes
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.language.tensors import fully_promoted
from sparseeinsum.semantics.exactness import Absence


@dataclass(frozen=True, slots=True)
class VertexCost:
    """Expected work of one EinSum.

    Attributes:
        joined: T_join, the tuples that the join produces.
        tuples: Tuples of the result.
        join: Work to join tuples and run the kernel.
        aggregation: Work to aggregate joined pairs.
        filling: Work to make operands dense, to load one into memory, or to fill in the missing side of a join.
        seconds: Seconds of all the work.
        absence: How absent tuples are treated: the cheapest exact alternative.
        indexed: The number of the operand that is kept in memory and read by index; None if operands are joined.
        orders: How operands are ordered by row in memory, by their numbers; the first has the rows of the result.
        is_matched: Whether the entries of both are matched row by row; otherwise, rows of the result are computed at
            once from operands that are ordered.
        is_sparse_matmul: Whether the only ordered operand is multiplied by a dense array into one array.
        passes: The passes that keep the EinSum within the memory limit; None if one is enough, or if none are.
        rereading: Work to read operands again for every pass after the first, and to keep the result in a table.
        storing: Work to write the result into a table that several read, and to read it again; or to collect its rows
            for the user.
        is_within_memory: Whether the memory limit is enough.
        copied: The part of every array that is copied, and not computed; None if values are computed.
    """

    joined: float
    tuples: float
    join: Work
    aggregation: Work
    filling: Work
    seconds: float
    absence: Absence
    indexed: int | None
    passes: Passes | None = None
    rereading: Work = NO_WORK
    storing: Work = NO_WORK
    is_within_memory: bool = True
    orders: Mapping[int, RowOrder] = field(default_factory=dict)
    is_matched: bool = False
    is_sparse_matmul: bool = False
    copied: CopiedPart | None = None

    @property
    def compressed(self) -> tuple[int, ...]:
        """The numbers of the operands that are ordered by row in memory."""
        return tuple(self.orders)

    @property
    def multiplies_array(self) -> bool:
        """Whether one operand is ordered by row in memory, and the other one is an array."""
        return len(self.orders) == 1

    def operand_tiles(self, einsum: EinSum, index: int, choice: Choice) -> Choice:
        """The tiles in which operand `index` is read: those of the choice, or numbers for a sparse matrix product."""
        operand = einsum.operands[index]
        if self.is_sparse_matmul and index in self.orders:
            return fully_promoted(len(operand.labels)).tiles
        return reference_tiles(einsum, operand, choice)

    @property
    def has_whole_groups(self) -> bool:
        """Whether every group is computed at once, so that it has no state."""
        return bool(self.orders) and not self.is_matched

    @property
    def reads(self) -> int:
        """How often the operands are read: once for every pass."""
        return 1 if self.passes is None else self.passes.count

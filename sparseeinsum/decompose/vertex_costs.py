"""Decompose: the expected cost of an EinSum under one choice."""

from dataclasses import dataclass

from sparseeinsum.decompose.copied_parts import CopiedPart
from sparseeinsum.decompose.cost import NO_WORK, Work
from sparseeinsum.decompose.memory_footprint import Passes
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
        compressed: The numbers of the operands that are ordered by row in memory, so that every group is computed at
            once; the one whose rows are those of the result is the first.
        passes: The passes that keep the EinSum within the memory limit; None if one is enough, or if none are.
        rereading: Work to read operands again for every pass after the first, and to keep the result in a table.
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
    is_within_memory: bool = True
    compressed: tuple[int, ...] = ()
    copied: CopiedPart | None = None

    @property
    def reads(self) -> int:
        """How often the operands are read: once for every pass."""
        return 1 if self.passes is None else self.passes.count

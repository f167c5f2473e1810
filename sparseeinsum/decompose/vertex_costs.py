"""Decompose: what is known of an EinSum's cost under one choice."""

from dataclasses import dataclass

from sparseeinsum.decompose.cost import Work
from sparseeinsum.decompose.memory import Passes
from sparseeinsum.semantics.exactness import Absence

_NOTHING = Work()


@dataclass(frozen=True, slots=True)
class VertexCost:
    """Expected work of one EinSum.

    Attributes:
        joined: T_join, tuples that the join produces.
        tuples: Tuples of the result.
        join: To join tuples and run the kernel.
        aggregation: To aggregate pairs.
        filling: To make operands dense, to keep one in memory, or to fill in what a join finds no partner for.
        seconds: Of all of it.
        absence: How absent tuples are dealt with: the cheapest exact way.
        indexed: The operand that is kept in memory and read by index; None where operands are joined.
        passes: In which it is computed, so that it keeps to the memory; None where one is enough, or none are.
        rereading: To read operands once more for every pass after the first, and to keep the result in a table.
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
    rereading: Work = _NOTHING

    @property
    def reads(self) -> int:
        """How often operands are read."""
        return 1 if self.passes is None else self.passes.count

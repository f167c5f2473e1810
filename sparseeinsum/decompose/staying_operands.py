"""Decompose: operands that are put into memory in some runs of a plan, and stay there for others."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StayingOperands:
    """Stored tensors of which operands in memory stay there from run to run.

    Attributes:
        tensors: Their names.
        loads_per_run: How often a run puts such an operand into memory, on average.
    """

    tensors: frozenset[str]
    loads_per_run: float

    def loads_of(self, tensor: str) -> float:
        """How often a run puts an operand of a tensor into memory, on average."""
        return self.loads_per_run if tensor in self.tensors else 1.0


NOTHING_STAYS = StayingOperands(frozenset(), 1.0)

"""Decompose: how a tensor gets from one decomposition into another within the memory, and what that costs.

To put tuples together into larger arrays is an aggregation, whose states are all of these arrays. Where they are too
much, or where a reader in passes would do it all over again, the tensor is put together on its own, in passes over the
keys of an axis that has them afterwards, and kept in a temporary table.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sparseeinsum.decompose.cost import CostConstants, RepartitionSizes, Work
from sparseeinsum.decompose.memory import (
    STATE_OVERHEAD_BYTES,
    Memory,
    Passes,
)


@dataclass(frozen=True, slots=True)
class Move:
    """A change of a tensor's decomposition.

    Attributes:
        work: All of it, as often as it is read.
        passes: Those in which the tensor goes into a table of its own; None where it is computed with its reader.
        states_bytes: Of arrays that are put together at once, which the engine cannot spill.
        vector_bytes: Of arrays that are in vectors at once.
        returned_bytes: Of those, what functions return.
        needed_bytes: The memory limit that is enough.
        is_possible: Whether the limit is that.
    """

    work: Work
    passes: Passes | None = None
    states_bytes: float = 0.0
    vector_bytes: int = 0
    returned_bytes: int = 0
    needed_bytes: float = 0.0
    is_possible: bool = True

    def seconds(self, constants: CostConstants) -> float:
        """What it costs; without end where the memory is not enough."""
        return self.work.seconds(constants) if self.is_possible else math.inf


@dataclass(frozen=True, slots=True)
class Moving:
    """A change of a tensor's decomposition, before it is decided how to make it.

    Attributes:
        sizes: Of it.
        work: Of making it once.
        keys: Of every axis that has keys afterwards, how many.
        vector_bytes: Of the arrays before, between and afterwards that are in vectors at once.
        returned_bytes: Of those between and afterwards.
    """

    sizes: RepartitionSizes
    work: Work
    keys: Mapping[str, int]
    vector_bytes: int
    returned_bytes: int

    def cheapest(self, memory: Memory, constants: CostConstants, reads: int) -> Move:
        """The cheapest way that keeps to the memory, where the result is read so often."""
        states = self._states_bytes(memory)
        margins = memory.margins
        together = margins.together if self.keys else margins.states  # what has no keys cannot go on its own in passes
        needed = max(together * states, memory.needed_bytes(self.vector_bytes, states, self._kept_bytes))
        at_once = self._move(self.work.times(reads), None, states, needed, memory)
        if reads == 1 and at_once.is_possible:
            return at_once
        ways = [at_once, *([self._kept(states, memory)] if self.keys else ())]
        best: Move = min(ways, key=lambda move: (not move.is_possible, move.seconds(constants)))
        return best

    @property
    def _kept_bytes(self) -> float:
        return self.sizes.after * (self.sizes.after_bytes + STATE_OVERHEAD_BYTES)

    def _states_bytes(self, memory: Memory) -> float:
        if not self.sizes.stacks:
            return 0.0
        states = min(memory.threads * self.sizes.after, self.sizes.between)
        return states * (self.sizes.after_bytes + STATE_OVERHEAD_BYTES)

    def _kept(self, states: float, memory: Memory) -> Move:
        """The move into a table, in as few passes as keep to the memory."""
        label = max(self.keys, key=lambda name: self.keys[name])
        most = max(self.keys[label], 1)
        room = memory.limit_bytes - memory.needed_bytes(self.vector_bytes, 0, self._kept_bytes)
        wanted = states * memory.margins.states / room if room > 0 else math.inf
        count = min(max(math.ceil(min(wanted, most)), 1), most)
        written = Work(self.sizes.after, self.sizes.after * self.sizes.after_bytes)
        needed = memory.needed_bytes(self.vector_bytes, states / count, self._kept_bytes)
        work = self.work.times(count) + written
        return self._move(work, Passes(label, count), states / count, needed, memory)

    def _move(self, work: Work, passes: Passes | None, states: float, needed: float, memory: Memory) -> Move:
        is_possible = needed <= memory.limit_bytes
        return Move(work, passes, states, self.vector_bytes, self.returned_bytes, needed, is_possible)

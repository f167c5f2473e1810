"""Decompose: how to repartition a tensor within the memory limit, and what that costs.

To put tuples together into larger arrays is an aggregation, whose states are all of these arrays. If the states exceed
the memory, or if a reader in passes would repeat all of it, the tensor is repartitioned by statements of its own, in
passes over the keys of an axis that is promoted afterwards, and kept in a temporary table.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sparseeinsum.decompose.cost import CostConstants, RepartitionSizes, Work
from sparseeinsum.decompose.memory_footprint import STATE_OVERHEAD_BYTES, Passes, RunMemory
from sparseeinsum.language.tensors import Tensor
from sparseeinsum.operators.dtypes import ITEM_BYTES

# From so many bytes on, all threads write an array in memory in one place; before, each makes one, and they are merged.
_LEAST_SHARED_BYTES = 1 << 18


def is_shared_array(tensor: Tensor) -> bool:
    """Whether all threads write an array in memory that has all elements of a tensor."""
    return tensor.size * ITEM_BYTES[tensor.dtype] >= _LEAST_SHARED_BYTES


@dataclass(frozen=True, slots=True)
class Repartition:
    """A change of a tensor's decomposition.

    Attributes:
        work: The work of all reads together.
        passes: The passes that fill a table with the tensor; None if the statement that reads it repartitions it.
        states_bytes: Bytes of the arrays that are put together at once, which the engine cannot spill.
        vector_bytes: Bytes of the arrays that are in vectors at once.
        returned_bytes: Bytes of those among them that functions return.
        needed_bytes: The memory limit that is enough.
        is_possible: Whether the memory limit is enough.
    """

    work: Work
    passes: Passes | None = None
    states_bytes: float = 0.0
    vector_bytes: int = 0
    returned_bytes: int = 0
    needed_bytes: float = 0.0
    is_possible: bool = True

    def seconds(self, constants: CostConstants) -> float:
        """Expected seconds; infinite if the memory limit is not enough."""
        return self.work.seconds(constants) if self.is_possible else math.inf


@dataclass(frozen=True, slots=True)
class RepartitionOptions:
    """The alternatives for a change of a tensor's decomposition: within its reader, or into a table.

    Attributes:
        sizes: Sizes of the change.
        work: Work of doing it once.
        keys: Number of keys of every axis that is promoted afterwards.
        vector_bytes: Bytes of the arrays before, between and afterwards that are in vectors at once.
        returned_bytes: Bytes of the arrays between and afterwards among them.
    """

    sizes: RepartitionSizes
    work: Work
    keys: Mapping[str, int]
    vector_bytes: int
    returned_bytes: int

    def cheapest(self, memory: RunMemory, constants: CostConstants, reads: int) -> Repartition:
        """The cheapest alternative within the memory limit, if the result is read `reads` times."""
        states = self._states_bytes(memory)
        margins = memory.margins
        # Without keys, it cannot be split into passes, so that a larger margin would be of no use.
        margin = margins.together if self.keys else margins.states
        needed = max(margin * states, memory.needed_bytes(self.vector_bytes, states, self._kept_bytes))
        at_once = self._repartition(self.work.times(reads), None, states, needed, memory)
        if reads == 1 and at_once.is_possible:
            return at_once
        options = [at_once, *([self._into_table(states, memory)] if self.keys else ())]
        best: Repartition = min(options, key=lambda option: (not option.is_possible, option.seconds(constants)))
        return best

    @property
    def _kept_bytes(self) -> float:
        return self.sizes.after * (self.sizes.after_bytes + STATE_OVERHEAD_BYTES)

    def _states_bytes(self, memory: RunMemory) -> float:
        if not self.sizes.stacks:
            return 0.0
        states = min(memory.threads * self.sizes.after, self.sizes.between)
        return states * (self.sizes.after_bytes + STATE_OVERHEAD_BYTES)

    def _into_table(self, states: float, memory: RunMemory) -> Repartition:
        """The repartition into a table, in as few passes as the memory limit allows, over the axis of most keys."""
        label = max(self.keys, key=lambda name: self.keys[name])
        most = max(self.keys[label], 1)
        room = memory.limit_bytes - memory.needed_bytes(self.vector_bytes, 0, self._kept_bytes)
        required = states * memory.margins.states / room if room > 0 else math.inf
        count = min(max(math.ceil(min(required, most)), 1), most)
        written = Work(self.sizes.after, self.sizes.after * self.sizes.after_bytes)
        needed = memory.needed_bytes(self.vector_bytes, states / count, self._kept_bytes)
        work = self.work.times(count) + written
        return self._repartition(work, Passes(label, count), states / count, needed, memory)

    def _repartition(
        self, work: Work, passes: Passes | None, states: float, needed: float, memory: RunMemory
    ) -> Repartition:
        is_possible = needed <= memory.limit_bytes
        return Repartition(work, passes, states, self.vector_bytes, self.returned_bytes, needed, is_possible)

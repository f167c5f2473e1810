"""Decompose, places: blocks, and the indices that machines lack of them, computed once for all that ask."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from sparseeinsum.decompose.places.blocks import BlockPlacement, Blocks, Floats
from sparseeinsum.decompose.search_tasks import State

_MOST_COMPARED = 1 << 14  # blocks that are compared at once: their numbers stay in a processor's cache
_MOST_KEPT = 1 << 16  # numbers of a table that is kept


@dataclass(frozen=True, slots=True)
class ComputedBlocks:
    """Blocks that were computed before, which several searches share, by their states, the shape, and the workers."""

    _blocks: dict[tuple[State, tuple[int, ...], int], Blocks] = field(default_factory=dict)
    _lacking: dict[tuple[State, State, tuple[int, ...], int], float] = field(default_factory=dict)
    _tables: dict[tuple[Hashable, ...], Floats] = field(default_factory=dict)

    def blocks(self, state: State, shape: tuple[int, ...], workers: int) -> Blocks:
        """The blocks of a tensor of this shape in a state."""
        key = state, shape, workers
        blocks = self._blocks.get(key)
        if blocks is None:
            blocks = self._blocks[key] = BlockPlacement.of_state(state).blocks(shape, workers)
        return blocks

    def lacking(self, needed: State, stored: State, shape: tuple[int, ...], workers: int) -> float:
        """The indices that all workers together need in one state and do not have in the other."""
        key = needed, stored, shape, workers
        lacking = self._lacking.get(key)
        if lacking is None:
            required, present = (self.blocks(state, shape, workers) for state in (needed, stored))
            lacking = self._lacking[key] = float(required.sizes.sum() - present.common(required).sum())
        return lacking

    def lacking_table(
        self, needed: Sequence[State], stored: Sequence[State], shape: tuple[int, ...], workers: int
    ) -> Floats:
        """What `lacking` returns for many states: a row for each stored one, a column for each needed one."""
        key = tuple(needed), tuple(stored), shape, workers
        table = self._tables.get(key)
        if table is None:
            table = self._compared(needed, stored, shape, workers)
            if table.size <= _MOST_KEPT:
                self._tables[key] = table
        return table

    def _compared(
        self, needed: Sequence[State], stored: Sequence[State], shape: tuple[int, ...], workers: int
    ) -> Floats:
        required = Blocks.stacked([self.blocks(state, shape, workers) for state in needed])
        sizes = required.sizes
        totals, rows = sizes.sum(axis=-1), max(_MOST_COMPARED // max(sizes.size, 1), 1)
        table = np.empty((len(stored), len(needed)))
        for first in range(0, len(stored), rows):
            some = Blocks.stacked([self.blocks(state, shape, workers) for state in stored[first : first + rows]])
            table[first : first + rows] = totals - required.common(some.by_row()).sum(axis=-1)
        return table

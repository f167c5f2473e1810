"""Partitioned programs, really executed: workers have blocks of numpy arrays, and what moves between two is counted."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.decompose.eindecomp.grids import Grid, calls_of
from sparseeinsum.decompose.eindecomp.partitioning import PartitionedEinSum, Partitioning
from sparseeinsum.decompose.eindecomp.replay import PlacedEinSum
from sparseeinsum.language.eingraph import Reference
from sparseeinsum.semantics.dense import evaluate_einsum

Array = NDArray[np.float64]
FOLDS = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def ranges(grid: Grid, piece: int) -> tuple[slice, ...]:
    """The indices of one piece."""
    places = np.unravel_index(piece, grid.shape) if grid.shape else ()
    tiles = zip(places, grid.tiles, grid.bounds, strict=True)
    return tuple(slice(place * tile, min((place + 1) * tile, bound) if tile else bound) for place, tile, bound in tiles)


@dataclass
class Cluster:
    """Workers, and the floats that they received: (kind, sender, receiver) -> floats."""

    partitioning: Partitioning
    placed: Mapping[str, PlacedEinSum]
    inputs: Mapping[str, Array]
    blocks: dict[str, tuple[Grid, dict[int, Array]]] = field(default_factory=dict)
    moved: Counter[tuple[str, int, int]] = field(default_factory=Counter)

    def run(self) -> dict[str, Array]:
        """All results, put together from their blocks."""
        for step in self.partitioning.steps:
            self._run(step)
        return {name: self._whole(name) for name in self.placed}

    def _run(self, step: PartitionedEinSum) -> None:
        name = step.einsum.output.tensor
        placed = self.placed[name]
        calls = calls_of(self.partitioning.graph, step.einsum, step.choice)
        operands = [self._operand(step, number) for number in range(len(step.einsum.operands))]
        grid = self._grid(step, step.einsum.output)
        results: dict[int, Array] = {}
        for call in range(calls.count):
            worker = int(placed.workers[call])
            blocks = {}
            for number, operand in enumerate(step.einsum.operands):
                piece = self._piece(step, calls, call, operand)
                blocks[f"operand{number}"] = operands[number][piece]
                self._move("join", int(placed.operands[number][piece]), worker, operands[number][piece])
            renamed = tuple(Reference(f"operand{n}", operand.labels) for n, operand in enumerate(step.einsum.operands))
            partial = evaluate_einsum(replace(step.einsum, operands=renamed), blocks)
            piece = self._piece(step, calls, call, step.einsum.output)
            self._move("aggregation", worker, int(placed.homes[piece]), partial)
            results[piece] = FOLDS[str(step.einsum.aggregate)](results[piece], partial) if piece in results else partial
        self.blocks[name] = grid, results

    def _operand(self, step: PartitionedEinSum, number: int) -> dict[int, Array]:
        """Blocks of an operand as an EinSum reads them, cut out of the stored blocks."""
        operand = step.einsum.operands[number]
        target = self._grid(step, operand)
        if operand.tensor in self.inputs:
            return {piece: self.inputs[operand.tensor][ranges(target, piece)] for piece in range(target.count)}
        grid, blocks = self.blocks[operand.tensor]
        if grid == target:
            return blocks
        sources, targets = self.placed[operand.tensor].homes, self.placed[step.einsum.output.tensor].operands[number]
        repartitioned = {}
        for piece in range(target.count):
            owned = ranges(target, piece)
            repartitioned[piece] = np.full([extent.stop - extent.start for extent in owned], np.nan)
            for other, block in blocks.items():
                here, there = [], []
                for own, its in zip(owned, ranges(grid, other), strict=True):
                    start, stop = max(own.start, its.start), max(min(own.stop, its.stop), max(own.start, its.start))
                    here.append(slice(start - own.start, stop - own.start))
                    there.append(slice(start - its.start, stop - its.start))
                repartitioned[piece][tuple(here)] = block[tuple(there)]
                if targets[piece] >= 0:  # some call reads it
                    self._move("repartition", int(sources[other]), int(targets[piece]), block[tuple(there)])
        return repartitioned

    def _move(self, kind: str, source: int, target: int, block: Array) -> None:
        if source != target:
            self.moved[kind, source, target] += block.size

    def _piece(self, step: PartitionedEinSum, calls: Grid, call: int, reference: Reference) -> int:
        places = dict(zip(step.einsum.labels, np.unravel_index(call, calls.shape), strict=True))
        number = 0
        for label in reference.labels:
            number = number * calls.shape[step.einsum.labels.index(label)] + int(places[label])
        return number

    def _grid(self, step: PartitionedEinSum, reference: Reference) -> Grid:
        tiles = dict(zip(step.einsum.labels, step.choice, strict=True))
        shape = self.partitioning.graph.tensors[reference.tensor].shape
        return Grid(tuple(tiles[label] for label in reference.labels), shape)

    def _whole(self, name: str) -> Array:
        grid, blocks = self.blocks[name]
        whole = np.full(grid.bounds, np.nan)
        for piece, block in blocks.items():
            whole[ranges(grid, piece)] = block
        return whole

"""Partitioned programs, really executed: workers have blocks of numpy arrays, and what moves between two is counted."""

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.eindecomp.moves import Moves
from sparseeinsum.decompose.eindecomp.sendings import sent_name
from sparseeinsum.decompose.places.blocks import BlockPlacement, Blocks
from sparseeinsum.language.eingraph import EinSum, Reference
from sparseeinsum.semantics.dense import evaluate_einsum

Array = NDArray[np.float64]
Box = tuple[slice, ...]
FOLDS = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def boxes(blocks: Blocks) -> dict[int, Box]:
    """The indices of every worker's block, for the workers that have one."""
    rows = enumerate(zip(blocks.starts.T.astype(int).tolist(), blocks.ends.T.astype(int).tolist(), strict=True))
    return {
        worker: tuple(slice(start, max(start, end)) for start, end in zip(starts[:-1], ends[:-1], strict=True))
        for worker, (starts, ends) in rows
        if ends[-1]
    }


def common(first: Box, second: Box) -> Box:
    pairs = [(max(a.start, b.start), min(a.stop, b.stop)) for a, b in zip(first, second, strict=True)]
    return tuple(slice(start, max(start, stop)) for start, stop in pairs)


def inside(box: Box, outer: Box) -> Box:
    """A box in the indices of an array that holds an outer box."""
    return tuple(slice(b.start - o.start, b.stop - o.start) for b, o in zip(box, outer, strict=True))


@dataclass
class Cluster:
    """Workers, and the floats that they received: (kind, sender, receiver) -> floats."""

    moves: Moves
    choices: Mapping[str, Choice]
    inputs: Mapping[str, Array]
    blocks: dict[str, dict[int, tuple[Box, Array]]] = field(default_factory=dict)
    moved: Counter[tuple[str, int, int]] = field(default_factory=Counter)

    def run(self) -> dict[str, Array]:
        """All results, put together from their blocks."""
        for einsum in self.moves.graph.einsums:
            self._run(einsum, self.choices[einsum.output.tensor])
        return {einsum.output.tensor: self._whole(einsum.output.tensor) for einsum in self.moves.graph.einsums}

    def _run(self, einsum: EinSum, choice: Choice) -> None:
        operands = [self._read(einsum, number, choice) for number in range(len(einsum.operands))]
        renamed = tuple(Reference(f"operand{n}", operand.labels) for n, operand in enumerate(einsum.operands))
        computed = self._boxes(einsum.output.tensor, self.moves.needed(einsum, einsum.output, choice))
        results = {
            worker: (np.full([side.stop - side.start for side in box], np.nan), box)
            for worker, box in self._boxes(einsum.output.tensor, self.moves.result(einsum, choice)).items()
        }
        written = {worker: np.zeros(array.shape, bool) for worker, (array, _) in results.items()}
        for worker, box in computed.items():
            read = {f"operand{number}": blocks[worker] for number, blocks in enumerate(operands)}
            partial = evaluate_einsum(replace(einsum, operands=renamed), read)
            for home, (array, owned) in results.items():
                shared = common(box, owned)
                here, part = inside(shared, owned), partial[inside(shared, box)]
                if part.size:
                    self._move("aggregation", worker, home, part)
                    is_first = not written[home][here].any()
                    array[here] = part if is_first else FOLDS[str(einsum.aggregate)](array[here], part)
                    written[home][here] = True
        self.blocks[einsum.output.tensor] = {worker: (box, array) for worker, (array, box) in results.items()}

    def _read(self, einsum: EinSum, number: int, choice: Choice) -> dict[int, Array]:
        """For every worker, the block of an operand that its call reads, put together from those that workers have."""
        operand = einsum.operands[number]
        needed, sent = self.moves.needed(einsum, operand, choice), sent_name(operand.tensor)
        if sent not in self.choices:
            return self._gathered(operand.tensor, *self._stored(einsum, operand, choice), needed)
        place = BlockPlacement.of_state(self.choices[sent])
        if sent not in self.blocks:
            arrays = self._gathered(operand.tensor, *self._stored(einsum, operand, choice), place)
            placed = self._boxes(operand.tensor, place)
            self.blocks[sent] = {worker: (placed[worker], array) for worker, array in arrays.items()}
        return self._gathered(operand.tensor, self.blocks[sent], place, needed)

    def _stored(
        self, einsum: EinSum, operand: Reference, choice: Choice
    ) -> tuple[dict[int, tuple[Box, Array]], BlockPlacement]:
        """Blocks of an operand before it is sent, and where they are."""
        tensor, destination = operand.tensor, self.choices.get(sent_name(operand.tensor))
        if tensor not in self.inputs:
            producer = self.moves.graph.producer_of(tensor)
            assert producer is not None
            return self.blocks[tensor], self.moves.result(producer, self.choices[tensor])
        if destination is None:
            place = self.moves.available(einsum, operand, choice)
        else:
            place = self.moves.origin(tensor, destination)
        boxes_of = self._boxes(tensor, place)
        return {worker: (box, self.inputs[tensor][box]) for worker, box in boxes_of.items()}, place

    def _gathered(
        self, tensor: str, stored: Mapping[int, tuple[Box, Array]], before: BlockPlacement, after: BlockPlacement
    ) -> dict[int, Array]:
        """For every worker, a block that it needs: what it has of it, and the rest from the first that have it."""
        kind, blocks = "join" if before.tiles == after.tiles else "repartition", {}
        for worker, box in self._boxes(tensor, after).items():
            blocks[worker] = np.full([side.stop - side.start for side in box], np.nan)
            lacking = np.ones(blocks[worker].shape, bool)
            for home, (owned, array) in sorted(stored.items(), key=lambda item: item[0] != worker):
                shared = common(box, owned)
                here, part = inside(shared, box), array[inside(shared, owned)]
                blocks[worker][here] = np.where(lacking[here], part, blocks[worker][here])
                self._move(kind, home, worker, part[lacking[here]])
                lacking[here] = False
        return blocks

    def _boxes(self, tensor: str, places: BlockPlacement) -> dict[int, Box]:
        return boxes(places.blocks(self.moves.graph.tensors[tensor].shape, self.moves.workers))

    def _move(self, kind: str, source: int, target: int, block: Array) -> None:
        if source != target:
            self.moved[kind, source, target] += block.size

    def _whole(self, name: str) -> Array:
        """A result, each of whose elements one worker has."""
        whole = np.full(self.moves.graph.tensors[name].shape, np.nan)
        for (box, array), (other, _) in itertools.permutations(self.blocks[name].values(), 2):
            assert not whole[common(box, other)].size or not array.size
        for box, array in self.blocks[name].values():
            whole[box] = array
        return whole

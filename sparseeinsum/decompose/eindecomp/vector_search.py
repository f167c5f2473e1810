"""EinDecomp: the partition vectors of a graph that transfer the fewest floats.

M[v, d_Z] of the paper is the table that remains of a vertex when its vectors have been eliminated. This is the same
variable elimination as for plans of one machine, with floats for costs; it is exact even if results are shared. If
tables grow too large, every EinSum gets a short list of vectors, or the graph is split into longest paths.

Source: EinDecomp, sections 8.2 to 8.4.
"""

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.decompose.choice import Choice, reference_tiles, result_tiles
from sparseeinsum.decompose.eindecomp.transfer import TransferModel
from sparseeinsum.decompose.elimination import cheapest_plans
from sparseeinsum.decompose.search_tasks import Candidate, State
from sparseeinsum.language.eingraph import EinGraph, EinSum

Vectors = Mapping[str, Choice]  # by the name of the result, as tiles

TABLE_LIMIT = 20_000_000  # numbers in all tables together
# Lengths of short lists, tried in this order (measured: bench/eindecomp.py, a layer of LLaMA on 1,024 workers).
_SHORT_LISTS = (64, 32)
_MOST_ROUNDS = 4  # of improving the vectors of paths


@dataclass(frozen=True, slots=True)
class TransferTask:
    """The vectors of a graph and the floats that they transfer; a `Pricing` in floats.

    Attributes:
        model: Counts the floats.
        choices: The allowed vectors of every EinSum, by the name of its result.
        reader_tiles: For some results, the tiles in which EinSums with a fixed vector read them.
    """

    model: TransferModel
    choices: Mapping[str, Sequence[Choice]]
    reader_tiles: Mapping[str, Sequence[Choice]] = field(default_factory=dict)

    def result_state(self, einsum: EinSum, choice: Choice) -> State:
        """The tiles of the result."""
        return result_tiles(einsum, choice)

    def required_state(self, einsum: EinSum, index: int, choice: Choice) -> State:
        """The tiles in which operand `index` is read."""
        return reference_tiles(einsum, einsum.operands[index], choice)

    def own_cost(self, einsum: EinSum, choice: Choice) -> float:
        """Floats that an EinSum transfers, and those of repartitions of its result for `reader_tiles`."""
        name = einsum.output.tensor
        tiles, after = result_tiles(einsum, choice), self.reader_tiles.get(name, ())
        delivered = sum(self.repartition(name, tiles, read_tiles) for read_tiles in after)
        return self.model.moved(einsum, choice).floats + delivered

    def reading_cost(self, einsum: EinSum, choice: Choice, tiles: Mapping[str, Choice]) -> float:
        """Floats transferred to bring operands that have an item in `tiles` into the tiles that a choice requires."""
        return sum(
            self.repartition(operand.tensor, tiles[operand.tensor], reference_tiles(einsum, operand, choice))
            for operand in einsum.operands
            if operand.tensor in tiles
        )

    def reads(self, einsum: EinSum, choice: Choice) -> int:
        """How often operands are read: always once, as no EinSum has passes here."""
        return 1

    def repartition_costs(
        self, tensor: str, before: Sequence[Choice], required: Sequence[tuple[Choice, int]]
    ) -> NDArray[np.float64]:
        """Floats transferred by repartitions: a row for each of `before`, a column for each of `required`."""
        return self.model.repartition_table(tensor, before, [after for after, _ in required])

    def repartition(self, tensor: str, before: Choice, after: Choice) -> float:
        """Floats transferred by one repartition."""
        return 0.0 if before == after else float(self.model.repartition_table(tensor, [before], [after])[0, 0])

    def floats(self, vectors: Vectors) -> float:
        """All floats that the graph transfers with these vectors."""
        graph = self.model.graph
        tiles = {einsum.output.tensor: result_tiles(einsum, vectors[einsum.output.tensor]) for einsum in graph.einsums}
        return sum(
            self.model.moved(einsum, vectors[einsum.output.tensor]).floats
            + self.reading_cost(einsum, vectors[einsum.output.tensor], tiles)
            for einsum in graph.einsums
        )


@dataclass(frozen=True, slots=True)
class VectorAssignment:
    """The vectors of all EinSums, the floats that they transfer, and whether no others transfer fewer."""

    vectors: Vectors
    floats: float
    is_optimal: bool


def search(task: TransferTask, limit: float = TABLE_LIMIT) -> VectorAssignment:
    """The vectors that transfer the fewest floats, or an approximation if tables would exceed `limit` numbers."""
    einsums = task.model.graph.einsums
    best, is_optimal = _cheapest(task, einsums, {}, limit), True
    for count in _SHORT_LISTS:
        if best is None:
            task, is_optimal = shortlist(task, count), False
            best = _cheapest(task, einsums, {}, limit)
    if best is not None:
        return VectorAssignment(dict(best.choices), best.cost, is_optimal)
    vectors = improve(task, linearise(task, limit), limit)
    return VectorAssignment(vectors, task.floats(vectors), is_optimal=False)


def shortlist(task: TransferTask, count: int) -> TransferTask:
    """The task with at most `count` vectors of each EinSum: those of the least own cost.

    This is an approximation: other vectors may save repartitions.
    """
    lists = {
        einsum.output.tensor: heapq.nsmallest(count, task.choices[einsum.output.tensor], partial(task.own_cost, einsum))
        for einsum in task.model.graph.einsums
    }
    return replace(task, choices=lists)


def linearise(task: TransferTask, limit: float = TABLE_LIMIT) -> Vectors:
    """The paper's vectors for graphs with shared results: longest paths are optimised separately, one after the other.

    Repartitions are counted only between EinSums of the same path.
    """
    vectors: dict[str, Choice] = {}
    for path in longest_paths(task.model.graph):
        for part in _parts(task, path, limit):
            vectors |= _best_vectors(task, part, {}, limit)
    return vectors


def improve(task: TransferTask, vectors: Vectors, limit: float = TABLE_LIMIT) -> Vectors:
    """Improve vectors: optimise each longest path again with all other vectors fixed, until nothing improves."""
    graph = task.model.graph
    parts = [part for path in longest_paths(graph) for part in _parts(task, path, limit)]
    best = task.floats(vectors)
    for _ in range(_MOST_ROUNDS):
        for part in parts:
            computed = {einsum.output.tensor for einsum in part}
            others = [einsum for einsum in graph.einsums if einsum.output.tensor not in computed]
            input_tiles = {other.output.tensor: result_tiles(other, vectors[other.output.tensor]) for other in others}
            reader_tiles: dict[str, list[Choice]] = {}
            for other in others:
                for operand in other.operands:
                    tiles = reference_tiles(other, operand, vectors[other.output.tensor])
                    reader_tiles.setdefault(operand.tensor, []).append(tiles)
            vectors = {**vectors, **_best_vectors(replace(task, reader_tiles=reader_tiles), part, input_tiles, limit)}
        floats = task.floats(vectors)
        if floats >= best:
            break
        best = floats
    return vectors


def longest_paths(graph: EinGraph) -> Iterator[tuple[EinSum, ...]]:
    """Partition the EinSums into paths: the longest path of the graph, then the longest path of the rest, and so on."""
    remaining = {einsum.output.tensor: einsum for einsum in graph.einsums}
    while remaining:
        length: dict[str, int] = {}
        before: dict[str, str | None] = {}
        for name, einsum in remaining.items():
            read = [operand.tensor for operand in einsum.operands if operand.tensor in remaining]
            before[name] = max(read, key=length.__getitem__, default=None)
            length[name] = 1 + (length[previous] if (previous := before[name]) is not None else 0)
        path: list[EinSum] = []
        last: str | None = max(length, key=length.__getitem__)
        while last is not None:
            path.append(remaining.pop(last))
            last = before[last]
        yield tuple(reversed(path))


def _parts(task: TransferTask, path: tuple[EinSum, ...], limit: float) -> Iterator[tuple[EinSum, ...]]:
    """The path, or recursively its halves, so that the tables of each part keep to the limit."""
    if len(path) == 1 or _cheapest(task, path, {}, limit) is not None:
        yield path
        return
    middle = len(path) // 2
    for half in (path[:middle], path[middle:]):
        yield from _parts(task, half, limit)


def _best_vectors(
    task: TransferTask, part: Sequence[EinSum], input_tiles: Mapping[str, Choice], limit: float
) -> Vectors:
    """The best vectors of some EinSums; `input_tiles` are tiles of results that they read and others compute."""
    best = _cheapest(task, part, input_tiles, limit if len(part) > 1 else math.inf)
    assert best is not None, "the tables of parts keep to the limit"
    return dict(best.choices)


def _cheapest(
    task: TransferTask, part: Sequence[EinSum], input_tiles: Mapping[str, Choice], limit: float
) -> Candidate | None:
    """The best choices of some EinSums; None if the tables, including those of repartitions, exceed the limit."""
    state_counts: dict[str, int] = {}
    for einsum in part:
        choices = task.choices[einsum.output.tensor]
        for operand in einsum.operands:
            if operand.tensor in state_counts:
                required = {reference_tiles(einsum, operand, choice) for choice in choices}
                limit -= state_counts[operand.tensor] * len(required)
        state_counts[einsum.output.tensor] = len({result_tiles(einsum, choice) for choice in choices})
    candidates = cheapest_plans(task, part, input_tiles, 1, limit) if limit >= 0 else None
    return None if candidates is None else candidates[0]

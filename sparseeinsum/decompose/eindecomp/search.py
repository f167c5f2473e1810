"""EinDecomp: the partition vectors of a graph that move the fewest floats.

M[v, d_Z] of the paper is what is left of a vertex once its vectors are eliminated but for what the result is like: the
same elimination as for plans of one machine, here of floats, exact for graphs in which results are shared, too. Where
tables grow too large, every EinSum gets a short list of vectors, or the graph is taken apart into longest paths.

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
from sparseeinsum.decompose.search import Candidate, State
from sparseeinsum.language.eingraph import EinGraph, EinSum

Vectors = Mapping[str, Choice]  # by the name of the result, as tiles

TABLE_LIMIT = 20_000_000  # numbers in all tables together
_SHORT_LISTS = (64, 32)  # vectors of an EinSum (measured: bench/eindecomp.py, a layer of LLaMA on 1,024 workers)
_MOST_ROUNDS = 4  # of improving paths


@dataclass(frozen=True, slots=True)
class TransferTask:
    """What may be chosen, and the floats that it moves: what the elimination of decompose.elimination asks.

    Attributes:
        model: Counts floats.
        choices: Vectors by result.
        wanted: For some results, tiles in which others that are chosen already read them.
    """

    model: TransferModel
    choices: Mapping[str, Sequence[Choice]]
    wanted: Mapping[str, Sequence[Choice]] = field(default_factory=dict)

    def result_state(self, einsum: EinSum, choice: Choice) -> State:
        """The tiles of the result."""
        return result_tiles(einsum, choice)

    def required_state(self, einsum: EinSum, index: int, choice: Choice) -> State:
        """The tiles of an operand."""
        return reference_tiles(einsum, einsum.operands[index], choice)

    def own_cost(self, einsum: EinSum, choice: Choice) -> float:
        """Floats that an EinSum moves, and those to bring its result to readers that are chosen already."""
        name = einsum.output.tensor
        tiles, after = result_tiles(einsum, choice), self.wanted.get(name, ())
        delivered = sum(self.repartition(name, tiles, each) for each in after)
        return self.model.moved(einsum, choice).floats + delivered

    def reading_cost(self, einsum: EinSum, choice: Choice, tiles: Mapping[str, Choice]) -> float:
        """Floats moved to bring operands whose tiles are given here into those that a choice wants."""
        return sum(
            self.repartition(operand.tensor, tiles[operand.tensor], reference_tiles(einsum, operand, choice))
            for operand in einsum.operands
            if operand.tensor in tiles
        )

    def reads(self, einsum: EinSum, choice: Choice) -> int:
        """Once."""
        return 1

    def repartition_costs(
        self, tensor: str, before: Sequence[Choice], wanted: Sequence[tuple[Choice, int]]
    ) -> NDArray[np.float64]:
        """Floats moved by changes of a vector."""
        return self.model.repartition_table(tensor, before, [after for after, _ in wanted])

    def repartition(self, tensor: str, before: Choice, after: Choice) -> float:
        """Floats moved by one change of a vector."""
        return 0.0 if before == after else float(self.model.repartition_table(tensor, [before], [after])[0, 0])

    def floats(self, vectors: Vectors) -> float:
        """All floats that are moved if the EinSums have these vectors."""
        graph = self.model.graph
        tiles = {each.output.tensor: result_tiles(each, vectors[each.output.tensor]) for each in graph.einsums}
        return sum(
            self.model.moved(each, vectors[each.output.tensor]).floats
            + self.reading_cost(each, vectors[each.output.tensor], tiles)
            for each in graph.einsums
        )


@dataclass(frozen=True, slots=True)
class Found:
    """Vectors of all EinSums, the floats that they move, and whether there are none that move fewer."""

    vectors: Vectors
    floats: float
    is_optimal: bool


def search(task: TransferTask, limit: float = TABLE_LIMIT) -> Found:
    """Vectors that move the fewest floats; few, if not the fewest, where tables would exceed a limit."""
    return search_best(task, 1, limit)[0]


def search_best(task: TransferTask, k: int, limit: float = TABLE_LIMIT) -> list[Found]:
    """The k ways to give vectors that move the fewest floats, best first; a single one where tables are too large."""
    exact = _cheapest(task, task.model.graph.einsums, {}, k, limit)
    if exact is not None:
        return [Found(dict(each.choices), each.cost, is_optimal=each is exact[0]) for each in exact]
    for count in _SHORT_LISTS:
        task = shortlisted(task, count)
        few = _cheapest(task, task.model.graph.einsums, {}, 1, limit)
        if few is not None:
            return [Found(dict(few[0].choices), few[0].cost, is_optimal=False)]
    vectors = improved(task, linearised(task, limit), limit)
    return [Found(vectors, task.floats(vectors), is_optimal=False)]


def shortlisted(task: TransferTask, count: int) -> TransferTask:
    """The same with so many vectors of each EinSum: those that move the fewest floats by themselves.

    Others may be worth it by repartitions that they save.
    """
    lists = {
        each.output.tensor: heapq.nsmallest(count, task.choices[each.output.tensor], partial(task.own_cost, each))
        for each in task.model.graph.einsums
    }
    return replace(task, choices=lists)


def linearised(task: TransferTask, limit: float = TABLE_LIMIT) -> Vectors:
    """The paper's vectors for graphs in which results are shared: every longest path alone, one after the other.

    What an EinSum of a path reads from others is taken to cost nothing; results of the same path are not.
    """
    vectors: dict[str, Choice] = {}
    for path in longest_paths(task.model.graph):
        for part in _parts(task, path, limit):
            vectors |= _solved(task, part, {}, limit)
    return vectors


def improved(task: TransferTask, vectors: Vectors, limit: float = TABLE_LIMIT) -> Vectors:
    """Vectors that move no more floats: every longest path anew with all others as they are, until none gets better."""
    graph = task.model.graph
    parts = [part for path in longest_paths(graph) for part in _parts(task, path, limit)]
    best = task.floats(vectors)
    for _ in range(_MOST_ROUNDS):
        for part in parts:
            here = {einsum.output.tensor for einsum in part}
            others = [einsum for einsum in graph.einsums if einsum.output.tensor not in here]
            given = {each.output.tensor: result_tiles(each, vectors[each.output.tensor]) for each in others}
            wanted: dict[str, list[Choice]] = {}
            for each in others:
                for operand in each.operands:
                    tiles = reference_tiles(each, operand, vectors[each.output.tensor])
                    wanted.setdefault(operand.tensor, []).append(tiles)
            vectors = {**vectors, **_solved(replace(task, wanted=wanted), part, given, limit)}
        floats = task.floats(vectors)
        if floats >= best:
            break
        best = floats
    return vectors


def longest_paths(graph: EinGraph) -> Iterator[tuple[EinSum, ...]]:
    """All EinSums, as the longest path of the graph, the longest of what is left then, and so on."""
    left = {einsum.output.tensor: einsum for einsum in graph.einsums}
    while left:
        length: dict[str, int] = {}
        before: dict[str, str | None] = {}
        for name, einsum in left.items():
            read = [operand.tensor for operand in einsum.operands if operand.tensor in left]
            before[name] = max(read, key=length.__getitem__, default=None)
            length[name] = 1 + (length[previous] if (previous := before[name]) is not None else 0)
        path: list[EinSum] = []
        last: str | None = max(length, key=length.__getitem__)
        while last is not None:
            path.append(left.pop(last))
            last = before[last]
        yield tuple(reversed(path))


def _parts(task: TransferTask, path: tuple[EinSum, ...], limit: float) -> Iterator[tuple[EinSum, ...]]:
    """A path, or halves of it, and so on, whose tables keep to the limit."""
    if len(path) == 1 or _cheapest(task, path, {}, 1, limit) is not None:
        yield path
        return
    middle = len(path) // 2
    for half in (path[:middle], path[middle:]):
        yield from _parts(task, half, limit)


def _solved(task: TransferTask, part: Sequence[EinSum], given: Mapping[str, Choice], limit: float) -> Vectors:
    """The best vectors of some EinSums; `given` are tiles of results that they read and others compute."""
    found = _cheapest(task, part, given, 1, limit if len(part) > 1 else math.inf)
    assert found is not None, "the tables of parts keep to the limit"
    return dict(found[0].choices)


def _cheapest(
    task: TransferTask, part: Sequence[EinSum], given: Mapping[str, Choice], k: int, limit: float
) -> list[Candidate] | None:
    """The k best vectors of some EinSums; None where tables would exceed the limit, those of repartitions included."""
    made: dict[str, int] = {}
    for einsum in part:
        choices = task.choices[einsum.output.tensor]
        for operand in einsum.operands:
            if operand.tensor in made:
                wanted = {reference_tiles(einsum, operand, choice) for choice in choices}
                limit -= made[operand.tensor] * len(wanted)
        made[einsum.output.tensor] = len({result_tiles(einsum, choice) for choice in choices})
    return cheapest_plans(task, part, given, k, limit) if limit >= 0 else None

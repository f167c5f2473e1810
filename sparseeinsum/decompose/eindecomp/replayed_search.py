"""EinDecomp: the partition vectors that move the fewest floats as replayed, rather than by the bound of the paper.

The bound assumes that no worker has what its calls read. So its optimum may move more than vectors with a higher bound,
such as those that cut all labels alike. Here the vectors of the least bounds and those of common rules are replayed;
the best are improved by changing the vector of one EinSum at a time. That is no proof of an optimum.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.eindecomp.baselines import even_choices, scheme_choices
from sparseeinsum.decompose.eindecomp.partitioning import Partitioning, partition_graph
from sparseeinsum.decompose.eindecomp.replay import Replay, replay
from sparseeinsum.decompose.eindecomp.vector_search import (
    TransferTask,
    VectorAssignment,
    Vectors,
    linearise,
    search,
    search_best,
)

_LEAST_BOUNDS = 4  # assignments of the least bounds that are replayed
_NEIGHBOURS = 4  # other vectors of an EinSum that are replayed: those of the least bound
_MOST_REPLAYS = 96  # of one search; a replay takes 5 to 100 ms on up to 64 workers (measured: bench/eindecomp.py)


def replay_partitioning(task: TransferTask, partitioning: Partitioning) -> Replay:
    """Simulate the transfer of a partition worker by worker, with the expected density of every tensor."""
    model = task.model
    sizes = {name: tensor.size for name, tensor in partitioning.graph.tensors.items()}
    densities = {name: model.floats(name) / size for name, size in sizes.items() if size and name in model.statistics}
    return replay(partitioning, densities)


def search_replayed(task: TransferTask, workers: int) -> VectorAssignment:
    """The vectors found that move the fewest floats as replayed: no more than those of the least bound or of a rule.

    Args:
        task: The possible vectors; `floats` of the result is the bound of the chosen ones.
        workers: The number of workers.
    """
    replays = _Replays(task, workers)
    best = min(_starting_points(task, workers), key=replays.floats)
    while replays.count < _MOST_REPLAYS:
        neighbours = _neighbours(task, best, _MOST_REPLAYS - replays.count)
        better = min((best, *neighbours), key=replays.floats)
        if better is best:
            break
        best = better
    return VectorAssignment(best, task.floats(best), is_optimal=False)


def _starting_points(task: TransferTask, workers: int) -> Iterator[Vectors]:
    """Vectors of the least bounds, of longest paths, of SQRT, and of a cut along each axis of an input."""
    graph = task.model.graph
    yield from (assignment.vectors for assignment in search_best(task, _LEAST_BOUNDS))
    yield linearise(task)
    yield search(replace(task, choices=even_choices(graph, workers))).vectors
    computed = {einsum.output.tensor for einsum in graph.einsums}
    for name, tensor in graph.tensors.items():
        for axis in range(len(tensor.axes)) if name not in computed else ():
            yield search(replace(task, choices=scheme_choices(graph, workers, [(name, axis)]))).vectors


def _neighbours(task: TransferTask, vectors: Vectors, most: int) -> list[Vectors]:
    """Vectors that differ in one EinSum, those of the least bounds first."""
    neighbours: list[Vectors] = []
    for name, choices in task.choices.items():
        others: Iterator[Vectors] = ({**vectors, name: choice} for choice in choices if choice != vectors[name])
        neighbours += heapq.nsmallest(_NEIGHBOURS, others, task.floats)
    return heapq.nsmallest(most, neighbours, task.floats)


@dataclass(frozen=True, slots=True)
class _Replays:
    """The floats that vectors move, replayed once for equal vectors."""

    task: TransferTask
    workers: int
    _floats: dict[tuple[Choice, ...], float] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The number of replays so far."""
        return len(self._floats)

    def floats(self, vectors: Vectors) -> float:
        """The floats that vectors move."""
        key = tuple(vectors[name] for name in self.task.choices)
        if key not in self._floats:
            assignment = VectorAssignment(vectors, 0.0, is_optimal=False)
            partitioning = partition_graph(self.task, assignment, self.workers)
            self._floats[key] = replay_partitioning(self.task, partitioning).total.floats
        return self._floats[key]

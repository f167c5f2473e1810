"""EinDecomp: a graph with a partition vector for every EinSum, and the floats transferred, by kind."""

import math
from dataclasses import dataclass

from sparseeinsum.decompose.choice import Choice, result_tiles
from sparseeinsum.decompose.eindecomp.partition_vectors import pieces_of
from sparseeinsum.decompose.eindecomp.transfer import MovedFloats
from sparseeinsum.decompose.eindecomp.vector_search import TransferTask, Vectors, search
from sparseeinsum.decompose.search_tasks import reading_cost
from sparseeinsum.language.eingraph import EinGraph, EinSum


@dataclass(frozen=True, slots=True)
class PartitionedEinSum:
    """One EinSum of a partitioned graph.

    Attributes:
        einsum: The EinSum.
        choice: Its partition vector, as the tiles of its labels.
        pieces: Its partition vector, as the number of pieces of every label.
        moved: Floats transferred into its calls and between partial results.
        repartition: Floats transferred to repartition its operands.
    """

    einsum: EinSum
    choice: Choice
    pieces: tuple[tuple[str, int], ...]
    moved: MovedFloats
    repartition: float

    @property
    def calls(self) -> int:
        """The number of kernel calls, including those whose pieces have no entries."""
        return math.prod(count for _, count in self.pieces)

    @property
    def floats(self) -> float:
        """All floats that it transfers."""
        return self.moved.floats + self.repartition


@dataclass(frozen=True, slots=True)
class Partitioning:
    """A partitioned graph.

    Attributes:
        graph: The EinSums.
        workers: The number of workers.
        steps: The EinSums with their vectors.
        is_optimal: Whether no other allowed vectors transfer fewer floats.
    """

    graph: EinGraph
    workers: int
    steps: tuple[PartitionedEinSum, ...]
    is_optimal: bool

    @property
    def join(self) -> float:
        """Floats transferred into the calls of all EinSums."""
        return sum(step.moved.join for step in self.steps)

    @property
    def aggregation(self) -> float:
        """Floats of partial results that are transferred."""
        return sum(step.moved.aggregation for step in self.steps)

    @property
    def repartition(self) -> float:
        """Floats transferred by repartitions between EinSums."""
        return sum(step.repartition for step in self.steps)

    @property
    def floats(self) -> float:
        """All floats that are transferred."""
        return self.join + self.aggregation + self.repartition


def least_partition(task: TransferTask, workers: int) -> Partitioning:
    """The graph with the vectors that transfer the fewest floats."""
    result = search(task)
    return partition_graph(task, result.best, workers, result.is_exact)


def partition_graph(task: TransferTask, vectors: Vectors, workers: int, is_optimal: bool = False) -> Partitioning:
    """The graph with these vectors, and the floats that it transfers."""
    graph = task.model.graph
    tiles = {einsum.output.tensor: result_tiles(einsum, vectors[einsum.output.tensor]) for einsum in graph.einsums}
    steps = []
    for einsum in graph.einsums:
        choice = vectors[einsum.output.tensor]
        bounds = [max(graph.bound_of(einsum, label), 1) for label in einsum.labels]
        steps.append(
            PartitionedEinSum(
                einsum,
                choice,
                tuple(zip(einsum.labels, pieces_of(choice, bounds), strict=True)),
                task.model.moved(einsum, choice),
                reading_cost(task, einsum, choice, tiles),
            )
        )
    return Partitioning(graph, workers, tuple(steps), is_optimal)

"""EinDecomp: a graph whose every EinSum has a partition vector, and the floats that it moves, kind by kind."""

import math
from dataclasses import dataclass

from sparseeinsum.decompose.choice import Choice, result_tiles
from sparseeinsum.decompose.eindecomp.search import Found, TransferTask
from sparseeinsum.decompose.eindecomp.transfer import Moved
from sparseeinsum.decompose.eindecomp.vectors import pieces_of
from sparseeinsum.language.eingraph import EinGraph, EinSum


@dataclass(frozen=True, slots=True)
class PartitionedEinSum:
    """One EinSum of a partitioned graph.

    Attributes:
        einsum: What it computes.
        choice: Its vector, as the tiles of its labels.
        pieces: The same as pieces, by label.
        moved: Floats into its calls and between partial results.
        repartition: Floats to bring operands from the vectors in which they come out into those that it wants.
    """

    einsum: EinSum
    choice: Choice
    pieces: tuple[tuple[str, int], ...]
    moved: Moved
    repartition: float

    @property
    def calls(self) -> int:
        """Kernel calls, whether or not their pieces hold anything."""
        return math.prod(count for _, count in self.pieces)

    @property
    def floats(self) -> float:
        """All that it moves."""
        return self.moved.floats + self.repartition


@dataclass(frozen=True, slots=True)
class Partitioning:
    """A partitioned graph.

    Attributes:
        graph: The EinSums.
        workers: How many there are.
        steps: The EinSums, with their vectors.
        is_optimal: Whether no vectors among those that were allowed move fewer floats.
    """

    graph: EinGraph
    workers: int
    steps: tuple[PartitionedEinSum, ...]
    is_optimal: bool

    @property
    def join(self) -> float:
        """Floats into calls, of all EinSums."""
        return sum(step.moved.join for step in self.steps)

    @property
    def aggregation(self) -> float:
        """Floats of partial results."""
        return sum(step.moved.aggregation for step in self.steps)

    @property
    def repartition(self) -> float:
        """Floats between EinSums."""
        return sum(step.repartition for step in self.steps)

    @property
    def floats(self) -> float:
        """All that are moved."""
        return self.join + self.aggregation + self.repartition


def partitioned(task: TransferTask, found: Found, workers: int) -> Partitioning:
    """What a search found, kind by kind."""
    graph = task.model.graph
    tiles = {each.output.tensor: result_tiles(each, found.vectors[each.output.tensor]) for each in graph.einsums}
    steps = []
    for einsum in graph.einsums:
        choice = found.vectors[einsum.output.tensor]
        bounds = [max(graph.bound_of(einsum, label), 1) for label in einsum.labels]
        steps.append(
            PartitionedEinSum(
                einsum,
                choice,
                tuple(zip(einsum.labels, pieces_of(choice, bounds), strict=True)),
                task.model.moved(einsum, choice),
                task.reading_cost(einsum, choice, tiles),
            )
        )
    return Partitioning(graph, workers, tuple(steps), found.is_optimal)

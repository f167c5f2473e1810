"""EinDecomp: the fewest floats that single EinSums transfer, which rewriting compares for several workers."""

from collections.abc import Mapping, Sequence

from sparseeinsum.decompose.eindecomp.partition_vectors import viable_choices
from sparseeinsum.decompose.eindecomp.transfer import TransferModel
from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.semantics.exactness import Evaluation
from sparseeinsum.statistics.estimate import Statistics


def least_floats(
    graph: EinGraph,
    statistics: Mapping[str, Statistics],
    evaluations: Mapping[str, Evaluation],
    einsums: Sequence[EinSum],
    *,
    workers: int,
) -> list[float]:
    """The floats that some EinSums of a graph transfer, each with its best vector, if no worker has any operand."""
    model = TransferModel(graph, statistics, evaluations)
    return [_least_floats(model, einsum, workers) for einsum in einsums]


def _least_floats(model: TransferModel, einsum: EinSum, workers: int) -> float:
    bounds = [max(model.graph.bound_of(einsum, label), 1) for label in einsum.labels]
    return min(model.moved(einsum, choice).floats for choice in viable_choices(bounds, workers))

"""EinDecomp: the ways to rewrite a graph for several workers, among which a search chooses.

EinSums are compared by the floats that they transfer if no worker has what its call reads, and orders of products by
those that are transferred if each piece of an operand is on a worker that reads it.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial

import numpy as np

from sparseeinsum.decompose.cost import CostConstants
from sparseeinsum.decompose.cost_bounds import seconds_predictor
from sparseeinsum.decompose.eindecomp.partition_vectors import pieces_of, viable_choices
from sparseeinsum.decompose.eindecomp.transfer import TransferModel
from sparseeinsum.decompose.places.blocks import Numbers
from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.rewrite.predicted_costs import CostPredictor
from sparseeinsum.rewrite.stages import Rewriting
from sparseeinsum.semantics.exactness import Evaluation
from sparseeinsum.statistics.estimate import LabelStatistics, Statistics


def rewritings_for(workers: int, constants: CostConstants, is_free: bool) -> list[Rewriting]:
    """For the fewest seconds on one worker and for the fewest floats, with other formulas only if these are free."""
    seconds = seconds_predictor(constants, least=0.0)
    floats = CostPredictor(
        partial(least_floats, workers=workers), least_seconds=0.0, pair_cost=partial(floats_of_pair, workers=workers)
    )
    free = [Rewriting(True, seconds)] if is_free else []
    return [Rewriting(False, seconds), *free, Rewriting(is_free, floats)]


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


def floats_of_pair(
    first: LabelStatistics, second: LabelStatistics, result: LabelStatistics, bounds: Mapping[str, int], *, workers: int
) -> float:
    """The floats that a product of two operands transfers with its best vector, if each piece is where it is read."""
    labels = tuple(dict.fromkeys((*first.labels, *second.labels)))
    vectors = _vectors(tuple(max(bounds[label], 1) for label in labels), workers)
    floats = np.zeros(len(vectors))
    for tensor in (first, second, result):
        others = [position for position, label in enumerate(labels) if label not in tensor.labels]
        floats += tensor.statistics.entries * (vectors[:, others].prod(axis=1) - 1)  # copies, or partial results
    return float(floats.min())


@lru_cache(maxsize=1 << 10)
def _vectors(bounds: tuple[int, ...], workers: int) -> Numbers:
    """All partition vectors of labels with these bounds, in numbers of pieces: a row for each."""
    return np.array([pieces_of(choice, bounds) for choice in viable_choices(bounds, workers)], np.int64)

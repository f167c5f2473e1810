"""Decompose: a lower bound for the cost of a graph, for rewrites that choose between graphs."""

from collections.abc import Mapping

from sparseeinsum.decompose.choices import MOST_LABELS, all_choices
from sparseeinsum.decompose.cost import CostConstants
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.language.eingraph import EinGraph
from sparseeinsum.semantics.exactness import Evaluation
from sparseeinsum.statistics.estimate import Statistics


def least_seconds(
    graph: EinGraph,
    statistics: Mapping[str, Statistics],
    evaluations: Mapping[str, Evaluation],
    constants: CostConstants,
) -> float:
    """Expected seconds of all EinSums, each with its cheapest choice, without repartitions between them."""
    model = CostModel(graph, statistics, evaluations, constants)
    seconds = 0.0
    for einsum in graph.einsums:
        choices = list(all_choices(einsum, {label: graph.bound_of(einsum, label) for label in einsum.labels}))
        if len(einsum.labels) > MOST_LABELS:
            choices = [choices[0], choices[-1]]  # all labels inside arrays, and none
        seconds += min(model.vertex_cost(einsum, choice).seconds for choice in choices)
    return seconds

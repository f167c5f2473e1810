"""Rewriting: the predicted seconds of a few EinSums, which a stage compares before it replaces some of them."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.rewrite.annotated_graphs import AnnotatedGraph, GraphAnnotator
from sparseeinsum.semantics.exactness import Evaluation
from sparseeinsum.statistics.estimate import Statistics


class CostFunction(Protocol):
    """Predicts a lower bound of the seconds that a graph takes."""

    def __call__(
        self, graph: EinGraph, statistics: Mapping[str, Statistics], evaluations: Mapping[str, Evaluation]
    ) -> float:
        """Predicted seconds of all EinSums, each in its cheapest decomposition, without repartitions between them."""


def annotated_subgraph(einsums: Iterable[EinSum], annotated: GraphAnnotator | AnnotatedGraph) -> AnnotatedGraph:
    """A graph of a few EinSums over tensors of `annotated`; its output is the result of the last one."""
    chosen = tuple(einsums)
    computed = {einsum.output.tensor for einsum in chosen}
    read = {operand.tensor for einsum in chosen for operand in einsum.operands} - computed
    return annotated.annotator_for(read).graph_of(chosen, (chosen[-1].output.tensor,))


def predicted_seconds(annotated: AnnotatedGraph, cost: CostFunction) -> float:
    """The predicted seconds of all EinSums of a graph."""
    statistics = {name: tensor.statistics for name, tensor in annotated.tensors.items()}
    return cost(annotated.graph, statistics, annotated.evaluations)

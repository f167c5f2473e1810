"""Rewriting: the predicted seconds of a few EinSums, which a stage compares before it replaces some of them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.rewrite.annotated_graphs import AnnotatedEinSum, AnnotatedGraph, GraphAnnotator
from sparseeinsum.rewrite.contraction_network import PairCost
from sparseeinsum.semantics.exactness import Evaluation
from sparseeinsum.statistics.estimate import Statistics

# To look for cheaper EinSums takes about as long, so that EinSums that are predicted to take less stay as they are.
LEAST_SECONDS = 1e-3


class PriceFunction(Protocol):
    """Predicts lower bounds of the seconds that EinSums take."""

    def __call__(
        self,
        graph: EinGraph,
        statistics: Mapping[str, Statistics],
        evaluations: Mapping[str, Evaluation],
        einsums: Sequence[EinSum],
    ) -> list[float]:
        """Predicted seconds of some EinSums of a graph, each in its cheapest decomposition, without repartitions."""


BoundFunction = Callable[[AnnotatedEinSum], float]


def no_bound(_: AnnotatedEinSum) -> float:
    """The bound for the seconds of an EinSum of which nothing is known."""
    return math.inf


@dataclass(frozen=True, slots=True)
class CostPredictor:
    """Predicts the seconds of graphs; an EinSum that several graphs have is priced once.

    Attributes:
        price: Predicts the seconds of EinSums.
        least_seconds: For EinSums that are predicted to take less together, no cheaper ones are looked for.
        seconds_to_start: The predicted seconds of an EinSum however little it computes.
        pair_cost: By what orders of products are compared, if not by their work.
        most_seconds: At most what `price` predicts for an EinSum whose result is read or returned once, or less than
            that; it takes hardly any time.
    """

    price: PriceFunction
    least_seconds: float = LEAST_SECONDS
    seconds_to_start: float = 0.0
    pair_cost: PairCost | None = None
    most_seconds: BoundFunction = no_bound
    # By the identity of the annotations, which the items keep alive, and by whether the result is read once.
    _prices: dict[tuple[int, bool], tuple[AnnotatedEinSum, float]] = field(default_factory=dict, init=False, repr=False)

    def seconds(self, annotated: AnnotatedGraph) -> float:
        """The predicted seconds of all EinSums of a graph."""
        return sum(self.seconds_by_result(annotated).values())

    def seconds_by_result(self, annotated: AnnotatedGraph) -> dict[str, float]:
        """The predicted seconds of every EinSum of a graph, by its result."""
        readers, outputs = annotated.graph.count_readers(), annotated.graph.outputs
        keys: dict[str, tuple[int, bool]] = {}
        for name, annotation in annotated.annotated.items():
            keys[name] = id(annotation), readers[name] == 1 and name not in outputs
        unpriced = [einsum for einsum in annotated.graph.einsums if keys[einsum.output.tensor] not in self._prices]
        if unpriced:
            statistics = {name: tensor.statistics for name, tensor in annotated.tensors.items()}
            seconds = self.price(annotated.graph, statistics, annotated.evaluations, unpriced)
            for einsum, einsum_seconds in zip(unpriced, seconds, strict=True):
                name = einsum.output.tensor
                self._prices[keys[name]] = annotated.annotated[name], einsum_seconds
        return {name: self._prices[key][1] for name, key in keys.items()}

    def least_seconds_of(self, einsums: int) -> float:
        """The predicted seconds of so many EinSums however little they compute."""
        return einsums * self.seconds_to_start

    def is_worth_replacing(self, annotated: AnnotatedGraph, remaining: int = 0) -> bool:
        """Whether EinSums are predicted to take so long that it pays to look for cheaper ones.

        Args:
            annotated: The EinSums.
            remaining: How many EinSums there are at least in their place, which take time to start.
        """
        return self.seconds(annotated) - self.least_seconds_of(remaining) >= self.least_seconds


def annotated_subgraph(einsums: Iterable[EinSum], annotated: GraphAnnotator | AnnotatedGraph) -> AnnotatedGraph:
    """A graph of a few EinSums over tensors of `annotated`; its output is the result of the last one."""
    chosen = tuple(einsums)
    computed = {einsum.output.tensor for einsum in chosen}
    read = {operand.tensor for einsum in chosen for operand in einsum.operands} - computed
    return annotated.annotator_for(read).graph_of(chosen, (chosen[-1].output.tensor,))

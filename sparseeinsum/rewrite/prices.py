"""Rewriting: a few EinSums of known tensors in, what is exact for them and what they cost at least out."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.rewrite.known import Known
from sparseeinsum.semantics.exactness import Evaluation, ExactGraph, evaluate_exactly
from sparseeinsum.statistics.estimate import Statistics, estimate


class Pricer(Protocol):
    """Tells what a graph costs at least, in seconds."""

    def __call__(
        self, graph: EinGraph, statistics: Mapping[str, Statistics], evaluations: Mapping[str, Evaluation]
    ) -> float:
        """Expected seconds of all EinSums, each as it is cheapest."""


def exact_chain(einsums: Iterable[EinSum], known: Known) -> ExactGraph:
    """A graph of a few EinSums of known tensors, and what is exact for each."""
    chain = tuple(einsums)
    after = Known(dict(known.tensors), known.allows_nonfinite)
    for einsum in chain:
        after.learn(einsum)
    graph = EinGraph(after.shapes(), chain, (chain[-1].output.tensor,))
    return evaluate_exactly(graph, {name: tensor.values for name, tensor in known.tensors.items()})


def price_of(exact: ExactGraph, known: Known, price: Pricer) -> float:
    """Expected seconds of EinSums of known tensors."""
    statistics = {name: tensor.statistics for name, tensor in known.tensors.items()}
    return price(exact.graph, estimate(exact.graph, statistics, exact.evaluations), exact.evaluations)

"""Rewriting: a few EinSums of known tensors in, what is exact for them and what they cost at least out."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.rewrite.known import Known, KnownGraph
from sparseeinsum.semantics.exactness import Evaluation
from sparseeinsum.statistics.estimate import Statistics


class Pricer(Protocol):
    """Tells what a graph costs at least, in seconds."""

    def __call__(
        self, graph: EinGraph, statistics: Mapping[str, Statistics], evaluations: Mapping[str, Evaluation]
    ) -> float:
        """Expected seconds of all EinSums, each as it is cheapest."""


def exact_chain(einsums: Iterable[EinSum], known: Known | KnownGraph) -> KnownGraph:
    """A graph of a few EinSums of known tensors, of which the last is asked for."""
    chain = tuple(einsums)
    computed = {einsum.output.tensor for einsum in chain}
    read = {operand.tensor for einsum in chain for operand in einsum.operands} - computed
    return known.of(read).graph_of(chain, (chain[-1].output.tensor,))


def price_of(chain: KnownGraph, price: Pricer) -> float:
    """Expected seconds of EinSums of known tensors."""
    statistics = {name: tensor.statistics for name, tensor in chain.tensors.items()}
    return price(chain.graph, statistics, chain.evaluations)

"""Rewriting: sums to which absent entries contribute in; sums of parts to which none does out, where cheaper."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Protocol

from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.rewrite.compensation import compensated
from sparseeinsum.rewrite.known import Known
from sparseeinsum.semantics.exactness import Evaluation, ExactGraph, Values, evaluate_exactly
from sparseeinsum.statistics.estimate import Statistics, estimate

# Parts that cancel lose digits: they must be cheaper by so much than to make operands dense.
_WORTH = 0.5


class Pricer(Protocol):
    """Tells what a graph costs at least, in seconds."""

    def __call__(
        self, graph: EinGraph, statistics: Mapping[str, Statistics], evaluations: Mapping[str, Evaluation]
    ) -> float:
        """Expected seconds of all EinSums, each as it is cheapest."""


def compensate(
    graph: EinGraph, statistics: Mapping[str, Statistics], values: Mapping[str, Values], price: Pricer
) -> EinGraph:
    """Replace sums whose operands would have to be dense by sums of parts that need not, where that is cheaper.

    Args:
        graph: EinSums of one or two operands, in topological order; values that turn NaN or infinite are detected.
        statistics: Statistics of the inputs.
        values: What is known of the inputs' values.
        price: Knows what EinSums cost.
    """
    known = Known.of_inputs(graph.tensors, statistics, values, allows_nonfinite=False)
    einsums: list[EinSum] = []
    for einsum in graph.einsums:
        parts = _cheaper(einsum, known, graph, price) if any(known.learn(einsum).matters) else None
        for part in parts or ():
            known.learn(part)
        einsums += parts or (einsum,)
    return EinGraph(MappingProxyType(known.shapes()), tuple(einsums), graph.outputs)


def _cheaper(einsum: EinSum, known: Known, graph: EinGraph, price: Pricer) -> tuple[EinSum, ...] | None:
    """Parts that are cheaper than a sum whose operands would have to be dense; None where there are none."""
    parts = compensated(einsum, {**graph.tensors, **known.shapes()})
    if parts is None:
        return None
    whole, apart = _exact([einsum], known), _exact(parts, known)
    is_exact = _is_surely_finite(whole) and _is_surely_finite(apart)
    return parts if is_exact and _price(apart, known, price) < _WORTH * _price(whole, known, price) else None


def _is_surely_finite(exact: ExactGraph) -> bool:
    """Whether no value that the EinSums read or compute can be NaN or infinite."""
    read = {operand.tensor for einsum in exact.graph.einsums for operand in einsum.operands}
    detects = any(evaluation.detects_nonfinite for evaluation in exact.evaluations.values())
    return not detects and all(exact.values[name].entries.is_finite for name in read)


def _exact(einsums: Iterable[EinSum], known: Known) -> ExactGraph:
    """A graph of a few EinSums of known tensors, and what is exact for each."""
    chain = tuple(einsums)
    after = Known(dict(known.tensors), known.allows_nonfinite)
    for einsum in chain:
        after.learn(einsum)
    graph = EinGraph(after.shapes(), chain, (chain[-1].output.tensor,))
    return evaluate_exactly(graph, {name: tensor.values for name, tensor in known.tensors.items()})


def _price(exact: ExactGraph, known: Known, price: Pricer) -> float:
    statistics = {name: tensor.statistics for name, tensor in known.tensors.items()}
    return price(exact.graph, estimate(exact.graph, statistics, exact.evaluations), exact.evaluations)

"""Rewriting: sums to which absent entries contribute in; sums of parts to which none does out, where cheaper."""

from collections.abc import Mapping
from types import MappingProxyType

from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.rewrite.compensation import compensated
from sparseeinsum.rewrite.known import Known
from sparseeinsum.rewrite.prices import Pricer, exact_chain, price_of
from sparseeinsum.semantics.exactness import ExactGraph, Values
from sparseeinsum.statistics.estimate import Statistics

# Parts that cancel lose digits: they must be cheaper by so much than to make operands dense.
_WORTH = 0.5


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
    whole, apart = exact_chain([einsum], known), exact_chain(parts, known)
    is_exact = _is_surely_finite(whole) and _is_surely_finite(apart)
    return parts if is_exact and price_of(apart, known, price) < _WORTH * price_of(whole, known, price) else None


def _is_surely_finite(exact: ExactGraph) -> bool:
    """Whether no value that the EinSums read or compute can be NaN or infinite."""
    read = {operand.tensor for einsum in exact.graph.einsums for operand in einsum.operands}
    detects = any(evaluation.detects_nonfinite for evaluation in exact.evaluations.values())
    return not detects and all(exact.values[name].entries.is_finite for name in read)

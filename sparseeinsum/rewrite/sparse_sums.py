"""Rewriting: sums to which absent entries contribute in; sums of parts to which none does out, where cheaper."""

from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.rewrite.compensation import compensated
from sparseeinsum.rewrite.known import Known, KnownGraph
from sparseeinsum.rewrite.prices import Pricer, exact_chain, price_of

# Parts that cancel lose digits: they must be cheaper by so much than to make operands dense.
_WORTH = 0.5


def compensate(whole: KnownGraph, price: Pricer) -> KnownGraph:
    """Replace sums whose operands would have to be dense by sums of parts that need not, where that is cheaper.

    Args:
        whole: The EinSums; values that turn NaN or infinite are detected.
        price: Knows what EinSums cost.
    """
    known = whole.anew()
    einsums: list[EinSum] = []
    for einsum in whole.graph.einsums:
        parts = _cheaper(einsum, known, whole, price) if any(known.learn(einsum).matters) else None
        for part in parts or ():
            known.learn(part)
        einsums += parts or (einsum,)
    return known.graph_of(einsums, whole.graph.outputs)


def _cheaper(einsum: EinSum, known: Known, whole: KnownGraph, price: Pricer) -> tuple[EinSum, ...] | None:
    """Parts that are cheaper than a sum whose operands would have to be dense; None where there are none."""
    parts = compensated(einsum, {**whole.graph.tensors, **known.shapes()})
    if parts is None:
        return None
    together, apart = exact_chain([einsum], known), exact_chain(parts, known)
    is_exact = _is_surely_finite(together) and _is_surely_finite(apart)
    return parts if is_exact and price_of(apart, price) < _WORTH * price_of(together, price) else None


def _is_surely_finite(chain: KnownGraph) -> bool:
    """Whether no value that the EinSums read or compute can be NaN or infinite."""
    tensors = chain.tensors
    read = {operand.tensor for einsum in chain.graph.einsums for operand in einsum.operands}
    detects = any(evaluation.detects_nonfinite for evaluation in chain.evaluations.values())
    return not detects and all(tensors[name].is_finite for name in read)

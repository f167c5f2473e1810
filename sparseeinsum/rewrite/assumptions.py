"""Rewriting: a rewritten graph and other values of its inputs in, why rewriting may not be right for them out.

What is absent is dealt with anew for all data. But to contract in another order, or to take a sum apart, is the same
for finite values only; so values must lie where they lay, or be as surely finite as they were.
"""

import math
from collections.abc import Collection, Mapping

from sparseeinsum.language.eingraph import EinGraph, write_einsum
from sparseeinsum.operators.ranges import NOTHING
from sparseeinsum.rewrite.common_subexpressions import merge_common_subexpressions
from sparseeinsum.semantics.exactness import Values, evaluate_exactly


def rewritten_results(written: EinGraph, graph: EinGraph) -> tuple[str, ...]:
    """Results of EinSums of a graph that stand otherwise, or not at all, in the one that it was rewritten from.

    To compute once what several EinSums compute is right for all values, and does not count.
    """
    merged = merge_common_subexpressions(written, {})
    texts = {write_einsum(einsum) for einsum in (*written.einsums, *merged.einsums)}
    return tuple(einsum.output.tensor for einsum in graph.einsums if write_einsum(einsum) not in texts)


def broken_assumption(
    graph: EinGraph,
    rewritten: Collection[str],
    then: Mapping[str, Values],
    now: Mapping[str, Values],
    allows_nonfinite: bool,
) -> str | None:
    """Why rewriting that was right for some values may not be for others; None where it is.

    Args:
        graph: As rewritten.
        rewritten: Results of EinSums that are not as they were written.
        then: What was known of the inputs' values.
        now: What is known of those of all inputs.
        allows_nonfinite: Whether results that turn NaN or infinite are computed with; else they are detected.
    """
    beyond = [name for name in then if not _is_within(now[name], then[name])]
    if not (rewritten and beyond):
        return None
    names = ", ".join(rewritten)
    for name in beyond:
        if allows_nonfinite:
            return (
                f"tensor {name} has values beyond those that the plan was made for, and where NaN and infinity are "
                f"allowed the way in which it computes {names} is exact for those alone"
            )
        if _is_finite(name, then[name], graph) and not _is_finite(name, now[name], graph):
            return (
                f"tensor {name} has NaN or infinity now, and the way in which the plan computes {names} is exact for "
                "finite values alone"
            )
    return _overflow(graph, rewritten, then, now)


def _overflow(
    graph: EinGraph, rewritten: Collection[str], then: Mapping[str, Values], now: Mapping[str, Values]
) -> str | None:
    """A rewritten result that may turn infinite, which it could not before."""
    before, after = (evaluate_exactly(graph, values).evaluations for values in ({**now, **then}, now))
    for name in rewritten:
        if after[name].detects_nonfinite and not before[name].detects_nonfinite:
            return (
                f"with the values that the inputs have now {name} may turn infinite, which it could not with those "
                "that the plan was made for"
            )
    return None


def _is_within(now: Values, then: Values) -> bool:
    if now.has_fill and not then.has_fill:
        return False
    if now.entries == NOTHING:
        return True
    may_be_nan = then.entries.may_be_nan or not now.entries.may_be_nan
    return may_be_nan and then.entries.low <= now.entries.low and now.entries.high <= then.entries.high


def _is_finite(name: str, values: Values, graph: EinGraph) -> bool:
    """Whether no value is NaN or infinite, the fill included where some index holds it."""
    return values.entries.is_finite and not (values.has_fill and math.isinf(abs(graph.tensors[name].fill)))

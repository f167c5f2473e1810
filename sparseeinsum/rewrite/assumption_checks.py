"""Rewriting: tells why a rewritten graph may be wrong for other values of its inputs.

How absent entries are treated is decided again whenever a plan is made for data. But another contraction order, or a
sum that is split, gives the same for finite values only. So new values must lie within the range of the old ones, or
must be as surely finite as those were.
"""

import math
from collections.abc import Collection, Mapping

from sparseeinsum.language.eingraph import EinGraph
from sparseeinsum.operators.ranges import EMPTY_RANGE
from sparseeinsum.semantics.exactness import ValueFacts, decide_evaluations


def rewritten_results(written: EinGraph, merged: EinGraph, graph: EinGraph) -> tuple[str, ...]:
    """Results of EinSums that are not in the written graph in the same form.

    EinSums that were merely merged, because they compute the same, do not count: that is right for all values.

    Args:
        written: The EinSums as they were written.
        merged: The same after `merge_common_subexpressions`.
        graph: The same after rewriting.
    """
    same = {einsum.output.tensor: {einsum} for einsum in written.einsums}
    for einsum in merged.einsums:
        same[einsum.output.tensor].add(einsum)
    return tuple([einsum.output.tensor for einsum in graph.einsums if einsum not in same.get(einsum.output.tensor, ())])


def broken_assumption(
    graph: EinGraph,
    rewritten: Collection[str],
    planned: Mapping[str, ValueFacts],
    current: Mapping[str, ValueFacts],
    allows_nonfinite: bool,
    detects_same: bool = False,
) -> str | None:
    """Why a rewriting that was right for the planned values may be wrong for the current ones; None where it is right.

    Args:
        graph: The graph after rewriting.
        rewritten: Results of EinSums that are not as they were written.
        planned: Facts about the values of the inputs when the plan was made.
        current: Facts about the values of all inputs now.
        allows_nonfinite: Whether the graph computes with values that turn NaN or infinite; otherwise a run detects
            them.
        detects_same: Whether runs are known to detect NaN and infinity in the same results for both.
    """
    exceeding = [name for name in planned if not _is_within(current[name], planned[name])]
    if not (rewritten and exceeding):
        return None
    names = ", ".join(rewritten)
    for name in exceeding:
        if allows_nonfinite:
            return (
                f"tensor {name} has values outside the range that the plan was made for, and where NaN and infinity "
                f"are allowed the plan computes {names} exactly for that range only"
            )
        if _is_finite(name, planned[name], graph) and not _is_finite(name, current[name], graph):
            return (
                f"tensor {name} has NaN or infinity now, and the plan computes {names} exactly for finite values only"
            )
    return None if detects_same else _overflow(graph, rewritten, planned, current)


def _overflow(
    graph: EinGraph, rewritten: Collection[str], planned: Mapping[str, ValueFacts], current: Mapping[str, ValueFacts]
) -> str | None:
    """The message about a rewritten result that may become infinite for `current` values, but not for `planned`."""
    planned_evaluations, current_evaluations = (
        decide_evaluations(graph, values).evaluations for values in ({**current, **planned}, current)
    )
    for name in rewritten:
        if current_evaluations[name].detects_nonfinite and not planned_evaluations[name].detects_nonfinite:
            return (
                f"with the current values of the inputs {name} may become infinite, which it could not with those that "
                "the plan was made for"
            )
    return None


def _is_within(current: ValueFacts, planned: ValueFacts) -> bool:
    if (current.has_fill and not planned.has_fill) or (planned.has_entries and not current.has_entries):
        return False
    if current.entries == EMPTY_RANGE:
        return True
    may_be_nan = planned.entries.may_be_nan or not current.entries.may_be_nan
    return may_be_nan and planned.entries.low <= current.entries.low and current.entries.high <= planned.entries.high


def _is_finite(name: str, values: ValueFacts, graph: EinGraph) -> bool:
    """Whether all entries are finite, and the fill is where some index holds it."""
    return values.entries.is_finite and not (values.has_fill and math.isinf(abs(graph.tensors[name].fill)))

"""Decompose: the checkpoints of a plan: results that are worth a table, so that a run can compare their size.

If the estimate was right, the table was a waste. So it must cost much less than what is computed after it.
"""

import math
from collections.abc import Collection

from sparseeinsum.decompose.decomposed_graph import DecomposedGraph
from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.staging import TableCost
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.semantics.exactness import JoinKind
from sparseeinsum.statistics.estimate import Statistics, by_label

# To create, read and drop a temporary table of few rows instead of inlining it took 0.5 ms. Rows take some 1 ns more
# per byte, or less if several threads aggregate them anyway.
_TABLE_COST = TableCost(table_seconds=5e-4, seconds_per_byte=1e-9)

# How often an estimate is so wrong that another plan for the rest is better: the weight of what that could save.
_CHANCE = 0.05
# The largest factor between actual and expected tuples that is considered. A result that is expected to be dense cannot
# have more tuples.
_MOST_TIMES = 100.0
_NEARLY_ALL = 0.99
# What all tables together may cost: this share of the plan's seconds, or so many seconds if that is more.
_MOST_SHARE, _LEAST_BUDGET = 0.05, 1e-3


def replanning_points(plan: DecomposedGraph, model: CostModel, staged: Collection[str]) -> tuple[str, ...]:
    """Results to keep in tables in addition to those that are kept there anyway, in topological order.

    Their size does not follow from the statistics of the inputs, and their table costs less than the expected gain:
    a share of the seconds that all later EinSums would take in excess if the result were as large as possible.

    Args:
        plan: The plan.
        model: The cost model that priced it.
        staged: Results that are kept in tables anyway.
    """
    later = _later_seconds(plan)
    times = possible_times(model)
    cost, gain = {}, {}
    for step in plan.steps:
        name = step.einsum.output.tensor
        if name in times and name not in staged and not step.computed_in:
            seconds = _TABLE_COST.seconds(step, model)
            expected = _CHANCE * later[name] * (min(times[name], _MOST_TIMES) - 1)
            if seconds < expected:
                cost[name], gain[name] = seconds, expected
    chosen = set()
    budget = max(_MOST_SHARE * plan.seconds, _LEAST_BUDGET)
    for name in sorted(cost, key=lambda name: cost[name] / gain[name]):
        if cost[name] <= budget:
            chosen.add(name)
            budget -= cost[name]
    return tuple(name for name in cost if name in chosen)


def _later_seconds(plan: DecomposedGraph) -> dict[str, float]:
    """For every result, the expected seconds of everything that is computed after it."""
    later: dict[str, float] = {}
    seconds = plan.delivery_seconds
    for step in reversed(plan.steps):
        later[step.einsum.output.tensor] = seconds
        seconds += step.seconds
    return later


def possible_times(model: CostModel) -> dict[str, float]:
    """For results of uncertain size, the largest possible factor between actual and expected entries.

    The size is uncertain if it depends on which entries of the operands match, or if an operand's size is uncertain.
    """
    times: dict[str, float] = {}
    for einsum in model.graph.einsums:
        name = einsum.output.tensor
        of_operands = [times[operand.tensor] for operand in einsum.operands if operand.tensor in times]
        if model.evaluations[name].values.has_fill and (of_operands or not _is_certain(einsum, model)):
            expected = max(model.statistics[name].entries, 1.0)
            most = _most_matches(einsum, model) * math.prod(of_operands)
            times[name] = max(min(most, model.graph.tensors[name].size) / expected, 1.0)
    return times


def _most_matches(einsum: EinSum, model: CostModel) -> float:
    """Tuples of the join of an EinSum's operands, if one shared label determines the other shared labels."""
    operands = [by_label(operand.labels, model.statistics[operand.tensor]) for operand in einsum.operands]
    if len(operands) == 1:
        return operands[0].statistics.entries
    u, v = operands
    distinct_u, distinct_v = (operand.distinct(dict.fromkeys(operand.labels, 1)) for operand in operands)
    pairs = u.statistics.entries * v.statistics.entries
    bounds = [pairs / max(distinct_u[label], distinct_v[label], 1.0) for label in distinct_u if label in distinct_v]
    for first, second in ((u, v), (v, u)):
        if set(first.labels) <= set(second.labels):  # each entry of the second matches at most one of the first
            bounds.append(second.statistics.entries)
    return min(bounds, default=pairs)


def _is_certain(einsum: EinSum, model: CostModel) -> bool:
    """Whether the number of entries of a result follows from the statistics of its operands."""
    evaluation = model.evaluations[einsum.output.tensor]
    absence, *_ = evaluation.absence_options(tuple(frozenset(operand.labels) for operand in einsum.operands))
    if absence.join != JoinKind.INNER:  # at least as many as the larger operand has, at most as many as both together
        return not einsum.aggregated
    sparse = [
        model.statistics[operand.tensor]
        for operand, dense in zip(einsum.operands, absence.dense, strict=True)
        if not dense and not _is_box(model.statistics[operand.tensor])
    ]
    return len(sparse) < 2 or any(map(_is_permutation, sparse))


def _is_box(statistics: Statistics) -> bool:
    """Whether (nearly) all combinations of indices that have entries are entries: then distinct counts tell all."""
    return statistics.entries >= _NEARLY_ALL * math.prod(statistics.distinct)


def _is_permutation(statistics: Statistics) -> bool:
    """Whether every index of every axis has exactly one entry, as in a permutation matrix."""
    axes = zip(statistics.distinct, statistics.shape, strict=True)
    return all(values == bound == statistics.entries for values, bound in axes)

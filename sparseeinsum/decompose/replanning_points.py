"""Decompose: which results of a plan are worth a table, so that a run sees their sizes and may go on better.

A table costs little, but what reads it must cost much more: estimates that are right make it a waste.
"""

import math
from collections.abc import Collection

from sparseeinsum.decompose.model import CostModel
from sparseeinsum.decompose.plan import DecomposedGraph, Step
from sparseeinsum.language.eingraph import EinSum
from sparseeinsum.semantics.exactness import JoinKind
from sparseeinsum.statistics.estimate import Statistics, by_label

# A temporary table of few rows, made, read and dropped instead of inlined, took 0.5 ms; rows take some 1 ns a byte
# more, less where they are aggregated by several threads anyway.
_TABLE_SECONDS = 5e-4
_TABLE_SECONDS_PER_BYTE = 1e-9

# How often an estimate is so wrong that the rest is computed otherwise: what is at stake counts for so much.
_CHANCE = 0.05
_MOST_TIMES = 100.0  # as many tuples as expected, that are thought of; what is full as it is has nothing at stake
_NEARLY_ALL = 0.99
_MOST_SHARE, _LEAST_BUDGET = 0.05, 1e-3  # of a plan's seconds, but always so many, that tables may take together


def replanning_points(plan: DecomposedGraph, model: CostModel, staged: Collection[str]) -> tuple[str, ...]:
    """Results to keep in tables besides those that are kept there anyway, in topological order.

    They are those whose size the statistics of the inputs do not tell for sure, and whose table costs less than may be
    expected to be gained: a share of what all that is computed later would take if they were as large as they can be.

    Args:
        plan: Choices for all EinSums.
        model: Priced them.
        staged: Results that are kept in tables anyway.
    """
    later = _later_seconds(plan)
    times = possible_times(model)
    cost, gain = {}, {}
    for step in plan.steps:
        name = step.einsum.output.tensor
        if name in times and name not in staged:
            seconds = _table_seconds(step, model)
            expected = _CHANCE * later[name] * (min(times[name], _MOST_TIMES) - 1)
            if seconds < expected:
                cost[name], gain[name] = seconds, expected
    chosen = set()
    budget = max(_MOST_SHARE * plan.seconds, _LEAST_BUDGET)
    for name in sorted(cost, key=lambda each: cost[each] / gain[each]):
        if cost[name] <= budget:
            chosen.add(name)
            budget -= cost[name]
    return tuple(name for name in cost if name in chosen)


def _later_seconds(plan: DecomposedGraph) -> dict[str, float]:
    """For every result, what all that is computed after it is expected to take."""
    later: dict[str, float] = {}
    seconds = plan.delivery_seconds
    for step in reversed(plan.steps):
        later[step.einsum.output.tensor] = seconds
        seconds += step.seconds
    return later


def _table_seconds(step: Step, model: CostModel) -> float:
    name, tiles = step.einsum.output.tensor, step.result.tiles
    return _TABLE_SECONDS + model.tuples(name, tiles) * model.tuple_bytes(name, tiles) * _TABLE_SECONDS_PER_BYTE


def possible_times(model: CostModel) -> dict[str, float]:
    """Results whose entries depend on which entries of operands meet: how many times more there may be than expected.

    Results that are computed from such ones are among them.
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
    """Tuples of the join of an EinSum's operands, if one of the labels that they share tells the others."""
    operands = [by_label(operand.labels, model.statistics[operand.tensor]) for operand in einsum.operands]
    if len(operands) == 1:
        return operands[0].statistics.entries
    u, v = operands
    distinct_u, distinct_v = (each.distinct(dict.fromkeys(each.labels, 1)) for each in operands)
    pairs = u.statistics.entries * v.statistics.entries
    found = [pairs / max(distinct_u[label], distinct_v[label], 1.0) for label in distinct_u if label in distinct_v]
    for one, other in ((u, v), (v, u)):
        if set(one.labels) <= set(other.labels):  # each entry of the other has one partner at most
            found.append(other.statistics.entries)
    return min(found, default=pairs)


def _is_certain(einsum: EinSum, model: CostModel) -> bool:
    """Whether statistics of the operands tell the entries of a result."""
    evaluation = model.evaluations[einsum.output.tensor]
    absence, *_ = evaluation.absences(tuple(frozenset(operand.labels) for operand in einsum.operands))
    if absence.join != JoinKind.INNER:  # what either operand has: between as many as the larger has, and as both
        return not einsum.aggregated
    sparse = [
        model.statistics[operand.tensor]
        for operand, dense in zip(einsum.operands, absence.dense, strict=True)
        if not dense and not _is_box(model.statistics[operand.tensor])
    ]
    return len(sparse) < 2 or any(map(_is_permutation, sparse))


def _is_box(statistics: Statistics) -> bool:
    """Whether there is an entry wherever every index has some: then counts by axis tell what it meets."""
    return statistics.entries >= _NEARLY_ALL * math.prod(statistics.distinct)


def _is_permutation(statistics: Statistics) -> bool:
    """Whether there is exactly one entry at every index of every axis, as a diagonal matrix has."""
    axes = zip(statistics.distinct, statistics.shape, strict=True)
    return all(values == bound == statistics.entries for values, bound in axes)

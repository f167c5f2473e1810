"""Decompose: approximate plans of a graph with shared results, optimised in rounds of EinSums that form trees.

Source: SparseEinSum, section 8.2: a maximal sub-graph in which no result is read twice is optimised, and its
decompositions are fixed; this is repeated with the rest.
"""

import heapq
import itertools
from collections.abc import Iterator, Mapping, Sequence

from sparseeinsum.decompose.elimination import cheapest_plans
from sparseeinsum.decompose.search_tasks import Candidate, GraphPricing, State, reading_cost
from sparseeinsum.language.eingraph import EinGraph, EinSum


def tree_rounds(graph: EinGraph) -> list[tuple[EinSum, ...]]:
    """The paper's tree cover: maximal rounds, in topological order, none of which reads a result of its own twice."""
    rounds = []
    remaining = list(graph.einsums)
    computed = {einsum.output.tensor for einsum in graph.einsums}
    while remaining:
        chosen: list[EinSum] = []
        read: set[str] = set()
        own: set[str] = set()
        for einsum in remaining:
            pending = [operand.tensor for operand in einsum.operands if operand.tensor in computed]
            if all(name in own for name in pending) and not read & set(pending) and len(set(pending)) == len(pending):
                chosen.append(einsum)
                own.add(einsum.output.tensor)
                read |= set(pending)
        rounds.append(tuple(chosen))
        computed -= own
        remaining = [einsum for einsum in remaining if einsum.output.tensor not in own]
    return rounds


def single_rounds(graph: EinGraph) -> list[tuple[EinSum, ...]]:
    """Rounds of one EinSum each: the greedy baseline (SparseEinSum, section 9.3)."""
    return [(einsum,) for einsum in graph.einsums]


def search_rounds(task: GraphPricing, rounds: Sequence[tuple[EinSum, ...]], k: int) -> list[Candidate]:
    """The k cheapest plans that result from optimising one round of EinSums after the other, best first."""
    producers = {einsum.output.tensor: einsum for einsum in task.graph.einsums}
    partial_plans = [Candidate(0.0, ())]
    for einsums in rounds:
        partial_plans = _extend(task, einsums, partial_plans, producers, k)
    return [Candidate(plan.cost, tuple(sorted(plan.choices))) for plan in partial_plans]


def _extend(
    task: GraphPricing,
    einsums: tuple[EinSum, ...],
    plans: list[Candidate],
    producers: Mapping[str, EinSum],
    k: int,
) -> list[Candidate]:
    """The k cheapest extensions of plans for earlier rounds by the EinSums of the next round, best first."""
    plans_by_state: dict[tuple[tuple[str, State], ...], list[Candidate]] = {}
    extended = []
    for plan in plans:
        fixed = _fixed_states(task, plan, einsums, producers)
        key = tuple(sorted(fixed.items()))
        if key not in plans_by_state:
            plans_by_state[key] = _optimise_round(task, einsums, fixed, k)
        extended.append(
            [
                Candidate(plan.cost + following.cost, plan.choices + following.choices)
                for following in plans_by_state[key]
            ]
        )
    return list(itertools.islice(heapq.merge(*extended), k))


def _optimise_round(
    task: GraphPricing, einsums: tuple[EinSum, ...], fixed: Mapping[str, State], k: int
) -> list[Candidate]:
    if len(einsums) == 1:
        return heapq.nsmallest(k, _candidates(task, einsums[0], fixed))
    candidates = cheapest_plans(task, einsums, fixed, k)
    assert candidates is not None, "there was no limit"
    return candidates


def _candidates(task: GraphPricing, einsum: EinSum, fixed: Mapping[str, State]) -> Iterator[Candidate]:
    """A candidate for every choice of one EinSum."""
    name = einsum.output.tensor
    for choice in task.choices[name]:
        seconds = task.own_cost(einsum, choice) + reading_cost(task, einsum, choice, fixed)
        yield Candidate(seconds, ((name, choice),))


def _fixed_states(
    task: GraphPricing, plan: Candidate, einsums: tuple[EinSum, ...], producers: Mapping[str, EinSum]
) -> dict[str, State]:
    """The states of results that a round reads and earlier rounds have fixed; `producers` has the EinSum of each."""
    chosen = dict(plan.choices)
    computed = {einsum.output.tensor for einsum in einsums}
    read = sorted({operand.tensor for einsum in einsums for operand in einsum.operands} - computed)
    return {name: task.result_state(producers[name], chosen[name]) for name in read if name in producers}

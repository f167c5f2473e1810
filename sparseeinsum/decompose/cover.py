"""Decompose: graphs whose results are read more than once, as rounds of trees that the dynamic programme can take.

Source: SparseEinSum, section 8.2: a maximal sub-graph in which no result is read twice is optimised, its
decompositions are fixed, and so on until all are.
"""

import heapq
import itertools
from collections.abc import Iterator, Mapping, Sequence

from sparseeinsum.decompose.elimination import cheapest_plans
from sparseeinsum.decompose.search import Candidate, GraphPricing, State
from sparseeinsum.language.eingraph import EinGraph, EinSum


def tree_rounds(graph: EinGraph) -> list[tuple[EinSum, ...]]:
    """The paper's cover: each round is maximal, in topological order, without reading a result of its own twice."""
    rounds = []
    remaining = list(graph.einsums)
    computed = {einsum.output.tensor for einsum in graph.einsums}
    while remaining:
        chosen: list[EinSum] = []
        read: set[str] = set()
        here: set[str] = set()
        for einsum in remaining:
            pending = [operand.tensor for operand in einsum.operands if operand.tensor in computed]
            if all(name in here for name in pending) and not read & set(pending) and len(set(pending)) == len(pending):
                chosen.append(einsum)
                here.add(einsum.output.tensor)
                read |= set(pending)
        rounds.append(tuple(chosen))
        computed -= here
        remaining = [einsum for einsum in remaining if einsum.output.tensor not in here]
    return rounds


def single_rounds(graph: EinGraph) -> list[tuple[EinSum, ...]]:
    """One EinSum a round: what the greedy baseline of the paper's section 9.3 optimises, one after the other."""
    return [(einsum,) for einsum in graph.einsums]


def search_rounds(task: GraphPricing, rounds: Sequence[tuple[EinSum, ...]], k: int) -> list[Candidate]:
    """The k cheapest plans found by optimising the EinSums of one round after the other, best first."""
    states = [Candidate(0.0, ())]
    for einsums in rounds:
        states = _extended(task, einsums, states, k)
    return [Candidate(state.cost, tuple(sorted(state.choices))) for state in states]


def _extended(task: GraphPricing, einsums: tuple[EinSum, ...], states: list[Candidate], k: int) -> list[Candidate]:
    """The k cheapest ways to go on from plans for earlier rounds, best first."""
    known: dict[tuple[tuple[str, State], ...], list[Candidate]] = {}
    extended = []
    for state in states:
        fixed = _fixed_states(task, state, einsums)
        key = tuple(sorted(fixed.items()))
        if key not in known:
            known[key] = _optimised(task, einsums, fixed, k)
        extended.append([Candidate(state.cost + each.cost, state.choices + each.choices) for each in known[key]])
    return list(itertools.islice(heapq.merge(*extended), k))


def _optimised(task: GraphPricing, einsums: tuple[EinSum, ...], fixed: Mapping[str, State], k: int) -> list[Candidate]:
    if len(einsums) == 1:
        return heapq.nsmallest(k, _choices(task, einsums[0], fixed))
    found = cheapest_plans(task, einsums, fixed, k)
    assert found is not None, "there was no limit"
    return found


def _choices(task: GraphPricing, einsum: EinSum, fixed: Mapping[str, State]) -> Iterator[Candidate]:
    """Every choice of one EinSum."""
    name = einsum.output.tensor
    for choice in task.choices[name]:
        seconds = task.own_cost(einsum, choice) + task.reading_cost(einsum, choice, fixed)
        yield Candidate(seconds, ((name, choice),))


def _fixed_states(task: GraphPricing, state: Candidate, einsums: tuple[EinSum, ...]) -> dict[str, State]:
    """States, fixed by earlier rounds, of the results that a round reads."""
    chosen = dict(state.choices)
    here = {einsum.output.tensor for einsum in einsums}
    read = {operand.tensor for einsum in einsums for operand in einsum.operands}
    return {
        einsum.output.tensor: task.result_state(einsum, chosen[einsum.output.tensor])
        for einsum in task.graph.einsums
        if einsum.output.tensor in read - here
    }

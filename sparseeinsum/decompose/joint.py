"""Decompose: the cheapest plans of a whole graph, or approximations where that is too large.

The SparseEinSum paper fixes the decompositions of shared results one after the other (section 8.2); here they are
chosen together.
"""

from typing import TypeVar

from sparseeinsum.decompose.cover import search_rounds, single_rounds, tree_rounds
from sparseeinsum.decompose.search_tasks import Candidate, GraphPricing, State, choices_within, reading_cost
from sparseeinsum.decompose.settled_choices import search_unsettled
from sparseeinsum.decompose.short_lists import search_in_lists

# The most numbers in all tables of the elimination together. Random graphs of 20 EinSums, each reading two of the last
# results, took up to 0.1 s within this limit, and up to 0.5 s within four times as much.
TABLE_LIMIT = 4_000_000

_Task = TypeVar("_Task", bound=GraphPricing)


def search_jointly(task: _Task, k: int, limit: int = TABLE_LIMIT) -> list[Candidate]:
    """The k cheapest plans, best first; if the tables would exceed `limit`, the best of short lists and greedy plans.

    The greedy plans give an upper bound for the cost, which rules out most choices of EinSums whose choices differ
    much in cost.
    """
    greedy = search_greedily(task, k)
    narrowed = task
    if len(greedy) == k:
        narrowed = task.narrowed(choices_within(task, task.graph.einsums, greedy[-1].cost))
        read = {operand.tensor for einsum in task.graph.einsums for operand in einsum.operands}
        if k == 1 and all(len(choices) == 1 or name not in read for name, choices in narrowed.choices.items()):
            return greedy  # no other plan costs less: what nobody reads has its cheapest choice for what it reads
    if k == 1:
        best = search_unsettled(narrowed, task.graph.einsums, limit)
        if best is not None:
            return [best]
    result = search_in_lists(narrowed, task.graph.einsums, k, limit)
    if result.is_exact:
        return result.candidates
    candidates = {candidate.choices: candidate for candidate in (*greedy, *result.candidates)}
    return sorted(candidates.values())[:k]


def search_by_cover(task: GraphPricing, k: int) -> list[Candidate]:
    """The k cheapest plans that the paper's tree cover finds, best first (SparseEinSum, section 8.2)."""
    return search_rounds(task, tree_rounds(task.graph), k)


def search_greedily(task: GraphPricing, k: int) -> list[Candidate]:
    """The k cheapest plans that result from optimising one EinSum after the other, best first."""
    return [_greedy_plan(task)] if k == 1 else search_rounds(task, single_rounds(task.graph), k)


def _greedy_plan(task: GraphPricing) -> Candidate:
    """The plan in which every EinSum has the choice that costs least after those before it."""
    cost, chosen, states = 0.0, {}, dict[str, State]()
    for einsum in task.graph.einsums:
        name = einsum.output.tensor
        seconds, choice = min(
            (task.own_cost(einsum, choice) + reading_cost(task, einsum, choice, states), choice)
            for choice in task.choices[name]
        )
        cost += seconds
        chosen[name], states[name] = choice, task.result_state(einsum, choice)
    return Candidate(cost, tuple(sorted(chosen.items())))

"""Decompose: the best plans of a whole graph, shared results included; the cover of trees where that takes too long.

Source: the SparseEinSum paper fixes shared results one after the other (section 8.2); here they are chosen together.
"""

from typing import TypeVar

from sparseeinsum.decompose.cover import search_rounds, single_rounds, tree_rounds
from sparseeinsum.decompose.elimination import cheapest_plans
from sparseeinsum.decompose.search import Candidate, GraphPricing, choices_within

# Numbers in all tables together: of random graphs of 20 EinSums that all read two of the last results, those within it
# took up to 0.1 s, those of four times as many up to 0.5 s.
TABLE_LIMIT = 4_000_000

_Task = TypeVar("_Task", bound=GraphPricing)


def search_jointly(task: _Task, k: int, limit: int = TABLE_LIMIT) -> list[Candidate]:
    """The k cheapest plans, best first; where tables would exceed the limit, the best that the other searches find.

    Plans found greedily bound the costs, which few choices keep of an EinSum that is far cheaper one way than another.
    """
    greedy = search_greedily(task, k)
    einsums = task.graph.einsums
    narrowed = task
    if len(greedy) == k:
        narrowed = task.narrowed(choices_within(task, einsums, greedy[-1].cost))
    exact = cheapest_plans(narrowed, einsums, {}, k, limit)
    if exact is not None:
        return exact
    found = {candidate.choices: candidate for candidate in (*greedy, *search_by_cover(task, k))}
    return sorted(found.values())[:k]


def search_by_cover(task: GraphPricing, k: int) -> list[Candidate]:
    """The k cheapest plans found by the paper's cover of trees, best first."""
    return search_rounds(task, tree_rounds(task.graph), k)


def search_greedily(task: GraphPricing, k: int) -> list[Candidate]:
    """The k cheapest plans found by optimising one EinSum after the other, best first."""
    return search_rounds(task, single_rounds(task.graph), k)

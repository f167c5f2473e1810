"""Decompose: the cheapest plans of a graph, among all choices, or among short lists if tables would grow too large."""

import heapq
import math
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from sparseeinsum.decompose.elimination import cheapest_plans
from sparseeinsum.decompose.search_tasks import Candidate, GraphPricing

_LONGEST = 64  # the length of the first lists (measured: bench/eindecomp.py, a layer of LLaMA on 1,024 workers)

_Task = TypeVar("_Task", bound=GraphPricing)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The best plans of a search, best first, and whether no others are better."""

    candidates: list[Candidate]
    is_exact: bool


def search_in_lists(task: GraphPricing, k: int, limit: float) -> SearchResult:
    """The k cheapest plans; if their tables would exceed a limit, those of the choices of the least own costs.

    Args:
        task: The choices and their costs.
        k: The number of plans.
        limit: The most numbers that all tables together may have; lists are shortened by a quarter until they do.
    """
    candidates = cheapest_plans(task, task.graph.einsums, {}, k, limit)
    is_exact, length = candidates is not None, max(map(len, task.choices.values()), default=1)
    while candidates is None:
        length = max(min(3 * length // 4, _LONGEST), 1)
        listed = cheapest_choices(task, length)
        candidates = cheapest_plans(listed, task.graph.einsums, {}, k, limit if length > 1 else math.inf)
    return SearchResult(candidates, is_exact)


def cheapest_choices(task: _Task, count: int) -> _Task:
    """The task with at most `count` choices of each EinSum, those of the least own cost; others may fit better."""
    return task.narrowed(
        {
            einsum.output.tensor: heapq.nsmallest(
                count, task.choices[einsum.output.tensor], partial(task.own_cost, einsum)
            )
            for einsum in task.graph.einsums
        }
    )

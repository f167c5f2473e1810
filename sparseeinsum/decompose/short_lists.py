"""Decompose: the cheapest plans of a graph, among all choices, or among short lists if tables would grow too large."""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.choice_tables import ChoiceTables
from sparseeinsum.decompose.elimination import cheapest_plans
from sparseeinsum.decompose.search_tasks import Candidate, Pricing, Vertex

_LONGEST = 64  # the length of the first lists (measured: bench/eindecomp.py, a layer of LLaMA on 1,024 workers)

_Vertex = TypeVar("_Vertex", bound=Vertex)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The best plans of a search, best first, and whether no others are better."""

    candidates: list[Candidate]
    is_exact: bool

    @property
    def best(self) -> dict[str, Choice]:
        """The choices of the best plan, by the names of results."""
        return dict(self.candidates[0].choices)


def search_in_lists(
    task: Pricing[_Vertex], einsums: Sequence[_Vertex], k: int, limit: float, tables: ChoiceTables | None = None
) -> SearchResult:
    """The k cheapest plans; if their tables would exceed a limit, those of the choices of the least own costs.

    Args:
        task: The choices and their costs.
        einsums: All EinSums or operators, in topological order.
        k: The number of plans.
        limit: The most numbers that all tables together may have; lists are shortened by a quarter until they do.
        tables: What other searches with the same costs have computed of the same choices.
    """
    candidates = cheapest_plans(task, einsums, {}, k, limit, tables)
    is_exact, length = candidates is not None, max(map(len, task.choices.values()), default=1)
    while candidates is None:
        length = max(min(3 * length // 4, _LONGEST), 1)
        listed = task.narrowed(cheapest_choices(task, einsums, length))
        candidates = cheapest_plans(listed, einsums, {}, k, limit if length > 1 else math.inf, tables)
    return SearchResult(candidates, is_exact)


def cheapest_choices(task: Pricing[_Vertex], einsums: Sequence[_Vertex], count: int) -> dict[str, list[Choice]]:
    """For each EinSum at most `count` choices, those of the least own cost; others may fit better."""
    return {
        einsum.output.tensor: heapq.nsmallest(count, task.choices[einsum.output.tensor], partial(task.own_cost, einsum))
        for einsum in einsums
    }

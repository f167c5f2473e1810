"""EinDecomp: the choices that move the fewest floats, among some vectors.

Tensors that several operands read connect the choices of all their readers. If the tables of an exact search grow too
large for that, choices are improved from those of short lists, and from those that are best if every operand is sent
for itself: where tensors are sent to fixed places, their readers are independent, and so are sendings where all calls
are fixed. At last, one sending at a time is searched together with all calls.
"""

from collections.abc import Sequence, Set
from itertools import cycle
from typing import TypeAlias

from sparseeinsum.decompose.eindecomp.moves import Moves
from sparseeinsum.decompose.elimination import cheapest_plans
from sparseeinsum.decompose.search_tasks import Candidate, Choices
from sparseeinsum.decompose.short_lists import SearchResult, search_in_lists

# Numbers in all tables together, of an exact search and of that for the choices that are improved (measured: attention
# and a training step on 64 workers).
EXACT_LIMIT = 10_000_000
_START_LIMIT = 500_000
_ROUNDING = 1e-9

Searched: TypeAlias = dict[Choices, list[Candidate]]  # the best choices of all others, by those that are fixed


def exact_moves(moves: Moves, k: int) -> list[Candidate] | None:
    """The k candidates that move the fewest floats; None if the tables of the search grow too large."""
    return cheapest_plans(moves, moves.vertices, {}, k, EXACT_LIMIT, moves.tables)


def cheapest_moves(moves: Moves, k: int) -> SearchResult:
    """Candidates that move few floats: the k best, if tables are small, or up to 2 k that were found."""
    exact = exact_moves(moves, k)
    if exact is not None:
        return SearchResult(exact, is_exact=True)
    starts = [*search_in_lists(moves, moves.vertices, k, _START_LIMIT, moves.tables).candidates, *sent_apart(moves, k)]
    sendings, einsums = _sendings_and_results(moves)
    searched: Searched = {}
    alternated = (_improved(moves, start, (sendings, einsums), searched) for start in starts)
    return SearchResult(sorted({candidate.choices: candidate for candidate in alternated}.values()), is_exact=False)


def least_moves(moves: Moves) -> Candidate:
    """The candidate that was found to move the fewest floats."""
    result = cheapest_moves(moves, 1)
    best = result.candidates[0]
    return best if result.is_exact else improved(moves, best)


def sent_apart(moves: Moves, k: int) -> list[Candidate]:
    """The choices of calls that move the fewest floats if every operand is sent for itself, with the best sendings."""
    apart = moves.apart()
    candidates = cheapest_plans(apart, moves.graph.einsums, {}, k, EXACT_LIMIT, apart.tables) or []
    sent = []
    for candidate in candidates:
        fixed = {name: (choice,) for name, choice in candidate.choices}
        sent += exact_moves(moves.narrowed({**moves.choices, **fixed}), 1) or []
    return sent


def improved(moves: Moves, candidate: Candidate) -> Candidate:
    """The candidate, or one that moves fewer floats: any one sending changes together with all calls."""
    sendings, einsums = _sendings_and_results(moves)
    changing = [name for name in sorted(sendings) if len(moves.choices[name]) > 1]
    return _improved(moves, candidate, (*(sendings - {name} for name in changing), einsums), {})


def _sendings_and_results(moves: Moves) -> tuple[Set[str], Set[str]]:
    einsums = {einsum.output.tensor for einsum in moves.graph.einsums}
    return moves.choices.keys() - einsums, einsums


def _improved(moves: Moves, candidate: Candidate, fixed_names: Sequence[Set[str]], searched: Searched) -> Candidate:
    """The candidate, or one that moves fewer floats, found by searches each of which fixes some of its choices.

    What searches find is added to `searched`, because several candidates lead to the same fixed choices.
    """
    unimproved = 0
    for are_fixed in cycle(fixed_names):
        fixed = tuple((name, choice) for name, choice in candidate.choices if name in are_fixed)
        others = searched.get(fixed)
        if others is None:
            narrowed = moves.narrowed({**moves.choices, **{name: (choice,) for name, choice in fixed}})
            others = searched[fixed] = exact_moves(narrowed, 1) or []
        best = min((candidate, *others), key=lambda other: other.cost)
        unimproved = 0 if best.cost < candidate.cost * (1 - _ROUNDING) else unimproved + 1
        candidate = best
        if unimproved >= len(fixed_names):
            break
    return candidate

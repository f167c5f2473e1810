"""EinDecomp: the choices that move the fewest floats, among some vectors.

Tensors that several operands read connect the choices of all their readers. If the tables of an exact search grow too
large for that, the choices of EinSums and those of sendings are improved in turn, from those of short lists: where
tensors are sent to fixed places, their readers are independent, and so are sendings where all calls are fixed.
"""

from sparseeinsum.decompose.eindecomp.moves import Moves
from sparseeinsum.decompose.elimination import cheapest_plans
from sparseeinsum.decompose.search_tasks import Candidate
from sparseeinsum.decompose.short_lists import search_in_lists

# Numbers in all tables together, of an exact search and of that for the choices that are improved (measured: attention
# and a training step on 64 workers).
EXACT_LIMIT = 10_000_000
_START_LIMIT = 500_000
_ROUNDING = 1e-9


def cheapest_moves(moves: Moves, k: int) -> list[Candidate]:
    """Up to k candidates found that move the fewest floats, best first; no others are better if tables are small."""
    exact = cheapest_plans(moves, moves.vertices, {}, k, EXACT_LIMIT)
    if exact is not None:
        return exact
    starts = search_in_lists(moves, moves.vertices, k, _START_LIMIT).candidates
    return sorted({candidate.choices: candidate for candidate in (improved(moves, start) for start in starts)}.values())


def improved(moves: Moves, candidate: Candidate) -> Candidate:
    """The candidate, or one that moves fewer floats."""
    einsums = {einsum.output.tensor for einsum in moves.graph.einsums}
    while True:
        before = candidate.cost
        for are_fixed in (moves.choices.keys() - einsums, einsums):
            fixed = {name: (choice,) for name, choice in candidate.choices if name in are_fixed}
            narrowed = moves.narrowed({**moves.choices, **fixed})
            others = cheapest_plans(narrowed, moves.vertices, {}, 1, EXACT_LIMIT) or ()
            candidate = min((candidate, *others), key=lambda other: other.cost)
        if candidate.cost >= before * (1 - _ROUNDING):
            return candidate

"""Decompose: graphs whose results are read more than once, as rounds of trees that the dynamic programme can take.

Source: SparseEinSum, section 8.2: a maximal sub-graph in which no result is read twice is optimised, its
decompositions are fixed, and so on until all are.
"""

import heapq
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sparseeinsum.decompose.model import Choice, CostModel, result_tiles
from sparseeinsum.decompose.search import (
    Candidate,
    Table,
    available,
    cheapest_sums,
    optimise_tree,
)
from sparseeinsum.errors import PlanError
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


@dataclass(frozen=True, slots=True)
class Search:
    """One search: what may be chosen, and how the results are wanted.

    Attributes:
        model: Prices choices.
        choices: Allowed choices by result.
        stored: For every input, the decompositions that it is to be had in at no cost.
        layouts: For outputs, the tiles that the result is wanted in; absent where any will do.
        rounds: The EinSums, in parts that are optimised one after the other.
    """

    model: CostModel
    choices: Mapping[str, Sequence[Choice]]
    stored: Mapping[str, Sequence[Choice]]
    layouts: Mapping[str, Choice]
    rounds: Sequence[tuple[EinSum, ...]]
    _cache: dict[object, list[Candidate]] = field(default_factory=dict)

    def run(self, k: int) -> list[Candidate]:
        """The k cheapest complete plans found, best first.

        Raises:
            PlanError: There is none.
        """
        states = [Candidate(0.0, ())]
        for einsums in self.rounds:
            extended = [self._extend(state, einsums, k) for state in states]
            states = list(itertools.islice(heapq.merge(*extended), k))
        if not states:
            raise PlanError("no decomposition of the program satisfies what is promoted by hand and pinned")
        return states

    def _extend(self, state: Candidate, einsums: tuple[EinSum, ...], k: int) -> list[Candidate]:
        fixed = self._fixed_tiles(state, einsums)
        key = (tuple(einsum.output.tensor for einsum in einsums), tuple(sorted(fixed.items())), k)
        if key not in self._cache:
            self._cache[key] = self._optimise(fixed, einsums, k)
        return [
            Candidate(state.seconds + candidate.seconds, state.choices + candidate.choices)
            for candidate in self._cache[key]
        ]

    def _fixed_tiles(self, state: Candidate, einsums: tuple[EinSum, ...]) -> dict[str, Choice]:
        """Decompositions, fixed by earlier rounds, of the results that a round reads."""
        chosen = dict(state.choices)
        here = {einsum.output.tensor for einsum in einsums}
        producers = {einsum.output.tensor: einsum for einsum in self.model.graph.einsums}
        return {
            operand.tensor: result_tiles(producers[operand.tensor], chosen[operand.tensor])
            for einsum in einsums
            for operand in einsum.operands
            if operand.tensor in producers and operand.tensor not in here
        }

    def _optimise(self, fixed: Mapping[str, Choice], einsums: tuple[EinSum, ...], k: int) -> list[Candidate]:
        tables: dict[str, Table] = {name: available(tiles) for name, tiles in self.stored.items()}
        tables |= {name: available([tiles]) for name, tiles in fixed.items()}
        known = optimise_tree(self.model, einsums, tables, self.choices, self.layouts, k)
        read = {operand.tensor for einsum in einsums for operand in einsum.operands}
        roots = [einsum.output.tensor for einsum in einsums if einsum.output.tensor not in read]
        ways = [list(itertools.islice(heapq.merge(*known[root].values()), k)) for root in roots]
        return list(cheapest_sums(ways, k))

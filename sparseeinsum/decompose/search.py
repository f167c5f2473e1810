"""Decompose: the dynamic programme over trees of EinSums, with the k best results for every decomposition.

Source: SparseEinSum, algorithm 1 (section 8.1).
"""

import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sparseeinsum.decompose.model import Choice, CostModel, reference_tiles, result_tiles
from sparseeinsum.language.eingraph import EinSum

Choices = tuple[tuple[str, Choice], ...]  # (result, choice of its EinSum), for a sub-tree


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """A way to compute a tensor in one decomposition: seconds, and the choices of its EinSum and those below."""

    seconds: float
    choices: Choices


# For every decomposition of a tensor, the cheapest ways to have it, best first.
Table = Mapping[Choice, Sequence[Candidate]]

NOTHING = Candidate(0.0, ())


def available(tiles: Iterable[Choice]) -> Table:
    """The table of a tensor that is there already, in each of these decompositions, at no cost."""
    return dict.fromkeys(tiles, (NOTHING,))


def optimise_tree(
    model: CostModel,
    einsums: Sequence[EinSum],
    tables: Mapping[str, Table],
    choices: Mapping[str, Sequence[Choice]],
    layouts: Mapping[str, Choice],
    k: int,
) -> dict[str, Table]:
    """Cheapest ways to compute the result of every EinSum, for each of its decompositions.

    Args:
        model: Prices EinSums and repartitions.
        einsums: In topological order; none of their results is read twice among them.
        tables: Of every tensor that they read and do not compute.
        choices: Those that may be considered, by result.
        layouts: Tiles in which results are delivered, too; absent where they are not, or as they come.
        k: How many ways to keep for each decomposition.

    Returns:
        The tables of all tensors, those given included.

    Complexity: for each EinSum of n labels 2^n choices; for each operand of rank r, at most 4^r repartitions.
    """
    known = dict(tables)
    for einsum in einsums:
        known[einsum.output.tensor] = _table(model, einsum, known, choices[einsum.output.tensor], layouts, k)
    return known


def cheapest_as(model: CostModel, tensor: str, table: Table, tiles: Choice, k: int) -> list[Candidate]:
    """The k cheapest ways to have a tensor in one decomposition, repartitioned from whichever its table offers."""
    offers: dict[Choice, list[Candidate]] = {}
    best: list[float] = []
    for given in sorted(table, key=lambda given: table[given][0].seconds):
        if len(best) == k and table[given][0].seconds > best[-1]:  # what comes after it is no cheaper
            break
        extra = model.repartition_cost(tensor, given, tiles)
        offers[given] = [Candidate(candidate.seconds + extra, candidate.choices) for candidate in table[given]]
        if table[given][0].choices:  # inputs are there in many ways, which count once
            best = heapq.nsmallest(k, [*best, *(offer.seconds for offer in offers[given])])
    in_order = [offers[given] for given in table if given in offers]
    return list(itertools.islice(_first_of_each(heapq.merge(*in_order)), k))


def _first_of_each(candidates: Iterable[Candidate]) -> Iterator[Candidate]:
    """Candidates without those that make the same choices as an earlier one: inputs are there in many ways."""
    seen = set()
    for candidate in candidates:
        if candidate.choices not in seen:
            seen.add(candidate.choices)
            yield candidate


def _table(
    model: CostModel,
    einsum: EinSum,
    known: Mapping[str, Table],
    choices: Sequence[Choice],
    layouts: Mapping[str, Choice],
    k: int,
) -> dict[Choice, list[Candidate]]:
    inputs: dict[tuple[int, Choice], list[Candidate]] = {}
    found: dict[Choice, list[Iterator[Candidate]]] = {}
    for choice in choices:
        sides = []
        for index, operand in enumerate(einsum.operands):
            tiles = reference_tiles(einsum, operand, choice)
            if (index, tiles) not in inputs:
                inputs[index, tiles] = cheapest_as(model, operand.tensor, known[operand.tensor], tiles, k)
            sides.append(inputs[index, tiles])
        own = _own(model, einsum, choice, layouts)
        found.setdefault(result_tiles(einsum, choice), []).append(cheapest_sums([*sides, [own]], k))
    return {tiles: list(itertools.islice(heapq.merge(*ways), k)) for tiles, ways in found.items()}


def _own(model: CostModel, einsum: EinSum, choice: Choice, layouts: Mapping[str, Choice]) -> Candidate:
    """What an EinSum adds by itself: its own cost, and that of delivering its result."""
    name, tiles = einsum.output.tensor, result_tiles(einsum, choice)
    delivery = model.repartition_cost(name, tiles, layouts.get(name, tiles))
    return Candidate(model.vertex_cost(einsum, choice).seconds + delivery, ((name, choice),))


def cheapest_sums(sides: Sequence[Sequence[Candidate]], k: int) -> Iterator[Candidate]:
    """Combinations of one candidate of each side, cheapest first; every side is sorted.

    A combination is made only after the one that has the previous candidate on one side.
    """
    if any(not side for side in sides):
        return
    start = (0,) * len(sides)
    heap = [(_sum(sides, start), start)]
    seen = {start}
    for _ in range(k):
        if not heap:
            return
        candidate, positions = heapq.heappop(heap)
        yield candidate
        for index in range(len(sides)):
            after = (*positions[:index], positions[index] + 1, *positions[index + 1 :])
            if after[index] < len(sides[index]) and after not in seen:
                seen.add(after)
                heapq.heappush(heap, (_sum(sides, after), after))


def _sum(sides: Sequence[Sequence[Candidate]], positions: tuple[int, ...]) -> Candidate:
    picked = [side[position] for side, position in zip(sides, positions, strict=True)]
    choices = tuple(itertools.chain.from_iterable(candidate.choices for candidate in picked))
    return Candidate(sum(candidate.seconds for candidate in picked), choices)

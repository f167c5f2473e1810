"""EinDecomp: partition vectors, which divide an EinSum into one kernel call for every worker.

A partition vector gives every label the number of pieces that it is cut into; their product is the number of workers.
The paper's vectors are those for a power of two, whose numbers of pieces are powers of two; for another number of
workers, they are the divisors of that number. Here a vector is represented by the corresponding tiles:
ceil(bound / pieces) indices for a label that is cut, DEMOTED for one that is not. So it is a choice like any other.

Source: EinDecomp, sections 6 and 8.1.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.decompose.choices import fixed_tiles
from sparseeinsum.errors import PlanError
from sparseeinsum.language.eingraph import EinGraph, EinSum
from sparseeinsum.language.tensors import DEMOTED, count_keys

# The most vectors of one EinSum: those of six labels on 1,024 workers. If there are more, labels of small bounds are
# not cut.
MOST_VECTORS = 3003


def check_workers(workers: int, name: str = "workers") -> int:
    """Return a number of workers if it is a whole number of 1 or more; `name` is what the user calls it.

    Raises:
        PlanError: It is not.
    """
    if not isinstance(workers, int) or isinstance(workers, bool) or workers < 1:
        raise PlanError(f"{name} is {workers!r}; give a whole number of 1 or more")
    return workers


def fewer_workers(workers: int) -> int:
    """The next smaller number of workers: half of a power of two, whose vectors are the paper's; else one less."""
    return workers // 2 if workers & (workers - 1) == 0 else workers - 1


def partition_choices(
    graph: EinGraph, workers: int, pinned: Mapping[str, Mapping[str, int]] = MappingProxyType({})
) -> dict[str, tuple[Choice, ...]]:
    """The partition vectors of every EinSum, by the name of its result, that agree with promoted and demoted labels.

    Args:
        graph: The EinSums.
        workers: The number of workers; fewer of them work if the labels that may be cut leave too few pieces.
        pinned: For some results, the tiles of all labels that are promoted; pieces consist of whole tiles.
    """
    return {
        einsum.output.tensor: _choices_of(graph, einsum, workers, pinned.get(einsum.output.tensor))
        for einsum in graph.einsums
    }


def _choices_of(graph: EinGraph, einsum: EinSum, workers: int, pinned: Mapping[str, int] | None) -> tuple[Choice, ...]:
    bounds = [graph.bound_of(einsum, label) for label in einsum.labels]
    fixed = fixed_tiles(einsum) if pinned is None else {label: pinned.get(label, DEMOTED) for label in einsum.labels}
    tiles = [fixed.get(label, 1) for label in einsum.labels]
    uncut = {position: 1 for position, tile in enumerate(tiles) if tile == DEMOTED}
    while True:
        vectors = viable_choices(bounds, workers, uncut)
        fitting = tuple(vector for vector in vectors if all(map(_is_multiple, vector, tiles)))
        if fitting:
            return fitting
        workers = fewer_workers(workers)


def _is_multiple(piece: int, tile: int) -> bool:
    return tile == DEMOTED or piece % tile == 0


def viable_choices(
    bounds: Sequence[int], workers: int, fixed: Mapping[int, int] = MappingProxyType({})
) -> tuple[Choice, ...]:
    """All partition vectors with as many kernel calls as there are workers, as tiles.

    For p = 2^N workers and D labels these are (N + D - 1)! / (N! (D - 1)!) vectors.

    No label is cut into more pieces than it has indices. If the labels cannot be cut into enough pieces, the vectors
    are those of the next smaller number of workers for which they can. If a bound is not a multiple of the pieces, the
    number of tiles may be smaller.

    Args:
        bounds: Bounds of the labels.
        workers: Number of workers.
        fixed: Number of pieces of some labels, by position; less if the bound does not allow so many.

    >>> viable_choices((8, 8), 4)
    ((2, 0), (4, 4), (0, 2))
    >>> viable_choices((6, 6), 6)
    ((1, 0), (2, 3), (3, 2), (0, 1))
    >>> viable_choices((10, 1), 8)
    ((2, 0),)
    """
    check_workers(workers)
    pieces = {position: _fixed_pieces(bounds[position], workers, count) for position, count in fixed.items()}
    limits = [1 if position in fixed else max(bound, 1) for position, bound in enumerate(bounds)]
    spare = max(workers // math.prod(pieces.values()), 1)
    cut = sorted((position for position in range(len(bounds)) if position not in fixed), key=lambda at: -bounds[at])
    calls, counts = _most_calls(spare, limits)
    while len(cut) > 1 and counts[0][calls] > MOST_VECTORS:
        limits[cut.pop()] = 1
        calls, counts = _most_calls(spare, limits)
    return tuple(
        tuple(_tile(bound, pieces.get(at, vector[at])) for at, bound in enumerate(bounds))
        for vector in _vectors(calls, limits, counts)
    )


def even_choice(bounds: Sequence[int], workers: int) -> Choice:
    """The vector that cuts all labels into equally many pieces, as far as possible, as tiles.

    The first labels have more pieces than the last ones; labels of small bounds have fewer.
    """
    calls, _ = _most_calls(check_workers(workers), [max(bound, 1) for bound in bounds])
    pieces = [1] * len(bounds)
    while calls > 1:
        prime = max(_primes(calls))
        calls //= prime
        can_be_cut = [at for at, bound in enumerate(bounds) if prime * pieces[at] <= bound]
        if can_be_cut:
            pieces[min(can_be_cut, key=pieces.__getitem__)] *= prime
    return tuple(map(_tile, bounds, pieces))


def pieces_of(tiles: Sequence[int], bounds: Sequence[int]) -> tuple[int, ...]:
    """The number of pieces of every label in some tiles.

    >>> pieces_of((2, 0), (10, 10))
    (5, 1)
    """
    return tuple(max(count_keys(tile, bound), 1) for tile, bound in zip(tiles, bounds, strict=True))


def _tile(bound: int, pieces: int) -> int:
    return -(-bound // pieces) if pieces > 1 else DEMOTED


def _fixed_pieces(bound: int, workers: int, pieces: int) -> int:
    """The largest divisor of the number of workers that is at most `pieces`; if that is 1, any number of pieces."""
    most = min(max(bound, 1), pieces)
    divisor = max(count for count in _divisors(workers) if count <= most)
    return divisor if divisor > 1 else most


@lru_cache(maxsize=4096)
def _divisors(number: int) -> tuple[int, ...]:
    """All divisors in ascending order."""
    small = [divisor for divisor in range(1, math.isqrt(number) + 1) if number % divisor == 0]
    return tuple(sorted({*small, *(number // divisor for divisor in small)}))


def _primes(number: int) -> list[int]:
    return [divisor for divisor in _divisors(number) if len(_divisors(divisor)) == 2]


VectorCounts = list[Counter[int]]  # for the labels from each position on, the number of vectors, by number of calls


def _most_calls(workers: int, limits: Sequence[int]) -> tuple[int, VectorCounts]:
    """The most calls, at most one per worker, into which labels with these most pieces can be cut; and the counts."""
    calls = workers
    while True:
        counts = _count_vectors(calls, limits)
        if calls in counts[0]:
            return calls, counts
        calls = fewer_workers(calls)


def _count_vectors(calls: int, limits: Sequence[int]) -> VectorCounts:
    """The number of vectors of labels with these most pieces, for every divisor of a number of calls."""
    counts = [Counter({1: 1})]
    for limit in reversed(limits):
        vectors: Counter[int] = Counter()
        for pieces in _divisors(calls):
            for product, count in counts[-1].items() if pieces <= limit else ():
                if calls % (product * pieces) == 0:
                    vectors[product * pieces] += count
        counts.append(vectors)
    return counts[::-1]


def _vectors(calls: int, limits: Sequence[int], counts: VectorCounts, position: int = 0) -> Iterator[tuple[int, ...]]:
    """All vectors of the labels from a position on with a number of calls, in descending lexicographic order."""
    if position == len(limits):
        yield ()
        return
    for pieces in reversed(_divisors(calls)):
        if pieces <= limits[position] and calls // pieces in counts[position + 1]:
            for following in _vectors(calls // pieces, limits, counts, position + 1):
                yield (pieces, *following)

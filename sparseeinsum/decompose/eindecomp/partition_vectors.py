"""EinDecomp: partition vectors, which divide an EinSum into one kernel call for every worker.

A partition vector gives every label a power of two, the number of pieces that it is cut into; their product is the
number of workers. Here a vector is represented by the corresponding tiles: ceil(bound / pieces) indices for a label
that is cut, DEMOTED for one that is not. So it is a choice like any other.

Source: EinDecomp, sections 6 and 8.1.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.errors import PlanError
from sparseeinsum.language.tensors import DEMOTED, count_keys

# The most vectors of one EinSum: those of six labels on 1,024 workers. If there are more, labels of small bounds are
# not cut.
MOST_VECTORS = 3003


def check_workers(workers: int) -> int:
    """Return `workers` if it is a power of two.

    Raises:
        PlanError: It is not.
    """
    if not isinstance(workers, int) or workers < 1 or workers & (workers - 1):
        raise PlanError(f"workers is {workers!r}; give a power of two, as in 8: vectors cut labels into halves")
    return workers


def viable_choices(
    bounds: Sequence[int], workers: int, fixed: Mapping[int, int] = MappingProxyType({})
) -> tuple[Choice, ...]:
    """All partition vectors with as many kernel calls as there are workers, as tiles.

    For p = 2^N workers and D labels these are (N + D - 1)! / (N! (D - 1)!) vectors.

    No label is cut into more pieces than it has indices. If the labels cannot be cut into enough pieces, the vectors
    are those with the most calls. If a bound is not a multiple of the pieces, the number of tiles may be smaller.

    Args:
        bounds: Bounds of the labels.
        workers: Number of workers, a power of two.
        fixed: Number of pieces of some labels, by position; less if the bound does not allow so many.

    >>> viable_choices((8, 8), 4)
    ((2, 0), (4, 4), (0, 2))
    >>> viable_choices((10, 1), 8)
    ((2, 0),)
    """
    doublings = check_workers(workers).bit_length() - 1
    most = [max(bound, 1).bit_length() - 1 for bound in bounds]
    least = [0] * len(bounds)
    for position, pieces in fixed.items():
        least[position] = most[position] = min(most[position], pieces.bit_length() - 1)
    free = sorted((position for position in range(len(bounds)) if position not in fixed), key=lambda at: -bounds[at])
    spare = max(doublings - sum(least), 0)
    while len(free) > 1 and _count_distributions(spare, [most[position] for position in free]) > MOST_VECTORS:
        most[free.pop()] = 0
    total = min(max(doublings, sum(least)), sum(most))
    return tuple(tuple(map(_tile, bounds, counts)) for counts in _distributions(total, least, most))


def even_choice(bounds: Sequence[int], workers: int) -> Choice:
    """The vector that cuts all labels into equally many pieces, as tiles.

    The first labels may have twice as many pieces as the last ones; labels of small bounds have fewer.
    """
    doublings = check_workers(workers).bit_length() - 1
    counts = [0] * len(bounds)
    while doublings:
        open_positions = [at for at, bound in enumerate(bounds) if 2 << counts[at] <= bound]
        if not open_positions:
            break
        counts[min(open_positions, key=lambda at: counts[at])] += 1
        doublings -= 1
    return tuple(map(_tile, bounds, counts))


def pieces_of(tiles: Sequence[int], bounds: Sequence[int]) -> tuple[int, ...]:
    """The number of pieces of every label in some tiles.

    >>> pieces_of((2, 0), (10, 10))
    (5, 1)
    """
    return tuple(max(count_keys(tile, bound), 1) for tile, bound in zip(tiles, bounds, strict=True))


def _tile(bound: int, doublings: int) -> int:
    return -(-bound >> doublings) if doublings else DEMOTED


def _count_distributions(total: int, most: Sequence[int]) -> int:
    """The number of ways to put `total` balls, or as many as fit, into buckets with these capacities."""
    counts = [1]
    for room in most:
        counts = [sum(counts[max(count - room, 0) : count + 1]) for count in range(len(counts) + room)]
    return counts[min(total, len(counts) - 1)]


def _distributions(total: int, least: Sequence[int], most: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All ways to put `total` balls into buckets with these minima and maxima, in descending lexicographic order."""
    if not least:
        yield ()
        return
    others = sum(most[1:]), sum(least[1:])
    for first in range(min(total - others[1], most[0]), max(total - others[0], least[0]) - 1, -1):
        for following in _distributions(total - first, least[1:], most[1:]):
            yield (first, *following)

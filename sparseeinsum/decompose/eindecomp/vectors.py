"""EinDecomp: partition vectors, which cut the labels of an EinSum into a piece for every worker.

A partition vector gives every label a power of two, the pieces that it is cut into; together they make as many kernel
calls as there are workers. Here it is held as the tiles that follow: a label that is cut has tiles of ceil(bound /
pieces) indices, one that is not is DEMOTED, so that it is a choice like any other.

Source: EinDecomp, sections 6 and 8.1.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from sparseeinsum.decompose.choice import Choice
from sparseeinsum.errors import PlanError
from sparseeinsum.language.tensors import DEMOTED, count_keys

MOST_VECTORS = 3003  # of one EinSum, as six labels have on 1,024 workers; of more, labels of small bounds stay whole


def check_workers(workers: int) -> int:
    """The same number.

    Raises:
        PlanError: It is no power of two.
    """
    if not isinstance(workers, int) or workers < 1 or workers & (workers - 1):
        raise PlanError(f"workers is {workers!r}; give a power of two, as in 8: vectors cut labels into halves")
    return workers


def viable_choices(
    bounds: Sequence[int], workers: int, fixed: Mapping[int, int] = MappingProxyType({})
) -> tuple[Choice, ...]:
    """The tiles of all partition vectors that make as many kernel calls as there are workers.

    For p = 2^N workers and D labels these are (N + D - 1)! / (N! (D - 1)!) vectors.

    No label is cut into more pieces than it has indices: where all of them together cannot make enough calls, the
    vectors are those that make the most. Where a bound is no multiple of the pieces, fewer may really arise.

    Args:
        bounds: Of the labels.
        workers: A power of two.
        fixed: Of some labels, by their position, the pieces that they are to have, as far as their bounds allow.

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
    rest = max(doublings - sum(least), 0)
    while len(free) > 1 and _ways(rest, [most[position] for position in free]) > MOST_VECTORS:
        most[free.pop()] = 0
    total = min(max(doublings, sum(least)), sum(most))
    return tuple(tuple(map(_tile, bounds, each)) for each in _distributions(total, least, most))


def even_choice(bounds: Sequence[int], workers: int) -> Choice:
    """The tiles of the vector that cuts all labels alike, as far as there are indices: the first ones once more."""
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
    """The partition vector of some tiles: the pieces of every label that really arise.

    >>> pieces_of((2, 0), (10, 10))
    (5, 1)
    """
    return tuple(max(count_keys(tile, bound), 1) for tile, bound in zip(tiles, bounds, strict=True))


def _tile(bound: int, doublings: int) -> int:
    return -(-bound >> doublings) if doublings else DEMOTED


def _ways(total: int, most: Sequence[int]) -> int:
    """In how many ways so many balls, or as many as there is room for, go into buckets that take some at most."""
    ways = [1]
    for room in most:
        ways = [sum(ways[max(count - room, 0) : count + 1]) for count in range(len(ways) + room)]
    return ways[min(total, len(ways) - 1)]


def _distributions(total: int, least: Sequence[int], most: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Every way to put so many balls into buckets that take some at least and at most, the fullest first ones first."""
    if not least:
        yield ()
        return
    others = sum(most[1:]), sum(least[1:])
    for first in range(min(total - others[1], most[0]), max(total - others[0], least[0]) - 1, -1):
        for rest in _distributions(total - first, least[1:], most[1:]):
            yield (first, *rest)

"""Decompose: prices many repartitions of one tensor at once, each kind of repartition once.

A repartition goes from tiles to the common refinement of both sides, and from there to other tiles. Its cost depends
only on the sizes of the three, and if labels have few indices, few sizes differ: the 1,024 decompositions of ten axes
of two indices each have eleven.
"""

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.decompose.choice import Choice

Numbers = NDArray[np.int64]

# Fewer repartitions than this are priced faster one by one.
_FEW = 64


def repartition_table(
    before: Sequence[Choice],
    required: Sequence[tuple[Choice, int]],
    sizes_of: Callable[[Choice], Hashable],
    price_of: Callable[[Choice, Choice, int], float],
) -> NDArray[np.float64]:
    """Costs of repartitions: a row for each of `before`, a column for each of `required`.

    Args:
        before: Tiles of all axes.
        required: Tiles of all axes, and how often the tensor is read in them.
        sizes_of: What the price depends on, of the tiles before, between or afterwards.
        price_of: The price of one repartition, from tiles before, tiles after, and reads.
    """
    if len(before) * len(required) < _FEW:
        return np.array([[price_of(tiles, after, reads) for after, reads in required] for tiles in before])
    first = np.array(before, np.int64)[:, None, :]
    second = np.array([tiles for tiles, _ in required], np.int64)[None, :, :]
    between, numbers = _common_refinements(first, second)
    kinds = (
        _kind_numbers([sizes_of(tiles) for tiles in before])[:, None],
        _kind_numbers([(sizes_of(tiles), reads) for tiles, reads in required])[None, :],
        _kind_numbers([sizes_of(tiles) for tiles in between])[numbers],
        _differ(first, second),
        _differ(first, np.gcd(first, second)),
        _differ(second, np.gcd(first, second)),
    )
    keys = np.zeros(numbers.shape, np.int64)
    for kind in kinds:
        keys = keys * (int(kind.max()) + 1) + kind
    _, places, positions = np.unique(keys, return_index=True, return_inverse=True)
    changes = zip(*np.unravel_index(places, keys.shape), strict=True)
    prices = [price_of(before[row], *required[column]) for row, column in changes]
    return np.array(prices)[positions].reshape(keys.shape)


def _common_refinements(first: Numbers, second: Numbers) -> tuple[list[Choice], Numbers]:
    """The distinct common refinements of all pairs of tiles, and for every pair the number of its own among them."""
    common = np.gcd(first, second)  # as language.tensors.common_tile
    codes = np.zeros(common.shape[:2], np.int64)
    for axis in range(common.shape[2]):
        values = np.unique(common[:, :, axis])
        codes = codes * len(values) + np.searchsorted(values, common[:, :, axis])
    _, places, positions = np.unique(codes, return_index=True, return_inverse=True)
    rows, columns = np.unravel_index(places, codes.shape)
    return list(map(tuple, common[rows, columns].tolist())), positions.reshape(codes.shape)


def _differ(first: Numbers, second: Numbers) -> Numbers:
    return np.array((first != second).any(axis=2), np.int64)


def _kind_numbers(values: Sequence[Hashable]) -> Numbers:
    """For every value, its number among the distinct values."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)

"""Decompose: many changes of one tensor's decomposition in, what each costs out, every kind of change priced once.

A change goes from tiles to those that both sides consist of, and from there to others. What it costs follows from the
sizes of the three; and where labels have few indices there are few sizes: of 1,024 decompositions of ten axes of two
indices each, eleven.
"""

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.decompose.choice import Choice

Numbers = NDArray[np.int64]

# So few changes are priced one by one in less time.
_FEW = 64


def repartition_table(
    before: Sequence[Choice],
    wanted: Sequence[tuple[Choice, int]],
    sizes_of: Callable[[Choice], Hashable],
    price: Callable[[Choice, Choice, int], float],
) -> NDArray[np.float64]:
    """What changes of decomposition cost: a row for each before, a column for each wanted, read so often.

    Args:
        before: Tiles of all axes.
        wanted: Tiles, and how often the tensor is read in them.
        sizes_of: All that the price of a change follows from, of the tiles before, between and afterwards.
        price: Of one change.
    """
    if len(before) * len(wanted) < _FEW:
        return np.array([[price(tiles, after, reads) for after, reads in wanted] for tiles in before])
    first = np.array(before, np.int64)[:, None, :]
    second = np.array([tiles for tiles, _ in wanted], np.int64)[None, :, :]
    between, numbers = _between(first, second)
    kinds = (
        _numbered([sizes_of(tiles) for tiles in before])[:, None],
        _numbered([(sizes_of(tiles), reads) for tiles, reads in wanted])[None, :],
        _numbered([sizes_of(tiles) for tiles in between])[numbers],
        _differ(first, second),
        _differ(first, np.gcd(first, second)),
        _differ(second, np.gcd(first, second)),
    )
    keys = np.zeros(numbers.shape, np.int64)
    for kind in kinds:
        keys = keys * (int(kind.max()) + 1) + kind
    _, places, positions = np.unique(keys, return_index=True, return_inverse=True)
    changes = zip(*np.unravel_index(places, keys.shape), strict=True)
    prices = [price(before[row], *wanted[column]) for row, column in changes]
    return np.array(prices)[positions].reshape(keys.shape)


def _between(first: Numbers, second: Numbers) -> tuple[list[Choice], Numbers]:
    """The tiles that both of some two consist of, each once; and for every two the number of theirs among them."""
    common = np.gcd(first, second)  # as language.tensors.common_tile
    codes = np.zeros(common.shape[:2], np.int64)
    for axis in range(common.shape[2]):
        values = np.unique(common[:, :, axis])
        codes = codes * len(values) + np.searchsorted(values, common[:, :, axis])
    _, places, positions = np.unique(codes, return_index=True, return_inverse=True)
    rows, columns = np.unravel_index(places, codes.shape)
    return list(map(tuple, common[rows, columns].tolist())), positions.reshape(codes.shape)


def _differ(one: Numbers, other: Numbers) -> Numbers:
    return np.array((one != other).any(axis=2), np.int64)


def _numbered(values: Sequence[Hashable]) -> Numbers:
    """For every value its number among those that differ."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)

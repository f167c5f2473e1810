"""Engines: the keys of tuples from their numbers, which are the positions of the keys in C order."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.statistics.columns import index_dtype

_TOGETHER = 1 << 14  # numbers whose keys are computed together


def keys_of(numbers: NDArray[np.signedinteger], counts: Sequence[int]) -> list[NDArray[np.signedinteger]]:
    """For each part of the keys, its values in the order of `numbers`; computed in blocks that stay in the cache.

    Args:
        numbers: Positions of keys among all possible keys, in C order.
        counts: How many values each part of a key can have.
    """
    if not counts:
        return []
    keys = [np.empty(len(numbers), index_dtype(count)) for count in counts]
    number_dtype = index_dtype(math.prod(counts))
    for start in range(0, len(numbers), _TOGETHER):
        part = slice(start, start + _TOGETHER)
        rest = numbers[part].astype(number_dtype)
        for key, count in zip(reversed(keys[1:]), reversed(counts[1:]), strict=True):
            quotient = rest // count
            np.subtract(rest, quotient * count, out=key[part], casting="same_kind")
            rest = quotient
        keys[0][part] = rest
    return keys

"""Operators: functions of whole numbers and of probabilities from which random numbers are made.

A random number is a function of a key and a counter, so that every plan, engine and thread computes the same.
"""

import numpy as np
from numpy.typing import ArrayLike

from sparseeinsum.operators import range_rules as rules
from sparseeinsum.operators.dtypes import Array
from sparseeinsum.operators.normal_quantile import normal_quantile, normal_quantiles
from sparseeinsum.operators.ranges import Range
from sparseeinsum.operators.records import ScalarFunction

RANDOM_BITS = 52  # one less than float64 holds, so that ranges that are widened for rounding stay exact, too
LARGEST = 1 << 53  # floats are whole numbers up to here

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_WORD = 0xFFFFFFFF


def encrypted(key: tuple[Array, Array], counter: tuple[Array, Array]) -> tuple[Array, Array]:
    """Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011).

    Args:
        key: Two arrays of uint32, or arrays that broadcast with the others.
        counter: The same.

    Returns:
        The two words, of uint32.
    """
    keys = (*key, key[0] ^ key[1] ^ np.uint32(_PARITY))
    a, b = counter[0] + keys[0], counter[1] + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            a = a + b
            b = ((b << np.uint32(rotation)) | (b >> np.uint32(32 - rotation))) ^ a
        a, b = a + keys[(group + 1) % 3], b + keys[(group + 2) % 3] + np.uint32(group + 1)
    return a, b


def threefry(key: ArrayLike, counter: ArrayLike) -> Array:
    """The upper 52 bits of what Threefry makes of two int64, of which the upper half is the first word.

    Of floats, NaN unless both are whole numbers up to 2^53.
    """
    operands = np.broadcast_arrays(key, counter)
    if any(operand.dtype.kind == "c" for operand in operands):
        raise TypeError("a key and a counter are whole numbers")
    is_whole, wholes = zip(*map(_as_wholes, operands), strict=True)
    with np.errstate(over="ignore"):
        first, second = encrypted(_words(wholes[0]), _words(wholes[1]))
    number = (first.astype(np.int64) << 20) | (second >> np.uint32(12)).astype(np.int64)
    if all(operand.dtype.kind in "biu" for operand in operands):
        return number
    return np.where(is_whole[0] & is_whole[1], number.astype(np.float64), np.nan)


def _as_wholes(operand: Array) -> tuple[Array, Array]:
    """Whether numbers are whole, and they as int64; 0 for those that are not."""
    if operand.dtype.kind in "biu":
        return np.ones(operand.shape, bool), operand.astype(np.int64)
    is_whole = (np.floor(operand) == operand) & (np.abs(operand) <= LARGEST)
    return is_whole, np.where(is_whole, operand, 0).astype(np.int64)


def _words(number: Array) -> tuple[Array, Array]:
    """The upper and the lower half of int64."""
    return np.asarray((number >> 32) & _WORD, np.uint32), np.asarray(number & _WORD, np.uint32)


def threefry_range(key: Range, counter: Range) -> Range:
    """From 0 to 2^52 - 1; NaN where an argument may be so, or no whole number."""
    is_whole = all(isinstance(end, int) for a in (key, counter) for end in (a.low, a.high))
    return Range(0, (1 << RANDOM_BITS) - 1, not is_whole)


RANDOM_NUMBERS = (
    ScalarFunction(
        name="threefry",
        operands=2,
        numpy=threefry,
        description="random bits of a key and a counter, as a whole number below 2^52",
        derivatives=("0", "0"),
        real="threefry_of_floats",
        integer="threefry",
        sql="@threefry(u, v)",
        range=threefry_range,
    ),
    ScalarFunction(
        name="normal_quantile",
        operands=1,
        numpy=normal_quantiles,
        description="the number below which a standard normal is with probability u, NaN below 0 and above 1",
        derivatives=("g * (2.5066282746310002 * exp(normal_quantile(u) ^ 2 / 2))",),
        real=normal_quantile,
        sql="@normal_quantile(u)",
        range=rules.range_of_increasing(normal_quantiles, 0.0, 1.0),
    ),
)

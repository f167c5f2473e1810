"""Arithmetic between arrays of one length, and what measures a single array.

Self-contained: numba and numpy only, no allocation, the same source for every host. Arithmetic returns 0, as that
of integers.py, which has codes besides, and of complexes.py does.
"""

import numpy as np
from numba import njit

NOT_FINITE = -24

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd: no two words become one
_HALF = np.uint64(32)


@njit
def scale(factor, u, out):
    """Out = factor * u; (n,) each, one dtype."""
    for i in range(out.size):
        out[i] = factor * u[i]
    return 0


@njit
def outer(u, v, out):
    """out[i, j] = u[i] * v[j]; u: (m,), v: (n,), out: (m * n,) in C order."""
    for i in range(u.size):
        scale(u[i], v, out[i * v.size : (i + 1) * v.size])
    return 0


@njit
def fill(value, out):
    """Set every element of out to one value."""
    for i in range(out.size):
        out[i] = value


@njit(fastmath={"reassoc", "contract"})  # lets the compiler sum in several lanes; NaN and inf stay as they are
def sum_of_squares(u):
    """Sum of u[i] ** 2 in float64."""
    total = 0.0
    for i in range(u.size):
        total += np.float64(u[i]) * np.float64(u[i])
    return total


@njit
def count_differing(u, fill):
    """How many elements are not the fill; NaN is none."""
    count = 0
    for i in range(u.size):
        count += u[i] != fill
    return count


@njit
def least(u, fill, none):
    """The least element that is not the fill: `none` where there is none, NaN where any element is NaN."""
    found = none
    for i in range(u.size):
        found = found if u[i] == fill else np.minimum(found, u[i])
    return found


@njit
def greatest(u, fill, none):
    """The greatest element that is not the fill: `none` where there is none, NaN where any element is NaN."""
    found = none
    for i in range(u.size):
        found = found if u[i] == fill else np.maximum(found, u[i])
    return found


@njit
def count_not_finite(u, fill):
    """How many elements are NaN or infinite, other than an infinite fill."""
    count = 0
    for i in range(u.size):
        count += not ((abs(u[i]) < np.inf) | (u[i] == fill))
    return count


@njit
def all_finite(u):
    """Whether no element is NaN or infinite."""
    for i in range(u.size):
        if not np.isfinite(u[i]):
            return False
    return True


@njit
def hash_words(words):
    """A number that changes with any of an array's words, and with their order, but for one change in 2^64; int64."""
    found = np.uint64(words.size) * _MULTIPLIER
    for i in range(words.size):
        found = (found ^ np.uint64(words[i])) * _MULTIPLIER
        found ^= found >> _HALF
    return np.int64(found * _MULTIPLIER)

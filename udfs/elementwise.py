"""Arithmetic of arrays of equal length, and functions that return one number of an array.

Self-contained: numba and numpy only, no allocation, the same source for every host. Arithmetic returns 0, because that
of integers.py returns 0 or an error code.
"""

import numpy as np
from numba import njit

NOT_FINITE = -24

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd, so that different words have different products
_HALF = np.uint64(32)


@njit
def scale(factor, u, out):
    """Write factor * u to out; u and out: (n,), one dtype."""
    for i in range(out.size):
        out[i] = factor * u[i]
    return 0


@njit
def outer(u, v, out):
    """Write u[i] * v[j] to out[i, j]; u: (m,), v: (n,), out: (m * n,) in C order."""
    for i in range(u.size):
        scale(u[i], v, out[i * v.size : (i + 1) * v.size])
    return 0


@njit
def fill(value, out):
    """Set every element of out to one value."""
    for i in range(out.size):
        out[i] = value


@njit(fastmath={"reassoc", "contract"})  # lets the compiler sum in several SIMD lanes; NaN and inf stay exact
def sum_of_squares(u):
    """Return the sum of u[i] ** 2 in float64."""
    total = 0.0
    for i in range(u.size):
        total += np.float64(u[i]) * np.float64(u[i])
    return total


@njit
def count_differing(u, fill):
    """Return the number of elements that differ from the fill; NaN always does."""
    count = 0
    for i in range(u.size):
        count += u[i] != fill
    return count


@njit
def least(u, fill, none):
    """Return the least element that is not the fill: `none` if there is none, NaN if any element is NaN."""
    result = none
    for i in range(u.size):
        result = result if u[i] == fill else np.minimum(result, u[i])
    return result


@njit
def greatest(u, fill, none):
    """Return the greatest element that is not the fill: `none` if there is none, NaN if any element is NaN."""
    result = none
    for i in range(u.size):
        result = result if u[i] == fill else np.maximum(result, u[i])
    return result


@njit
def count_not_finite(u, fill):
    """Return the number of elements that are NaN or infinite; an infinite fill does not count."""
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
    """Return an int64 hash of an array's words and their order."""
    state = np.uint64(words.size) * _MULTIPLIER
    for i in range(words.size):
        state = (state ^ np.uint64(words[i])) * _MULTIPLIER
        state ^= state >> _HALF
    return np.int64(state * _MULTIPLIER)

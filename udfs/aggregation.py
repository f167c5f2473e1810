"""Folding arrays and lines into results: sum, prod, max, min, any, all and logsumexp, and the sum of scaled arrays.

Self-contained: numba and numpy only, no allocation, the same source for every host. NaN wins every
maximum and minimum, as in numpy, and is true.
"""

import math

import numpy as np
from numba import njit

AGGREGATES = ("sum", "prod", "max", "min", "any", "all", "logsumexp")  # in the order of their codes
AGGREGATE_NAMES = np.frombuffer("|".join(AGGREGATES).encode(), dtype=np.uint8)
UNKNOWN_AGGREGATE = -21

SUM, PROD, MAX, MIN, ANY, ALL, LOGSUMEXP = range(7)


@njit
def identity_of(aggregate):
    """What folding nothing gives: 0, 1, -inf, inf, 0, 1, -inf."""
    if aggregate == SUM or aggregate == ANY:
        return 0.0
    if aggregate == PROD or aggregate == ALL:
        return 1.0
    return np.inf if aggregate == MIN else -np.inf


@njit
def fold(aggregate, w, u):
    """Fold u into w element by element; (n,) each, one dtype."""
    if aggregate == SUM:
        for i in range(w.size):
            w[i] += u[i]
    elif aggregate == PROD:
        for i in range(w.size):
            w[i] *= u[i]
    elif aggregate == MAX:
        for i in range(w.size):
            w[i] = np.maximum(w[i], u[i])
    elif aggregate == MIN:
        for i in range(w.size):
            w[i] = np.minimum(w[i], u[i])
    elif aggregate == ANY:
        for i in range(w.size):
            w[i] = (w[i] != 0) | (u[i] != 0)
    elif aggregate == ALL:
        for i in range(w.size):
            w[i] = (w[i] != 0) & (u[i] != 0)
    else:
        for i in range(w.size):
            w[i] = _log_of_sum(w[i], u[i])
    return 0


@njit
def _log_of_sum(a, b):
    """log(exp(a) + exp(b)); equal infinities have no difference, but a sum."""
    distance = np.float64(0) if a == b else abs(np.float64(a) - np.float64(b))
    return np.maximum(a, b) + math.log1p(np.exp(-distance))


@njit
def fold_line(aggregate, w, at, stride, u, n):
    """Fold u[0:n] into w[at], w[at + stride], ...; stride 0 folds all into one element."""
    if stride == 1:
        return fold(aggregate, w[at : at + n], u)
    if stride == 0 and aggregate == SUM and n > 0:
        w[at] += _sum_of(u, n)
        return 0
    for i in range(n):
        place = at + i * stride
        fold(aggregate, w[place : place + 1], u[i : i + 1])
    return 0


@njit(fastmath={"reassoc", "contract"})  # lets the compiler sum in several lanes; NaN and inf stay as they are
def _sum_of(u, n):
    """Sum of u[0:n], of at least one element."""
    total = u[0]
    for i in range(1, n):
        total += u[i]
    return total


@njit
def add_scaled(w, scale, v):
    """W += scale * v; (n,) each, one dtype."""
    for i in range(w.size):
        w[i] += scale * v[i]
    return 0

"""Folding arrays and lines into results: sum, prod, max and min, and the sum of scaled arrays.

Self-contained: numba and numpy only, no allocation, the same source for every host. NaN wins every
maximum and minimum, as in numpy.
"""

import numpy as np
from numba import njit

AGGREGATES = ("sum", "prod", "max", "min")  # in the order of their codes
UNKNOWN_AGGREGATE = -21

SUM, PROD, MAX, MIN = 0, 1, 2, 3


@njit
def aggregate_code(text):
    """Code of the aggregate that `text` ((n,) uint8) names, or UNKNOWN_AGGREGATE."""
    if text.size == 3:
        first, second, third = text[0], text[1], text[2]
        if first == 115 and second == 117 and third == 109:
            return SUM
        if first == 109 and second == 97 and third == 120:
            return MAX
        if first == 109 and second == 105 and third == 110:
            return MIN
    if text.size == 4 and text[0] == 112 and text[1] == 114 and text[2] == 111 and text[3] == 100:
        return PROD
    return UNKNOWN_AGGREGATE


@njit
def identity_of(aggregate):
    """What folding nothing gives: 0, 1, -inf, inf for sum, prod, max, min."""
    if aggregate == SUM:
        return 0.0
    if aggregate == PROD:
        return 1.0
    return -np.inf if aggregate == MAX else np.inf


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
    else:
        for i in range(w.size):
            w[i] = np.minimum(w[i], u[i])


@njit
def fold_line(aggregate, w, at, stride, u, n):
    """Fold u[0:n] into w[at], w[at + stride], ...; stride 0 folds all into one element."""
    if stride == 1:
        fold(aggregate, w[at : at + n], u)
        return
    for i in range(n):
        place = at + i * stride
        fold(aggregate, w[place : place + 1], u[i : i + 1])


@njit
def add_scaled(w, scale, v):
    """W += scale * v; (n,) each, one dtype."""
    for i in range(w.size):
        w[i] += scale * v[i]

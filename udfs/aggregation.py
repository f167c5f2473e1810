"""Folding arrays and lines into results, by the bodies of aggregates, and the sum of scaled arrays.

A body makes one element of two, as in evaluation.py. Self-contained: numba and numpy only, no allocation, the same
source for every host.
"""

from numba import njit

UNKNOWN_AGGREGATE = -21


def folding(bodies, with_code):
    """How aggregates fold: (fold, fold_line), which return 0 or a code.

    bodies: by the aggregate's code, None where these numbers have no such aggregate; with_code: as in evaluation.py.

    fold(aggregate, w, u) folds u into w element by element; (n,) each, one dtype. fold_line(aggregate, w, at, stride,
    u, n) folds u[0:n] into w[at], w[at + stride], ...; stride 0 folds all into one element.
    """
    count = len(bodies)
    chosen = _chosen([_refuse if body is None else _line(body, with_code) for body in bodies], 0)

    @njit
    def fold_line(aggregate, w, at, stride, u, n):
        return chosen(aggregate, w, at, stride, u, n) if 0 <= aggregate < count else UNKNOWN_AGGREGATE

    @njit
    def fold(aggregate, w, u):
        return fold_line(aggregate, w, 0, 1, u, w.size)

    return fold, fold_line


def _chosen(lines, first):
    """The line of an aggregate among those from a first one on, found by halving."""
    if len(lines) == 1:
        return lines[0]
    half = len(lines) // 2
    middle, lower, upper = first + half, _chosen(lines[:half], first), _chosen(lines[half:], first + half)

    @njit
    def line(aggregate, w, at, stride, u, n):
        if aggregate < middle:
            return lower(aggregate, w, at, stride, u, n)
        return upper(aggregate, w, at, stride, u, n)

    return line


@njit
def _refuse(aggregate, w, at, stride, u, n):
    return UNKNOWN_AGGREGATE


def _line(body, with_code):
    @njit
    def line(aggregate, w, at, stride, u, n):
        code = 0
        if stride == 1:
            part = w[at : at + n]
            for i in range(n):
                part[i], failure = with_code(body(part[i], u[i]))
                code |= failure
        elif stride == 0 and n > 0:
            total, code = with_code(body(w[at], u[0]))
            for i in range(1, n):
                total, failure = with_code(body(total, u[i]))
                code |= failure
            w[at] = total
        else:
            for i in range(n):
                w[at + i * stride], failure = with_code(body(w[at + i * stride], u[i]))
                code |= failure
        return code

    return line


@njit
def add_scaled(w, scale, v):
    """W += scale * v; (n,) each, one dtype."""
    for i in range(w.size):
        w[i] += scale * v[i]
    return 0

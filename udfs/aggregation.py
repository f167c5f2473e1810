"""Folds and scans of arrays by the bodies of aggregates, and the sum of scaled arrays.

The body of an aggregate combines two elements, as in evaluation.py. Self-contained: numba and numpy only, no
allocation, the same source for every host.
"""

from numba import njit

UNKNOWN_AGGREGATE = -21
UNREGISTERED = -22
WRONG_ARGUMENTS = -23


def make_folds(bodies, missing, evaluation):
    """Make the functions (fold, fold_line) for some aggregates; both return 0 or a code.

    fold(aggregate, w, u) folds u into w element by element; u and w: (n,), one dtype. fold_line(aggregate, w, at,
    stride, u, n) folds u[0:n] into w[at], w[at + stride], ...; stride 0 folds all into one element, and overwrites u.

    Args:
        bodies: The bodies of aggregates by code; None if the numbers have no such aggregate.
        missing: The error code for those.
        evaluation: The module evaluation.py.
    """
    count, refuse = len(bodies), _make_refusal(missing)
    run = evaluation.make_switch(
        [refuse if body is None else _make_fold_line(body, evaluation.with_code) for body in bodies]
    )

    @njit
    def fold_line(aggregate, w, at, stride, u, n):
        return run(aggregate, w, at, stride, u, n) if 0 <= aggregate < count else UNKNOWN_AGGREGATE

    @njit
    def fold(aggregate, w, u):
        return fold_line(aggregate, w, 0, 1, u, w.size)

    return fold, fold_line


def make_scan(bodies, missing, evaluation):
    """Make the function scan(aggregate, identity, u, w, n, inner), which returns 0 or a code.

    u and w: (k, n, inner), flat, one dtype. An element of w is the aggregate of the elements of u along the middle
    axis up to that position. The arguments are those of `make_folds`.
    """
    count, refuse = len(bodies), _make_refusal(missing)
    run = evaluation.make_switch(
        [refuse if body is None else _make_scan_lines(body, evaluation.with_code) for body in bodies]
    )

    @njit
    def scan(aggregate, identity, u, w, n, inner):
        return run(aggregate, identity, u, w, n, inner) if 0 <= aggregate < count else UNKNOWN_AGGREGATE

    return scan


def _make_refusal(code):
    @njit
    def refuse(aggregate, *arguments):
        return code

    return refuse


def _make_scan_lines(body, with_code):
    @njit
    def lines(aggregate, identity, u, w, n, inner):
        code = 0
        block = n * inner
        for start in range(0, w.size, max(block, 1)):
            if inner == 1:
                total = identity
                for at in range(start, start + n):
                    total, failure = with_code(body(total, u[at]))
                    code |= failure
                    w[at] = total
                continue
            for at in range(start, start + inner):
                w[at], failure = with_code(body(identity, u[at]))
                code |= failure
            for at in range(start + inner, start + block):
                w[at], failure = with_code(body(w[at - inner], u[at]))
                code |= failure
        return code

    return lines


def _make_fold_line(body, with_code):
    @njit
    def halve(u):
        """Fold all elements into the first: halves into one another, since one by one each would wait for the last."""
        code, n = 0, u.size
        while n > 1:
            half = n // 2
            lower, upper = u[:half], u[n - half : n]
            for i in range(half):
                lower[i], failure = with_code(body(lower[i], upper[i]))
                code |= failure
            n -= half
        return code

    @njit
    def line(aggregate, w, at, stride, u, n):
        code = 0
        if stride == 1:
            part = w[at : at + n]
            for i in range(n):
                part[i], failure = with_code(body(part[i], u[i]))
                code |= failure
        elif stride == 0 and n > 0:
            code = halve(u[:n])
            w[at], failure = with_code(body(w[at], u[0]))
            code |= failure
        else:
            for i in range(n):
                w[at + i * stride], failure = with_code(body(w[at + i * stride], u[i]))
                code |= failure
        return code

    return line


@njit
def add_scaled(w, scale, v):
    """Add scale * v to w; v and w: (n,), one dtype."""
    for i in range(w.size):
        w[i] += scale * v[i]
    return 0


@njit
def add_scaled_product(w, scale, u, v):
    """Add scale * u * v to w, element by element; u, v and w: (n,), one dtype."""
    for i in range(w.size):
        w[i] += scale * u[i] * v[i]
    return 0

"""Inverses of matrices, by Gauss-Jordan elimination with partial pivoting.

Self-contained: numba only, no allocation, the same source for every host.
Source: W. Press et al., Numerical Recipes, section 2.1, in place, with rows exchanged instead of full pivoting.
"""

from numba import njit

NOT_SQUARE = -25
NO_INVERSE = -26
TOO_MANY_ROWS = -27


@njit
def invert(w, n, pivots, pause):
    """Replace a matrix by its inverse.

    Args:
        w: (n, n), in C order.
        n: The number of rows.
        pivots: Scratch memory: n integers.
        pause: Called for every row; it returns another number than 0 to stop, or does not return.

    Returns:
        The number of the column at which no row is left that is not 0, if there is no inverse; else -1.
    """
    for column in range(n):
        pivot = column
        for row in range(column + 1, n):
            if abs(w[row * n + column]) > abs(w[pivot * n + column]):
                pivot = row
        if w[pivot * n + column] == 0:
            return column
        pivots[column] = pivot
        _exchange(w, column * n, pivot * n, 1, n)
        _eliminate(w, n, column)
        if pause() != 0:
            break
    for column in range(n - 1, -1, -1):
        _exchange(w, column, pivots[column], n, n)
    return -1


@njit
def _eliminate(w, n, column):
    """Subtract the row of a pivot from all others; where that leaves 0 or 1, the inverse takes their place."""
    pivot_row = w[column * n : column * n + n]
    factor = 1 / pivot_row[column]
    pivot_row[column] = 1
    for i in range(n):
        pivot_row[i] = pivot_row[i] * factor
    for row in range(n):
        if row != column:
            other = w[row * n : row * n + n]
            multiple = other[column]
            other[column] = 0
            for i in range(n):
                other[i] = other[i] - multiple * pivot_row[i]


@njit
def _exchange(w, first, second, stride, count):
    """Exchange two rows or two columns."""
    if first != second:
        for i in range(count):
            at, other = first + i * stride, second + i * stride
            w[at], w[other] = w[other], w[at]

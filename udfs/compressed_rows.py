"""Compressed sparse rows: entries ordered by row, and sums over the entries of one row.

Self-contained: numba and numpy only, no allocation, the same source for every host.
"""

from numba import njit


@njit
def count_rows(rows, starts):
    """Add one to starts[row + 1] for every row of `rows`."""
    for entry in range(rows.size):
        starts[rows[entry] + 1] += 1


@njit
def accumulate(starts):
    """Turn the numbers of entries of rows, from `count_rows`, into where each row begins."""
    for row in range(1, starts.size):
        starts[row] += starts[row - 1]


@njit
def place_rows(rows, positions, numbers, starts, placed_positions, placed_numbers):
    """Move entries to their rows; starts[row] is where the next entry of a row goes."""
    for entry in range(rows.size):
        place = starts[rows[entry]]
        placed_positions[place] = positions[entry]
        placed_numbers[place] = numbers[entry]
        starts[rows[entry]] = place + 1


@njit
def restore_starts(starts):
    """Turn where rows end, which `place_rows` leaves, into where they begin; the last word stays."""
    for row in range(starts.size - 1, 0, -1):
        starts[row] = starts[row - 1]
    starts[0] = 0


def make_add_rows(add_scaled):
    """Make the function add_rows(w, numbers, positions, u), which returns 0 or a code of `add_scaled`.

    It adds numbers[entry] * u[positions[entry]] to w for every entry. Shapes: w (n,), u (m, n) as a flat array.
    """

    @njit
    def add_rows(w, numbers, positions, u):
        code = 0
        for entry in range(positions.size):
            start = positions[entry] * w.size
            code = min(code, add_scaled(w, numbers[entry], u[start : start + w.size]))
        return code

    return add_rows


def make_add_rows_by_four(add_four_scaled, add_rows):
    """Make the function of `make_add_rows` for real numbers, which adds four rows at a time, to save accesses of w.

    Args:
        add_four_scaled: (w, a, s, b, t, c, u, d, v) adds a * s + b * t + c * u + d * v to w.
        add_rows: The function of `make_add_rows`, for the last entries.
    """

    @njit
    def add_rows_by_four(w, numbers, positions, u):
        n, together = w.size, positions.size - positions.size % 4
        for entry in range(0, together, 4):
            first, second = positions[entry] * n, positions[entry + 1] * n
            third, fourth = positions[entry + 2] * n, positions[entry + 3] * n
            add_four_scaled(
                w,
                numbers[entry],
                u[first : first + n],
                numbers[entry + 1],
                u[second : second + n],
                numbers[entry + 2],
                u[third : third + n],
                numbers[entry + 3],
                u[fourth : fourth + n],
            )
        return add_rows(w, numbers[together:], positions[together:], u)

    return add_rows_by_four

"""Kernels: divides the result of a row into slices that threads compute at the same time."""

from numba import njit


@njit
def slice_bounds(size, index, slices):
    """Return where slice `index` of `size` elements begins and where it ends."""
    return size * index // slices, size * (index + 1) // slices


@njit
def row_bounds(starts, index, slices):
    """Return the first row of a slice of a sparse matrix and the row after its last; slices take equally long.

    Args:
        starts: Where the entries of rows begin, and where those of the last row end.
        index: The number of the slice.
        slices: The number of slices.
    """
    rows = starts.size - 1
    first, end = slice_bounds(rows + starts[rows] - starts[0], index, slices)
    return _row_at(starts, first), _row_at(starts, end) if index < slices - 1 else rows


@njit
def _row_at(starts, work):
    """Return the first row before which there are `work` rows and entries or more."""
    low, high = 0, starts.size - 1
    while low < high:
        middle = (low + high) // 2
        if middle + starts[middle] - starts[0] < work:
            low = middle + 1
        else:
            high = middle
    return low


@njit
def elements_of_slice(u, first, end):
    """Return the elements of an operand for a slice of the result; all of them if one stands for every element."""
    return u if u.size == 1 else u[first:end]

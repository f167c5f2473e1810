"""Kernels: the callback of DuckDB's functions that compute arrays in reserved memory, so that each is written once.

The arguments are those of the function that returns the array, then the handle of the memory and the row of the array
in it. The result is the handle; NULL if an argument is, for which nothing is written.
"""

from numba import njit

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.duckdb.callbacks import scalar_callback
from sparseeinsum.kernels.compiled.duckdb.pins import PIN_WORDS, unpin
from sparseeinsum.kernels.compiled.duckdb.reservations import pin_reserved, row_address
from sparseeinsum.kernels.compiled.duckdb.threads import compute_all_rows
from sparseeinsum.kernels.compiled.duckdb.vectors import (
    FIRST_ROW,
    get_data,
    integer_at,
    prepare_batch,
    read_row,
    set_null,
    word,
)
from sparseeinsum.kernels.compiled.kernel_calls import NULL_ROW, ROW, measure
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.compiled.threads import compute_array

# The last words of the first row of a batch: a row has room for two arguments more than these functions have.
_PIN = FIRST_ROW + d.ROW_WORDS - PIN_WORDS


@njit
def _place_arrays(descriptor, work, rows, result):
    """Compute the arrays of all rows in the memory that they name."""
    handles, row = array_at(get_data(result), rows, word), work + 8 * ROW
    reserved = descriptor[d.ARGUMENTS] - 2
    may_batch = descriptor[d.BATCH] != 0 and rows > 1 and _are_neighbours(work, reserved, rows)
    if may_batch and prepare_batch(descriptor, work, rows):
        for index in range(rows):
            handles[index] = integer_at(work, reserved, 0)
        return _place_batch(descriptor, work, reserved, rows)
    for index in range(rows):
        code = read_row(descriptor, work, index, row)
        if code == NULL_ROW:
            set_null(result, index)
            continue
        if code == 0:
            code = _place_array(descriptor, work, reserved, index)
        if code < 0:
            return code
        handles[index] = integer_at(work, reserved, index)
    return word(0)


@njit
def _are_neighbours(work, reserved, rows):
    """Whether all rows name the same memory, and the rows of their arrays follow one another."""
    first = integer_at(work, reserved + 1, 0)
    for index in range(rows):
        is_next = integer_at(work, reserved + 1, index) == first + index
        if not is_next or integer_at(work, reserved, index) != integer_at(work, reserved, 0):
            return False
    return True


@njit
def _target(descriptor, work, reserved, index, size):
    """Note that the array of a row is written, and return where, or an error code."""
    code = pin_reserved(descriptor, work, work + 8 * _PIN, integer_at(work, reserved, index))
    if code < 0:
        return code
    position = integer_at(work, reserved + 1, index)
    return row_address(work, work + 8 * _PIN, position, size, descriptor[d.RESULT_BYTES])


@njit
def _place_array(descriptor, work, reserved, index):
    """Compute the array of a row that is read; returns 0 or an error code."""
    row = work + 8 * ROW
    size = measure(descriptor, work, row)
    out = _target(descriptor, work, reserved, index, size) if size >= 0 else size
    if out < 0:
        return out
    return min(compute_array(descriptor, work, row, out, size), 0)


@njit
def _place_batch(descriptor, work, reserved, rows):
    """Compute all rows in one batch: their results have equal sizes and are adjacent; returns 0 or an error code."""
    size = measure(descriptor, work, work + 8 * FIRST_ROW)
    out = _target(descriptor, work, reserved, 0, size) if size >= 0 else size
    for index in range(1, rows if out >= 0 else 0):
        target = _target(descriptor, work, reserved, index, size)
        if target < 0:
            return target
    return compute_all_rows(descriptor, work, rows, out, size) if out >= 0 else out


@njit
def _release(work):
    unpin(work + 8 * _PIN)
    return 0


placed_list = scalar_callback("placed_list", _place_arrays, _release)

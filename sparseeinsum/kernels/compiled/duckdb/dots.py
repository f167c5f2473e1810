"""Kernels: the callback of DuckDB's functions that multiply a number by the inner product of rows of resident arrays.

The arguments are a number, a handle of an array and a row of it, a handle of another array and a row of it, and the
number of elements in a row of both. A NULL handle stands for an array of zeros.
"""

from numba import njit, types

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.duckdb.callbacks import scalar_callback
from sparseeinsum.kernels.compiled.duckdb.pins import PIN_WORDS, pin, pinned_address, pinned_handle, unpin
from sparseeinsum.kernels.compiled.duckdb.vectors import (
    FIRST_ROW,
    argument_is_valid,
    get_data,
    integer_at,
    set_null,
    value_address,
    word,
)
from sparseeinsum.kernels.compiled.fetched_rows import ROWS_AHEAD, fetch_row
from sparseeinsum.kernels.compiled.kernel_calls import ROW, compute, report
from sparseeinsum.kernels.compiled.raw_memory import array_at

_NUMBER, _LEFT, _LEFT_ROW, _RIGHT, _RIGHT_ROW, _SIZE = range(6)  # the arguments
_PIN_OF_LEFT, _PIN_OF_RIGHT = FIRST_ROW, FIRST_ROW + PIN_WORDS  # words of the memory of a call; no row is there


@njit
def _dot_rows(descriptor, work, rows, result):
    out = get_data(result)
    for row in range(rows):
        if row + ROWS_AHEAD < rows:
            _fetch(descriptor, work, row + ROWS_AHEAD, work + 8 * _PIN_OF_LEFT, _LEFT)
            _fetch(descriptor, work, row + ROWS_AHEAD, work + 8 * _PIN_OF_RIGHT, _RIGHT)
        code = _dot_row(descriptor, work, row, result, out + row * descriptor[d.RESULT_BYTES])
        if code < 0:
            return code
    return 0


@njit
def _release(work):
    unpin(work + 8 * _PIN_OF_LEFT)
    unpin(work + 8 * _PIN_OF_RIGHT)
    return 0


@njit
def _fetch(descriptor, work, row, place, argument):
    """Let the processor fetch a row of an array into its cache, if that is the array of the row before."""
    is_valid = argument_is_valid(work, argument, row) and argument_is_valid(work, argument + 1, row)
    if is_valid and argument_is_valid(work, _SIZE, row) and integer_at(work, argument, row) == pinned_handle(place):
        row_bytes = integer_at(work, _SIZE, row) * descriptor[d.RESULT_BYTES]
        fetch_row(pinned_address(place) + integer_at(work, argument + 1, row) * row_bytes, row_bytes)


@njit
def _dot_row(descriptor, work, row, result, out):
    """Write the product of a row to `out`; returns 0 or an error code."""
    for index in range(_NUMBER, _SIZE + 1):
        if index != _LEFT and index != _RIGHT and not argument_is_valid(work, index, row):
            set_null(result, row)
            return 0
    if not (argument_is_valid(work, _LEFT, row) and argument_is_valid(work, _RIGHT, row)):
        numbers = array_at(out, descriptor[d.RESULT_BYTES], types.uint8)
        for index in range(numbers.size):
            numbers[index] = 0
        return 0
    operands, size = array_at(work + 8 * ROW, d.ROW_WORDS, word), integer_at(work, _SIZE, row)
    if size < 0:
        report(work, size, 0)
        return d.BAD_SIZE
    operands[0], operands[1] = value_address(work, _NUMBER, row, descriptor[d.RESULT_BYTES]), 1
    code = _read_row(descriptor, work, row, work + 8 * _PIN_OF_LEFT, _LEFT, size)
    if code >= 0:
        code = _read_row(descriptor, work, row, work + 8 * _PIN_OF_RIGHT, _RIGHT, size)
    return compute(descriptor, work, work + 8 * ROW, out, 1) if code >= 0 else code


@njit
def _read_row(descriptor, work, row, place, argument, size):
    """Write the operand of the kernel that is a row of an array; returns 0 or an error code."""
    handle, position = integer_at(work, argument, row), integer_at(work, argument + 1, row)
    kind = descriptor[d.ELEMENT_TYPE]
    elements = pin(place, handle, kind, kind)
    if elements < 0:
        report(work, handle, 0)
        return elements
    if position < 0 or (size > 0 and position >= elements // size):
        report(work, position, size, elements)
        return d.OUTSIDE_RESIDENT
    operands = array_at(work + 8 * ROW, d.ROW_WORDS, word)
    at = 2 if argument == _LEFT else 4
    operands[at], operands[at + 1] = pinned_address(place) + position * size * descriptor[d.RESULT_BYTES], size
    return 0


dot_rows = scalar_callback("dot_rows", _dot_rows, _release)

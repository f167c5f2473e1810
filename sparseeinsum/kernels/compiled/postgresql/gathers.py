"""Kernels: the callbacks of PostgreSQL's functions that compute from entries and rows of arrays.

The arguments are those of DuckDB's functions, with the arrays themselves in place of handles.
"""

from numba import njit, types

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.kernel_calls import NULL_ROW, ROW, compute, report, word
from sparseeinsum.kernels.compiled.postgresql.compressed_values import (
    check_size,
    operands_of,
    read_row_of,
    rows_of_arrays,
)
from sparseeinsum.kernels.compiled.postgresql.datums import (
    FLAT_HEADER,
    KEPT,
    descriptor_at,
    is_null,
    new_array,
    null_result,
    number_result,
    raise_error,
    read_row,
    word_at,
    work_of,
)
from sparseeinsum.kernels.compiled.raw_memory import array_at

half_word = types.int32

# The arguments of sums over the entries of a row: one array or two, the size of their rows, and what sums start from
# follow. Then the operands of their kernels.
_ENTRIES, _ROW, _ARRAY = range(3)
_ROWS, _STARTS, _POSITIONS, _RESULTS, _FIRST, _ARRAYS = 0, 1, 2, 4, 5, 6
_ROW_WORD, _START_WORDS, _RESULT_WORDS = KEPT, KEPT + 1, KEPT + 3  # words that these are in

_LEFT, _LEFT_ROW, _RIGHT, _RIGHT_ROW, _LENGTH = range(1, 6)  # the arguments of inner products, after the number


@njit
def postgres_product_sum(call_info, description):
    """Return the sum over the entries of a row, each times a row of every array; NULL if the row has no entries."""
    descriptor, work = descriptor_at(description), work_of(call_info)
    code = read_row(call_info, 0, descriptor, work)
    if code == NULL_ROW:
        return null_result(call_info)
    size = word_at(operands_of(work)[2 * (descriptor[d.ARGUMENTS] - 2)]) if code == 0 else word(0)
    entries = _read_sum(descriptor, work, size) if code == 0 else code
    if entries == 0:
        return null_result(call_info)
    array = new_array(descriptor, work, size) if entries > 0 else entries
    code = compute(descriptor, work, work + 8 * ROW, array + FLAT_HEADER, 1) if array >= 0 else array
    return raise_error(descriptor, work, code) if code < 0 else array


@njit
def postgres_scaled_dot(call_info, description):
    """Return a number times the inner product of rows of two arrays; an array that is NULL stands for zeros."""
    descriptor, work = descriptor_at(description), work_of(call_info)
    code = read_row(call_info, 0, descriptor, work)
    if code == NULL_ROW:
        for argument in range(descriptor[d.ARGUMENTS]):
            if argument != _LEFT and argument != _RIGHT and is_null(call_info, argument):
                return null_result(call_info)
        return 0
    code, out = _read_rows(descriptor, work) if code == 0 else code, number_result(work)
    code = compute(descriptor, work, work + 8 * ROW, out, 1) if code == 0 else code
    return raise_error(descriptor, work, code) if code < 0 else word_at(out)


@njit
def _read_sum(descriptor, work, size):
    """Write the operands of the kernel; returns how many entries the row has, or an error code."""
    operands, code = operands_of(work), check_size(work, size)
    if code < 0:
        return code
    start_argument = descriptor[d.ARGUMENTS] - 1
    bound = rows_of_arrays(work, _ARRAY, start_argument - _ARRAY - 1, size)
    number, start = word_at(operands[2 * _ROW]), operands[2 * start_argument]
    first, first_size = operands[2 * _ARRAY], operands[2 * _ARRAY + 1]
    second, second_size = operands[2 * _ARRAY + 2], operands[2 * _ARRAY + 3]
    entries = read_row_of(descriptor, work, _ENTRIES, number, _POSITIONS)
    if entries <= 0:
        return entries
    positions = array_at(operands[2 * _POSITIONS], entries, half_word)
    for entry in range(entries if size > 0 else 0):
        if positions[entry] < 0 or positions[entry] >= bound:
            report(work, word(positions[entry]), size, bound * size)
            return word(d.OUTSIDE_RESIDENT)
    kept = array_at(work + 8 * _ROW_WORD, 5, word)
    kept[0], kept[1], kept[2], kept[3], kept[4] = 0, 0, entries, 0, size
    operands[2 * _ROWS], operands[2 * _ROWS + 1] = work + 8 * _ROW_WORD, 1
    operands[2 * _STARTS], operands[2 * _STARTS + 1] = work + 8 * _START_WORDS, 2
    operands[2 * _RESULTS], operands[2 * _RESULTS + 1] = work + 8 * _RESULT_WORDS, 2
    operands[2 * _FIRST], operands[2 * _FIRST + 1] = start, 1
    operands[2 * _ARRAYS], operands[2 * _ARRAYS + 1] = first, first_size
    operands[2 * _ARRAYS + 2], operands[2 * _ARRAYS + 3] = second, second_size
    return entries


@njit
def _read_rows(descriptor, work):
    """Write the operands of the kernel, which are rows of arrays; returns 0 or an error code."""
    operands, item_bytes = operands_of(work), descriptor[d.RESULT_BYTES]
    size = word_at(operands[2 * _LENGTH])
    code = check_size(work, size)
    if code < 0:
        return code
    left, right = word_at(operands[2 * _LEFT_ROW]), word_at(operands[2 * _RIGHT_ROW])
    for argument, row in ((_LEFT, left), (_RIGHT, right)):
        elements = operands[2 * argument + 1]
        if row < 0 or (size > 0 and row >= elements // size):
            report(work, row, size, elements)
            return word(d.OUTSIDE_RESIDENT)
    first, second = operands[2 * _LEFT], operands[2 * _RIGHT]
    operands[2], operands[3] = first + (left * size * item_bytes if size > 0 else 0), size
    operands[4], operands[5] = second + (right * size * item_bytes if size > 0 else 0), size
    return word(0)

"""Kernels: the callbacks of DuckDB's functions that multiply all compressed entries by a dense matrix.

The arguments are those that sparse_operands.py lists, with a handle of the entries. A NULL handle stands for no
entries; another NULL gives NULL.
"""

from numba import njit

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.duckdb.callbacks import scalar_callback
from sparseeinsum.kernels.compiled.duckdb.compressed_blocks import pin_block, pin_block_of_any_type
from sparseeinsum.kernels.compiled.duckdb.pins import pinned_address, unpin
from sparseeinsum.kernels.compiled.duckdb.vectors import (
    FIRST_ROW,
    argument_is_valid,
    array_of_row,
    get_child,
    get_data,
    integer_at,
    reserve_elements,
    set_null,
    value_address,
    word,
    write_entry,
)
from sparseeinsum.kernels.compiled.kernel_calls import ROW
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.compiled.sparse_operands import (
    ARRAY,
    ENTRIES,
    OTHER_NUMBERS,
    ROWS,
    SIZE,
    check_block,
    check_shape,
    replace_numbers,
    write_array,
    write_entries_of,
)
from sparseeinsum.kernels.compiled.threads import compute_on_threads

_PIN = FIRST_ROW  # words of the work memory, in which this callback has no first row


@njit
def _multiply_rows(descriptor, work, rows, result, is_transposed):
    for index in range(rows):
        is_null = False
        for argument in range(ROWS, descriptor[d.ARGUMENTS]):
            is_null = is_null or not argument_is_valid(work, argument, index)
        if is_null:
            set_null(result, index)
            write_entry(descriptor, array_at(get_data(result), 2 * rows, word), index, 0, 0)
        else:
            code = _multiply(descriptor, work, index, result, is_transposed)
            if code < 0:
                return code
    return 0


@njit
def _multiply(descriptor, work, index, result, is_transposed):
    """Compute the product for one row of the vectors; returns 0 or an error code."""
    rows, size = integer_at(work, ROWS, index), integer_at(work, SIZE, index)
    code = check_shape(descriptor, work, rows, size)
    entries = _read_operands(descriptor, work, index, is_transposed) if code == 0 else code
    start = reserve_elements(descriptor, work, result, rows * size) if entries >= 0 else entries
    if start < 0:
        return start
    write_entry(descriptor, array_at(get_data(result), 2 * (index + 1), word), index, start, rows * size)
    out = get_data(get_child(result)) + start * descriptor[d.RESULT_BYTES]
    return compute_on_threads(descriptor, work, work + 8 * ROW, out, rows * size, max(entries, rows) * size)


@njit
def _read_operands(descriptor, work, index, is_transposed):
    """Write the operands of the kernel for one row of the vectors; returns how many entries it has, or a code."""
    array, elements = array_of_row(work, ARRAY, index, descriptor[d.RESULT_BYTES])
    block = _block_of(descriptor, work, index) if elements >= 0 else elements
    code = min(block, 0)
    if block > 0:
        rows, size = integer_at(work, ROWS, index), integer_at(work, SIZE, index)
        code = check_block(work, block, rows, size, elements, is_transposed)
    if code < 0:
        return code
    entries = write_entries_of(work, block, descriptor[d.RESULT_BYTES])
    write_array(work, array, elements, value_address(work, SIZE, index, 8))
    if descriptor[d.ARGUMENTS] > OTHER_NUMBERS:
        numbers, count = array_of_row(work, OTHER_NUMBERS, index, descriptor[d.RESULT_BYTES])
        code = replace_numbers(work, numbers, count) if count >= 0 else count
    return code if code < 0 else entries


@njit
def _block_of(descriptor, work, index):
    """Pin the entries of a row of the vectors; returns the address of their block, 0 for NULL, or an error code."""
    if not argument_is_valid(work, ENTRIES, index):
        return word(0)
    if descriptor[d.ARGUMENTS] > OTHER_NUMBERS:
        code = pin_block_of_any_type(work, work + 8 * _PIN, ENTRIES, index)
    else:
        code = pin_block(descriptor, work, work + 8 * _PIN, ENTRIES, index)
    return pinned_address(work + 8 * _PIN) if code == 0 else word(code)


@njit
def _multiply_by_array(descriptor, work, rows, result):
    return _multiply_rows(descriptor, work, rows, result, False)


@njit
def _multiply_transposed(descriptor, work, rows, result):
    return _multiply_rows(descriptor, work, rows, result, True)


@njit
def _release(work):
    unpin(work + 8 * _PIN)
    return 0


multiply_by_array = scalar_callback("multiply_by_array", _multiply_by_array, _release)
multiply_transposed = scalar_callback("multiply_transposed", _multiply_transposed, _release)

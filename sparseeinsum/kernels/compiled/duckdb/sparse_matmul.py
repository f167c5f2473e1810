"""Kernels: the callbacks of DuckDB's functions that multiply all compressed entries by a dense matrix.

The arguments are a handle of compressed entries, how many rows the result has, an array, how many elements a row of the
array has, and perhaps an array of numbers in place of those of the entries. A NULL handle stands for no entries;
another NULL gives NULL.
"""

from numba import njit

from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.block_layout import write_block
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
from sparseeinsum.kernels.compiled.kernel_calls import ROW, report
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.compiled.threads import compute_on_threads

_ENTRIES, _ROWS, _ARRAY, _SIZE, _OTHER_NUMBERS = range(5)  # the arguments
_PIN = FIRST_ROW  # words of the work memory, in which this callback has no first row
_LARGEST_SIZE = 1 << 40

# The operands of the kernels: where rows begin, positions and numbers of all entries, the array, the elements of a row.
_STARTS, _POSITIONS, _NUMBERS, _MATRIX, _WIDTH = range(5)


@njit
def _multiply_rows(descriptor, work, rows, result, is_transposed):
    for index in range(rows):
        is_null = False
        for argument in range(_ROWS, descriptor[d.ARGUMENTS]):
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
    rows, size = integer_at(work, _ROWS, index), integer_at(work, _SIZE, index)
    if size < 0 or size > _LARGEST_SIZE:
        report(work, size, 0)
        return d.BAD_SIZE
    if rows < 0 or rows > c.LARGEST:
        report(work, rows, 0)
        return d.TOO_MANY_ROWS
    limit = descriptor[d.LIMIT_BYTES] // descriptor[d.RESULT_BYTES]
    if size > 0 and rows > limit // size:
        report(work, min(rows, _LARGEST_SIZE // size) * size * descriptor[d.RESULT_BYTES], descriptor[d.LIMIT_BYTES])
        return d.RESULT_TOO_LARGE
    code = _read_operands(descriptor, work, index, is_transposed)
    start = reserve_elements(descriptor, work, result, rows * size) if code == 0 else code
    if start < 0:
        return start
    write_entry(descriptor, array_at(get_data(result), 2 * (index + 1), word), index, start, rows * size)
    out = get_data(get_child(result)) + start * descriptor[d.RESULT_BYTES]
    products = array_at(work + 8 * ROW, d.ROW_WORDS, word)[2 * _NUMBERS + 1] * size
    return compute_on_threads(descriptor, work, work + 8 * ROW, out, rows * size, max(products, rows * size))


@njit
def _read_operands(descriptor, work, index, is_transposed):
    """Write the operands of the kernel for one row of the vectors; returns 0 or an error code."""
    operands = array_at(work + 8 * ROW, d.ROW_WORDS, word)
    matrix, elements = array_of_row(work, _ARRAY, index, descriptor[d.RESULT_BYTES])
    if elements < 0:
        return elements
    operands[2 * _STARTS + 1] = operands[2 * _POSITIONS + 1] = operands[2 * _NUMBERS + 1] = 0
    if argument_is_valid(work, _ENTRIES, index):
        if descriptor[d.ARGUMENTS] > _OTHER_NUMBERS:
            code = pin_block_of_any_type(work, work + 8 * _PIN, _ENTRIES, index)
        else:
            code = pin_block(descriptor, work, work + 8 * _PIN, _ENTRIES, index)
        if code == 0:
            code = _check_block(work, index, elements, is_transposed)
        if code < 0:
            return code
        write_block(operands, 2 * _STARTS, pinned_address(work + 8 * _PIN), descriptor[d.RESULT_BYTES])
    if descriptor[d.ARGUMENTS] > _OTHER_NUMBERS:
        code = _replace_numbers(descriptor, work, index, operands)
        if code < 0:
            return code
    operands[2 * _MATRIX], operands[2 * _MATRIX + 1] = matrix, elements
    operands[2 * _WIDTH], operands[2 * _WIDTH + 1] = value_address(work, _SIZE, index, 8), 1
    return 0


@njit
def _replace_numbers(descriptor, work, index, operands):
    """Let the kernel read the numbers of an argument; returns 0 or an error code."""
    numbers, elements = array_of_row(work, _OTHER_NUMBERS, index, descriptor[d.RESULT_BYTES])
    if elements < 0:
        return elements
    if elements != operands[2 * _NUMBERS + 1]:
        report(work, operands[2 * _NUMBERS + 1], elements)
        return d.ENTRIES_DIFFER
    operands[2 * _NUMBERS] = numbers
    return 0


@njit
def _check_block(work, index, elements, is_transposed):
    """Check that entries fit the array and the result; returns 0 or an error code."""
    rows, size = integer_at(work, _ROWS, index), max(integer_at(work, _SIZE, index), 1)
    head = array_at(pinned_address(work + 8 * _PIN), c.BLOCK_WORDS, word)
    count, bound = head[c.BLOCK_ROWS], head[c.BLOCK_BOUND]
    if is_transposed and bound > rows:
        report(work, bound - 1, rows, size)
        return d.NO_SUCH_ROW
    if not is_transposed and count != rows:
        report(work, count, rows)
        return d.ROWS_DIFFER
    read = count if is_transposed else bound
    if integer_at(work, _SIZE, index) > 0 and read > elements // size:
        report(work, read - 1, elements // size, size)
        return d.NO_SUCH_ROW
    return 0


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

"""Kernels: the callback of DuckDB's function that multiplies all compressed entries by a vector, in a semiring.

The arguments are the text of the semiring, a handle of compressed entries, how many rows the result has, the vector,
the number that aggregates start from, and that of rows without entries. A NULL handle stands for no entries; another
NULL gives NULL.
"""

from numba import njit

from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.block_layout import write_block
from sparseeinsum.kernels.compiled.duckdb.callbacks import scalar_callback
from sparseeinsum.kernels.compiled.duckdb.compressed_blocks import pin_block
from sparseeinsum.kernels.compiled.duckdb.pins import pinned_address, unpin
from sparseeinsum.kernels.compiled.duckdb.vectors import (
    FIRST_ROW,
    argument_is_valid,
    array_of_row,
    get_child,
    get_data,
    integer_at,
    read_row,
    reserve_elements,
    set_null,
    value_address,
    word,
    write_entry,
)
from sparseeinsum.kernels.compiled.kernel_calls import ROW, report
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.compiled.threads import compute_on_threads

_SEMIRING, _ENTRIES, _ROWS, _VECTOR, _START, _FILL = range(6)  # the arguments
_PIN = FIRST_ROW  # words of the work memory, in which this callback has no first row

# The operands of the kernel after the semiring: where rows begin, positions and numbers of all entries, the vector, and
# both numbers.
_STARTS, _POSITIONS, _NUMBERS, _ARRAY, _FIRST, _ABSENT = range(1, 7)


@njit
def _multiply_vectors(descriptor, work, rows, result):
    for index in range(rows):
        is_null = False
        for argument in range(descriptor[d.ARGUMENTS]):
            is_null = is_null or (argument != _ENTRIES and not argument_is_valid(work, argument, index))
        if is_null:
            set_null(result, index)
            write_entry(descriptor, array_at(get_data(result), 2 * rows, word), index, 0, 0)
        else:
            code = _multiply(descriptor, work, index, result)
            if code < 0:
                return code
    return 0


@njit
def _multiply(descriptor, work, index, result):
    """Compute the product for one row of the vectors of DuckDB; returns 0 or an error code."""
    rows = integer_at(work, _ROWS, index)
    if rows < 0 or rows > c.LARGEST:
        report(work, rows, 0)
        return d.TOO_MANY_ROWS
    if rows > descriptor[d.LIMIT_BYTES] // descriptor[d.RESULT_BYTES]:
        report(work, rows * descriptor[d.RESULT_BYTES], descriptor[d.LIMIT_BYTES])
        return d.RESULT_TOO_LARGE
    code = _read_operands(descriptor, work, index, rows)
    start = reserve_elements(descriptor, work, result, rows) if code == 0 else code
    if start < 0:
        return start
    write_entry(descriptor, array_at(get_data(result), 2 * (index + 1), word), index, start, rows)
    out = get_data(get_child(result)) + start * descriptor[d.RESULT_BYTES]
    products = array_at(work + 8 * ROW, d.ROW_WORDS, word)[2 * _NUMBERS + 1]
    return compute_on_threads(descriptor, work, work + 8 * ROW, out, rows, max(products, rows))


@njit
def _read_operands(descriptor, work, index, rows):
    """Write the operands of the kernel for one row of the vectors of DuckDB; returns 0 or an error code."""
    operands, item_bytes = array_at(work + 8 * ROW, d.ROW_WORDS, word), descriptor[d.RESULT_BYTES]
    vector, elements = array_of_row(work, _VECTOR, index, item_bytes)
    if elements < 0:
        return elements
    has_entries = argument_is_valid(work, _ENTRIES, index)
    if has_entries:
        code = read_row(descriptor, work, index, work + 8 * ROW)  # the semiring
        if code == 0:
            code = pin_block(descriptor, work, work + 8 * _PIN, _ENTRIES, index)
        if code == 0:
            code = _check_block(work, rows, elements)
        if code < 0:
            return code
        write_block(operands, 2 * _STARTS, pinned_address(work + 8 * _PIN), item_bytes)
    else:
        operands[2 * _STARTS + 1] = operands[2 * _POSITIONS + 1] = operands[2 * _NUMBERS + 1] = 0
    operands[2 * _ARRAY], operands[2 * _ARRAY + 1] = vector, elements
    for argument, operand in ((_START, _FIRST), (_FILL, _ABSENT)):
        operands[2 * operand] = value_address(work, argument, index, item_bytes)
        operands[2 * operand + 1] = 1
    return 0


@njit
def _check_block(work, rows, elements):
    """Check that entries fit the vector and the result; returns 0 or an error code."""
    head = array_at(pinned_address(work + 8 * _PIN), c.BLOCK_WORDS, word)
    if head[c.BLOCK_ROWS] != rows:
        report(work, head[c.BLOCK_ROWS], rows)
        return d.ROWS_DIFFER
    if head[c.BLOCK_BOUND] > elements:
        report(work, head[c.BLOCK_BOUND] - 1, elements, 1)
        return d.NO_SUCH_ROW
    return 0


@njit
def _release(work):
    unpin(work + 8 * _PIN)
    return 0


multiply_by_vector = scalar_callback("multiply_by_vector", _multiply_vectors, _release)

"""Kernels: the callbacks of PostgreSQL's functions that multiply entries by inner products of rows of two arrays.

The arguments are compressed entries, the number of a row if the result is that of one row, an array with a row for each
row of the entries, one with a row for each of their positions, and how many elements these rows have. The result are
the same entries with other numbers; those of one row come as bytes, the positions, as int64, then the numbers.
"""

from numba import njit, types

from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.block_layout import offset_of_numbers, offset_of_positions
from sparseeinsum.kernels.compiled.kernel_calls import ROW, compute, copy_bytes, report, word
from sparseeinsum.kernels.compiled.postgresql.compressed_values import (
    block_of,
    bytes_of_row,
    check_size,
    checked_block,
    checked_row,
    item_bytes_of,
    operands_of,
)
from sparseeinsum.kernels.compiled.postgresql.compression import BLOCK
from sparseeinsum.kernels.compiled.postgresql.datums import (
    FLAT_HEADER,
    KEPT,
    allocate_huge,
    new_words,
    value_callback,
    word_at,
)
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.compiled.threads import compute_on_threads

half_word = types.int32

_ENTRIES, _ROW_NUMBER = range(2)  # the first arguments; the number is missing if the result is that of all rows
_BLOCK, _LEFT, _RIGHT, _WIDTH, _ROWS = range(5)  # the operands of the kernel


@njit
def _of_all_rows(descriptor, work):
    """Return a bigint[] of the entries with their products; 0 if there are none, or an error code."""
    operands = operands_of(work)
    block, size = checked_block(descriptor, work, _ENTRIES), operands[2 * _ENTRIES + 1]
    if block < 0:
        return block
    head = array_at(block, c.BLOCK_WORDS, word)
    rows, entries = head[c.BLOCK_ROWS], head[c.BLOCK_ENTRIES]
    code = _write_operands(work, block, 0, rows)
    if code < 0 or entries == 0:
        return code
    value = new_words(descriptor, work, size)
    if value < 0:
        return value
    copy_bytes(value + FLAT_HEADER, block - 8 * BLOCK, 8 * size)
    out, width = value + FLAT_HEADER + 8 * BLOCK + offset_of_numbers(rows, entries), word_at(operands[2 * _WIDTH])
    code = compute_on_threads(descriptor, work, work + 8 * ROW, out, entries, entries * max(width, 1))
    return value if code == 0 else word(code)


postgres_scaled_dot_rows = value_callback("postgres_scaled_dot_rows", _of_all_rows)


@njit
def _of_row(descriptor, work):
    """Return a bytea of the entries of a row with their products, or an error code."""
    operands, item_bytes = operands_of(work), item_bytes_of(descriptor)
    number = word_at(operands[2 * _ROW_NUMBER])
    block = block_of(descriptor, work, _ENTRIES)
    if block < 0:
        return block
    first, last = checked_row(work, _ENTRIES, block, number)
    if first < 0:
        return first
    for index in range(2 * _LEFT, 2 * _ROWS):  # the arguments after the number
        operands[index] = operands[index + 2]
    code = _write_operands(work, block, number, number + 1)
    if code < 0:
        return code
    count, rows = last - first, array_at(block, c.BLOCK_WORDS, word)[c.BLOCK_ROWS]
    numbers, wide = allocate_huge(item_bytes * count + 8), allocate_huge(8 * count + 8)
    code = compute(descriptor, work, work + 8 * ROW, numbers, count)
    positions = block + offset_of_positions(rows) + 4 * first
    return bytes_of_row(descriptor, work, positions, numbers, count, wide) if code == 0 else word(code)


postgres_scaled_dot_row = value_callback("postgres_scaled_dot_row", _of_row)


@njit
def _write_operands(work, block, first, end):
    """Write the operands for rows of a block, after those of the arrays; returns 0, or a code if one is small."""
    operands, head = operands_of(work), array_at(block, c.BLOCK_WORDS, word)
    size = word_at(operands[2 * _WIDTH])
    code = check_size(work, size)
    if code < 0:
        return code
    for argument, read in ((_LEFT, end), (_RIGHT, head[c.BLOCK_BOUND])):
        if size > 0 and read > operands[2 * argument + 1] // size:
            report(work, read - 1, size, operands[2 * argument + 1])
            return word(d.OUTSIDE_RESIDENT)
    rows = array_at(work + 8 * KEPT, 2, word)
    rows[0], rows[1] = first, end
    operands[2 * _BLOCK] = block
    operands[2 * _ROWS], operands[2 * _ROWS + 1] = work + 8 * KEPT, 2
    return word(0)

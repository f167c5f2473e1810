"""Kernels: checks the arguments of products of a sparse matrix and an array, and writes the operands of their kernels.

The arguments are compressed entries, how many rows the result has, an array, how many elements a row of the array has,
and perhaps an array of numbers in place of those of the entries.
"""

from numba import njit

from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.block_layout import write_block
from sparseeinsum.kernels.compiled.kernel_calls import ROW, report, word
from sparseeinsum.kernels.compiled.raw_memory import array_at

ENTRIES, ROWS, ARRAY, SIZE, OTHER_NUMBERS = range(5)  # the arguments
_LARGEST_SIZE = 1 << 40

# The operands of the kernels: where rows begin, positions and numbers of all entries, the array, the elements of a row.
_STARTS, _POSITIONS, _NUMBERS, _MATRIX, _WIDTH = range(5)


@njit
def check_shape(descriptor, work, rows, size):
    """Return 0 if a result may have so many rows of so many elements, else an error code."""
    if size < 0 or size > _LARGEST_SIZE:
        report(work, size, 0)
        return word(d.BAD_SIZE)
    if rows < 0 or rows > c.LARGEST:
        report(work, rows, 0)
        return word(d.TOO_MANY_ROWS)
    limit = descriptor[d.LIMIT_BYTES] // descriptor[d.RESULT_BYTES]
    if size > 0 and rows > limit // size:
        report(work, min(rows, _LARGEST_SIZE // size) * size * descriptor[d.RESULT_BYTES], descriptor[d.LIMIT_BYTES])
        return word(d.RESULT_TOO_LARGE)
    return word(0)


@njit
def check_block(work, block, rows, size, elements, is_transposed):
    """Return 0 if the entries of a block fit an array of so many elements and the rows of the result, else a code."""
    head = array_at(block, c.BLOCK_WORDS, word)
    count, bound = head[c.BLOCK_ROWS], head[c.BLOCK_BOUND]
    if is_transposed and bound > rows:
        report(work, bound - 1, rows, max(size, 1))
        return word(d.NO_SUCH_ROW)
    if not is_transposed and count != rows:
        report(work, count, rows)
        return word(d.ROWS_DIFFER)
    read = count if is_transposed else bound
    if size > 0 and read > elements // size:
        report(work, read - 1, elements // size, size)
        return word(d.NO_SUCH_ROW)
    return word(0)


@njit
def write_entries_of(work, block, item_bytes):
    """Write the operands of a block, none if its address is 0; returns how many entries it has."""
    operands = array_at(work + 8 * ROW, d.ROW_WORDS, word)
    operands[2 * _STARTS + 1] = operands[2 * _POSITIONS + 1] = operands[2 * _NUMBERS + 1] = 0
    if block != 0:
        write_block(operands, 2 * _STARTS, block, item_bytes)
    return operands[2 * _NUMBERS + 1]


@njit
def replace_numbers(work, numbers, count):
    """Let the kernel read other numbers of the entries; returns 0, or an error code if there are not as many."""
    operands = array_at(work + 8 * ROW, d.ROW_WORDS, word)
    if count != operands[2 * _NUMBERS + 1]:
        report(work, operands[2 * _NUMBERS + 1], count)
        return word(d.ENTRIES_DIFFER)
    operands[2 * _NUMBERS] = numbers
    return word(0)


@njit
def write_array(work, array, elements, size_address):
    """Write the operands of the array and of the number at an address: how many elements a row of it has."""
    operands = array_at(work + 8 * ROW, d.ROW_WORDS, word)
    operands[2 * _MATRIX], operands[2 * _MATRIX + 1] = array, elements
    operands[2 * _WIDTH], operands[2 * _WIDTH + 1] = size_address, 1

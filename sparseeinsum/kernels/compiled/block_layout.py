"""Kernels: finds the parts of a block of compressed entries, for every host; see kernels/compression.py."""

from numba import njit, types

from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels.compiled.kernel_calls import word
from sparseeinsum.kernels.compiled.raw_memory import array_at

half_word = types.int32


@njit
def offset_of_positions(rows):
    """Return the bytes from the start of a block to its positions."""
    return 8 * (c.BLOCK_WORDS + rows + 1)


@njit
def offset_of_numbers(rows, entries):
    """Return the bytes from the start of a block to its numbers."""
    return offset_of_positions(rows) + (4 * entries + 7) // 8 * 8


@njit
def words_of_block(rows, entries, item_bytes):
    """Return the words that a block takes."""
    return (offset_of_numbers(rows, entries) + entries * item_bytes + 7) // 8


@njit
def write_entries(operands, at, block, item_bytes, first, last):
    """Write two operands of a kernel from word `at` on: all positions from `first` on, and the numbers up to `last`."""
    head = array_at(block, c.BLOCK_WORDS, word)
    operands[at] = block + offset_of_positions(head[c.BLOCK_ROWS]) + 4 * first
    operands[at + 1] = head[c.BLOCK_ENTRIES] - first
    operands[at + 2] = block + offset_of_numbers(head[c.BLOCK_ROWS], head[c.BLOCK_ENTRIES]) + item_bytes * first
    operands[at + 3] = last - first


@njit
def write_block(operands, at, block, item_bytes):
    """Write three operands of a kernel from word `at` on: where rows begin, all positions, and all numbers."""
    head = array_at(block, c.BLOCK_WORDS, word)
    operands[at], operands[at + 1] = block + 8 * c.BLOCK_WORDS, head[c.BLOCK_ROWS] + 1
    write_entries(operands, at + 2, block, item_bytes, 0, head[c.BLOCK_ENTRIES])


@njit
def arrays_of_block(block, dtype):
    """Return where the rows of a block begin, its positions, and its numbers."""
    head = array_at(block, c.BLOCK_WORDS, word)
    rows, entries = head[c.BLOCK_ROWS], head[c.BLOCK_ENTRIES]
    return (
        array_at(block + 8 * c.BLOCK_WORDS, rows + 1, word),
        array_at(block + offset_of_positions(rows), entries, half_word),
        array_at(block + offset_of_numbers(rows, entries), entries, dtype),
    )

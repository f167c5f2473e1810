"""Kernels: the callbacks of PostgreSQL's functions that read the numbers of compressed entries, and replace them."""

from numba import njit

from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.block_layout import offset_of_numbers
from sparseeinsum.kernels.compiled.kernel_calls import copy_bytes, report, word
from sparseeinsum.kernels.compiled.postgresql.compressed_values import block_of, item_bytes_of, operands_of
from sparseeinsum.kernels.compiled.postgresql.compression import BLOCK
from sparseeinsum.kernels.compiled.postgresql.datums import FLAT_HEADER, new_array, new_words, value_callback
from sparseeinsum.kernels.compiled.raw_memory import array_at

_ENTRIES, _NUMBERS = range(2)  # the arguments


@njit
def _entries(descriptor, work):
    """Return an array of the numbers of all entries, or an error code."""
    block = block_of(descriptor, work, _ENTRIES)
    if block < 0:
        return block
    offset, count = _numbers_of(block)
    result = new_array(descriptor, work, count)
    if result >= 0:
        copy_bytes(result + FLAT_HEADER, block + offset, item_bytes_of(descriptor) * count)
    return result


postgres_entries = value_callback("postgres_entries", _entries)


@njit
def _with_numbers(descriptor, work):
    """Return a bigint[] of the entries with other numbers, or an error code."""
    operands = operands_of(work)
    block = block_of(descriptor, work, _ENTRIES)
    if block < 0:
        return block
    offset, count = _numbers_of(block)
    if operands[2 * _NUMBERS + 1] != count:
        report(work, count, operands[2 * _NUMBERS + 1])
        return word(d.ENTRIES_DIFFER)
    size = operands[2 * _ENTRIES + 1]
    value = new_words(descriptor, work, size)
    if value >= 0:
        copy_bytes(value + FLAT_HEADER, block - 8 * BLOCK, 8 * size)
        numbers = value + FLAT_HEADER + 8 * BLOCK + offset
        copy_bytes(numbers, operands[2 * _NUMBERS], item_bytes_of(descriptor) * count)
    return value


postgres_with_numbers = value_callback("postgres_with_numbers", _with_numbers)


@njit
def _numbers_of(block):
    """Return where the numbers of a block are, in bytes from its start, and how many there are."""
    head = array_at(block, c.BLOCK_WORDS, word)
    return offset_of_numbers(head[c.BLOCK_ROWS], head[c.BLOCK_ENTRIES]), head[c.BLOCK_ENTRIES]

"""Kernels: reads arguments of PostgreSQL's functions that are compressed entries, as a bigint[].

postgresql/compression.py makes them. Users may pass others, so everything that an address is computed from is checked.
"""

from numba import njit, types

from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.block_layout import offset_of_positions, words_of_block, write_entries
from sparseeinsum.kernels.compiled.kernel_calls import ROW, copy_bytes, report, word
from sparseeinsum.kernels.compiled.postgresql.compression import BLOCK
from sparseeinsum.kernels.compiled.postgresql.datums import BYTES_HEADER, new_bytes, word_at
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.postgresql.descriptors import FLOAT4

half_word = types.int32

_LARGEST_SIZE = 1 << 40  # elements of a row


@njit
def operands_of(work):
    return array_at(work + 8 * ROW, d.ROW_WORDS, word)


@njit
def item_bytes_of(descriptor):
    """Return the bytes of a number, whose type all arguments share."""
    return 4 if descriptor[d.ELEMENT_TYPE] == FLOAT4 else 8


@njit
def block_of(descriptor, work, argument):
    """Return the address of the block of an argument, which is as long as its head says; or an error code."""
    operands = operands_of(work)
    address, size = operands[2 * argument], operands[2 * argument + 1]
    report(work, argument + 1, 0)
    if size < BLOCK + c.BLOCK_WORDS + 1:
        return word(d.DAMAGED_ARRAY)
    if word_at(address) != descriptor[d.ELEMENT_TYPE]:
        report(work, argument + 1, word_at(address), descriptor[d.ELEMENT_TYPE])
        return word(d.WRONG_ELEMENTS)
    head = array_at(address + 8 * BLOCK, c.BLOCK_WORDS, word)
    rows, entries, bound = head[c.BLOCK_ROWS], head[c.BLOCK_ENTRIES], head[c.BLOCK_BOUND]
    is_valid = 0 <= rows <= size and 0 <= entries <= 2 * size and 0 <= bound <= c.LARGEST
    if not is_valid or BLOCK + words_of_block(rows, entries, item_bytes_of(descriptor)) != size:
        return word(d.DAMAGED_ARRAY)
    return address + 8 * BLOCK


@njit
def range_of_row(work, argument, block, number):
    """Return where the entries of a row of a block begin and end; the begin is an error code if there are none."""
    head = array_at(block, c.BLOCK_WORDS, word)
    if number < 0 or number >= head[c.BLOCK_ROWS]:
        report(work, number, 0, head[c.BLOCK_ROWS] - 1)
        return word(d.OUTSIDE_ROWS), word(0)
    starts = array_at(block + 8 * (c.BLOCK_WORDS + number), 2, word)
    first, last = starts[0], starts[1]
    if 0 <= first <= last <= head[c.BLOCK_ENTRIES]:
        return first, last
    report(work, argument + 1, 0)
    return word(d.DAMAGED_ARRAY), word(0)


@njit
def are_positions(block, first, last):
    """Whether the positions of entries are from 0 on, and less than the bound in the head of their block."""
    head = array_at(block, c.BLOCK_WORDS, word)
    positions = array_at(block + offset_of_positions(head[c.BLOCK_ROWS]) + 4 * first, last - first, half_word)
    is_outside = False
    for entry in range(positions.size):
        is_outside |= (positions[entry] < 0) | (positions[entry] >= head[c.BLOCK_BOUND])
    return not is_outside


@njit
def checked_row(work, argument, block, number):
    """Return what `range_of_row` does, of a row all of whose positions can be read."""
    first, last = range_of_row(work, argument, block, number)
    if first < 0 or are_positions(block, first, last):
        return first, last
    report(work, argument + 1, 0)
    return word(d.DAMAGED_ARRAY), word(0)


@njit
def read_row_of(descriptor, work, argument, number, at):
    """Write the positions and numbers of a row of an argument to operands; returns how many there are, or a code."""
    block = block_of(descriptor, work, argument)
    if block < 0:
        return block
    first, last = range_of_row(work, argument, block, number)
    if first < 0:
        return first
    operands = operands_of(work)
    write_entries(operands, 2 * at, block, item_bytes_of(descriptor), first, last)
    operands[2 * at + 1] = last - first  # those of later rows are not checked, and not read
    return last - first


@njit
def bytes_of_row(descriptor, work, positions, numbers, count, wide):
    """Return a bytea of the entries of a row: their positions, as int64, then their numbers; or an error code.

    Args:
        positions: The address of the positions, as int32.
        numbers: The address of the numbers.
        count: How many entries there are.
        wide: The address of memory for as many words.
    """
    item_bytes = item_bytes_of(descriptor)
    value = new_bytes(descriptor, work, count * (8 + item_bytes))
    if value < 0:
        return value
    narrow, words = array_at(positions, count, half_word), array_at(wide, count, word)
    for entry in range(count):
        words[entry] = narrow[entry]
    copy_bytes(value + BYTES_HEADER, wide, 8 * count)
    copy_bytes(value + BYTES_HEADER + 8 * count, numbers, item_bytes * count)
    return value


@njit
def checked_block(descriptor, work, argument):
    """Return the address of the block of an argument, all of whose rows and positions can be read; or an error code."""
    block = block_of(descriptor, work, argument)
    if block < 0:
        return block
    head = array_at(block, c.BLOCK_WORDS, word)
    starts = array_at(block + 8 * c.BLOCK_WORDS, head[c.BLOCK_ROWS] + 1, word)
    is_ordered = (starts[0] >= 0) & (starts[starts.size - 1] <= head[c.BLOCK_ENTRIES])
    for row in range(head[c.BLOCK_ROWS]):
        is_ordered &= starts[row] <= starts[row + 1]
    if is_ordered and are_positions(block, 0, head[c.BLOCK_ENTRIES]):
        return block
    report(work, argument + 1, 0)
    return word(d.DAMAGED_ARRAY)


@njit
def checked_blocks(descriptor, work, left, right):
    """Return the addresses of the blocks of two arguments, as `checked_block` does; the second may be an error code."""
    block = checked_block(descriptor, work, left)
    return block, checked_block(descriptor, work, right) if block >= 0 else block


@njit
def check_rows(work, left, right):
    """Return 0 if the right one of two blocks has all rows at positions of the left one; else an error code."""
    bound = array_at(left, c.BLOCK_WORDS, word)[c.BLOCK_BOUND]
    rows = array_at(right, c.BLOCK_WORDS, word)[c.BLOCK_ROWS]
    if bound <= rows:
        return word(0)
    report(work, bound - 1, 0, rows - 1)
    return word(d.OUTSIDE_ROWS)


@njit
def check_size(work, size):
    """Return 0 if rows of arrays may have so many elements; else an error code."""
    if 0 <= size <= _LARGEST_SIZE:
        return word(0)
    report(work, size, 0)
    return word(d.BAD_SIZE)


@njit
def rows_of_arrays(work, first, count, size):
    """Return how many rows of so many elements an array has; of two arrays, how many pairs of rows."""
    operands, rows = operands_of(work), word(1)
    for argument in range(first, first + count):
        rows *= operands[2 * argument + 1] // max(size, 1)
    return rows

"""Kernels: the callback of PostgreSQL's function that matches the entries of two sparse matrices.

Its first arguments are the entries themselves, as a bigint[], or NULL for none. Then come how many positions a row of
the result has, and the fill of either matrix. The result is a bytea: the number of each match, as int64, then the
numbers of one matrix, then those of the other.
"""

from numba import njit, types

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.block_layout import write_entries
from sparseeinsum.kernels.compiled.kernel_calls import copy_bytes, report, word
from sparseeinsum.kernels.compiled.postgresql.compressed_values import (
    are_positions,
    block_of,
    operands_of,
    range_of_row,
)
from sparseeinsum.kernels.compiled.postgresql.datums import (
    BYTES_HEADER,
    KEPT,
    allocate_huge,
    descriptor_at,
    is_null,
    new_bytes,
    null_result,
    raise_error,
    read_present,
    word_at,
    work_of,
)
from sparseeinsum.kernels.compiled.raw_memory import array_at

compressed_rows = load_kernels("compressed_rows")
contraction = load_kernels("contraction")
matched_rows = load_kernels("matched_rows")

half_word = types.int32

_LEFT, _RIGHT, _POSITIONS, _LEFT_FILL, _RIGHT_FILL = range(5)  # the arguments
_DIRECT_COLUMNS = 1 << 17  # slots for so many positions stay in the processor's cache
_ROW_OPERANDS = 4  # words: addresses of the positions and of the numbers of a row, each with how many there are


@njit
def postgres_matched(call_info, description):
    """Return all matches as bytes."""
    descriptor, work = descriptor_at(description), work_of(call_info)
    code = read_present(call_info, descriptor, work)
    if code < 0:
        return raise_error(descriptor, work, code)
    if is_null(call_info, _POSITIONS):
        return null_result(call_info)
    left, right = _block(descriptor, work, _LEFT), _block(descriptor, work, _RIGHT)
    positions = word_at(operands_of(work)[2 * _POSITIONS])
    for code in (left, right):
        if code < 0:
            return raise_error(descriptor, work, code)
    bound = max(_head(left, c.BLOCK_BOUND), _head(right, c.BLOCK_BOUND))
    if positions < bound or positions > c.LARGEST:
        report(work, positions, bound)
        return raise_error(descriptor, work, d.WRONG_POSITIONS)
    has_fill, other_has_fill = not is_null(call_info, _LEFT_FILL), not is_null(call_info, _RIGHT_FILL)
    value = _matches(descriptor, work, (left, right), positions, (has_fill, other_has_fill))
    return raise_error(descriptor, work, value) if value < 0 else value


@njit
def _block(descriptor, work, argument):
    """Return the address of the block of an argument, whose positions can be read; 0 for NULL, or an error code."""
    if operands_of(work)[2 * argument] == 0:
        return word(0)
    block = block_of(descriptor, work, argument)
    if block < 0:
        return block
    if not are_positions(block, 0, _head(block, c.BLOCK_ENTRIES)):
        report(work, argument + 1, 0)
        return word(d.DAMAGED_ARRAY)
    return block


@njit
def _head(block, index):
    """Return a word of the head of a block, 0 if there is none."""
    return array_at(block, c.BLOCK_WORDS, word)[index] if block != 0 else word(0)


@njit
def _matches(descriptor, work, blocks, positions, has_fills):
    """Return a bytea of the matches of two blocks, or an error code."""
    left, right = blocks
    item_bytes = descriptor[d.HEADER + 2 * _LEFT_FILL + 1]
    entries, others = _head(left, c.BLOCK_ENTRIES), _head(right, c.BLOCK_ENTRIES)
    most = entries + (others if has_fills[0] else 0) + 1  # the last one is written, but counts for nothing
    if most > descriptor[d.LIMIT_BYTES] // (8 + 2 * item_bytes):
        report(work, most * (8 + 2 * item_bytes), descriptor[d.LIMIT_BYTES])
        return word(d.RESULT_TOO_LARGE)
    fills = allocate_huge(16)
    for place, argument in enumerate((_LEFT_FILL, _RIGHT_FILL)):
        if operands_of(work)[2 * argument] != 0:
            copy_bytes(fills + place * item_bytes, operands_of(work)[2 * argument], item_bytes)
    numbers, narrow = allocate_huge(8 * most), allocate_huge(4 * most)
    out = narrow, allocate_huge(item_bytes * most), allocate_huge(item_bytes * most)
    count = _match_rows(work, blocks, positions, has_fills, item_bytes, most, numbers, out, fills)
    if count < 0:
        return count
    value = new_bytes(descriptor, work, count * (8 + 2 * item_bytes))
    if value < 0:
        return value
    start = value + BYTES_HEADER
    copy_bytes(start, numbers, 8 * count)
    copy_bytes(start + 8 * count, out[1], item_bytes * count)
    copy_bytes(start + (8 + item_bytes) * count, out[2], item_bytes * count)
    return value


@njit
def _match_rows(work, blocks, positions, has_fills, item_bytes, most, numbers, out, fills):
    """Write the matches of all rows: to `numbers` their numbers, to `out` positions and the numbers of both matrices.

    Returns how many there are, or an error code.
    """
    left, right = blocks
    columns = max(_head(left, c.BLOCK_BOUND), _head(right, c.BLOCK_BOUND))
    is_direct = columns <= _DIRECT_COLUMNS
    slots = _zeros(columns if is_direct else 4 * _longest_row(right))
    all_numbers, narrow, end = array_at(numbers, most, word), array_at(out[0], most, half_word), word(0)
    for row in range(max(_head(left, c.BLOCK_ROWS), _head(right, c.BLOCK_ROWS))):
        count = _read_entries(work, _LEFT, left, row, item_bytes, 0)
        other_count = _read_entries(work, _RIGHT, right, row, item_bytes, _ROW_OPERANDS) if count >= 0 else count
        if other_count < 0:
            return other_count
        if count + other_count == 0:
            continue
        first = end
        if item_bytes == 8:
            end = _match(work, count, other_count, has_fills, slots, is_direct, first, most, out, fills, word)
        else:
            end = _match(work, count, other_count, has_fills, slots, is_direct, first, most, out, fills, half_word)
        if end < 0:
            return word(end)
        if contraction.is_interrupted():
            return word(contraction.INTERRUPTED)
        for match in range(first, end):
            all_numbers[match] = row * positions + narrow[match]
    return word(end)


@njit
def _match(work, count, other_count, has_fills, slots, is_direct, first, most, out, fills, dtype):
    """Match the two rows of the work memory, whose numbers have as many bytes as the dtype."""
    operands = array_at(_rows_of(work), 2 * _ROW_OPERANDS, word)
    row = array_at(operands[0], count, half_word), array_at(operands[2], count, dtype)
    other_row = array_at(operands[4], other_count, half_word), array_at(operands[6], other_count, dtype)
    written = array_at(out[0], most, half_word), array_at(out[1], most, dtype), array_at(out[2], most, dtype)
    fill_numbers = array_at(fills, 2, dtype)
    if is_direct:
        return matched_rows.match_entries_directly(
            row, other_row, has_fills[0], has_fills[1], fill_numbers, slots, first, written
        )
    size = 1
    while size < 2 * other_count:
        size *= 2
    return matched_rows.match_entries(
        row, other_row, has_fills[0], has_fills[1], fill_numbers, slots[:size], first, written
    )


@njit
def _read_entries(work, argument, block, row, item_bytes, at):
    """Write where the entries of a row of a block are to the work memory; returns how many there are, or a code."""
    operands = array_at(_rows_of(work), 2 * _ROW_OPERANDS, word)
    for index in range(at, at + _ROW_OPERANDS):
        operands[index] = 0
    if row >= _head(block, c.BLOCK_ROWS):
        return word(0)
    first, last = range_of_row(work, argument, block, row)
    if first < 0:
        return first
    write_entries(operands, at, block, item_bytes, first, last)
    return last - first


@njit
def _rows_of(work):
    """Return where the operands of the two rows are, in the words that callbacks have of their own."""
    return work + 8 * KEPT


@njit
def _longest_row(block):
    """Return the most entries of a row of a block; where rows begin may be wrong, but what is read is there."""
    longest = word(0)
    if block != 0:
        starts = array_at(block + 8 * c.BLOCK_WORDS, _head(block, c.BLOCK_ROWS) + 1, word)
        longest = word(compressed_rows.longest_row(starts))
    return min(max(longest, word(0)), _head(block, c.BLOCK_ENTRIES))


@njit
def _zeros(size):
    """Return the slots of a hash table, at least one."""
    slots = array_at(allocate_huge(4 * max(size, 1)), max(size, 1), half_word)
    for slot in range(slots.size):
        slots[slot] = 0
    return slots

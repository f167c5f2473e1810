"""Kernels: the callback of DuckDB's functions that match rows of two sparse matrices by position.

The arguments are a handle of compressed entries, a row, a handle of the other entries, and the fill of either. Where
only one row has an entry, the other number is its fill; if that is NULL, there is no pair. A NULL handle stands for no
entries; the result lists pairs in no order, and is NULL if the row is.
"""

from numba import njit, types

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.block_layout import write_entries
from sparseeinsum.kernels.compiled.duckdb.compressed_blocks import pin_block, range_of_row
from sparseeinsum.kernels.compiled.duckdb.entry_lists import (
    SLOT_WORDS,
    entries_callback,
    field_data,
    free_slots,
    reserve_entries,
    reserve_slots,
)
from sparseeinsum.kernels.compiled.duckdb.pins import PIN_WORDS, pinned_address, unpin
from sparseeinsum.kernels.compiled.duckdb.vectors import (
    FIRST_ROW,
    argument_is_valid,
    copy_number,
    integer_at,
    value_address,
    word,
)
from sparseeinsum.kernels.compiled.kernel_calls import ROW, report
from sparseeinsum.kernels.compiled.raw_memory import array_at

matched_rows = load_kernels("matched_rows")

half_word = types.int32

_LEFT, _ROW, _RIGHT, _LEFT_FILL, _RIGHT_FILL = range(5)  # the arguments

# The memory of a call, in words, from FIRST_ROW on, where this callback reads no row: two pins, both fills, and the
# slots.
_PIN_OF_LEFT = FIRST_ROW
_PIN_OF_RIGHT = _PIN_OF_LEFT + PIN_WORDS
_FILLS = _PIN_OF_RIGHT + PIN_WORDS
_SLOTS = _FILLS + 2
_DIRECT_COLUMNS = 1 << 17  # slots for so many positions stay in the processor's cache
_OPERAND_WORDS = 4  # in a row of arguments: addresses of positions and of numbers, each with how many there are


@njit
def _is_null(descriptor, work, row):
    return not argument_is_valid(work, _ROW, row)


@njit
def _match_row(descriptor, work, row, result, end):
    """Append the pairs of a row to the result, which has `end`; returns where they end, or an error code."""
    item_bytes = descriptor[d.HEADER + 2 * _LEFT_FILL + 1]
    count = _read_entries(descriptor, work, row, _LEFT, item_bytes)
    other_count = _read_entries(descriptor, work, row, _RIGHT, item_bytes) if count >= 0 else count
    if other_count < 0:
        return other_count
    has_fill = argument_is_valid(work, _LEFT_FILL, row)
    if count + other_count == 0:
        return end
    most = end + count + (other_count if has_fill else 0) + 1  # the last one is written, but counts for nothing
    code = reserve_entries(descriptor, work, result, most)
    if code < 0:
        return code
    columns = max(_columns(work, row, _LEFT), _columns(work, row, _RIGHT))
    is_direct = columns <= _DIRECT_COLUMNS
    slot_count = reserve_slots(work + 8 * _SLOTS, columns if is_direct else 2 * other_count)
    if slot_count == 0:
        report(work, 4 * max(columns, 2 * other_count), 0)
        return d.OUT_OF_MEMORY
    slots = array_at(array_at(work + 8 * _SLOTS, SLOT_WORDS, word)[0], slot_count, half_word)
    out = field_data(result, 0), field_data(result, 1), field_data(result, 2)
    fills = work + 8 * _FILLS
    copy_number(fills, value_address(work, _LEFT_FILL, row, item_bytes), item_bytes)
    copy_number(fills + item_bytes, value_address(work, _RIGHT_FILL, row, item_bytes), item_bytes)
    counts, has_fills = (count, other_count), (has_fill, argument_is_valid(work, _RIGHT_FILL, row))
    if item_bytes == 8:
        return _match(work, counts, has_fills, slots, is_direct, end, most, out, fills, word)
    return _match(work, counts, has_fills, slots, is_direct, end, most, out, fills, half_word)


@njit
def _match(work, counts, has_fills, slots, is_direct, end, most, out, fills, dtype):
    """Match the two rows of the work memory, whose numbers have as many bytes as the dtype."""
    count, other_count = counts
    operands = array_at(work + 8 * ROW, 2 * _OPERAND_WORDS, word)
    positions, numbers = array_at(operands[0], count, half_word), array_at(operands[2], count, dtype)
    other_positions = array_at(operands[4], other_count, half_word)
    other_numbers = array_at(operands[6], other_count, dtype)
    written = array_at(out[0], most, half_word), array_at(out[1], most, dtype), array_at(out[2], most, dtype)
    row, other_row, fill_numbers = (positions, numbers), (other_positions, other_numbers), array_at(fills, 2, dtype)
    if is_direct:
        return matched_rows.match_entries_directly(
            row, other_row, has_fills[0], has_fills[1], fill_numbers, slots, end, written
        )
    return matched_rows.match_entries(row, other_row, has_fills[0], has_fills[1], fill_numbers, slots, end, written)


@njit
def _columns(work, row, argument):
    """Return how many positions rows of an argument may have."""
    if not argument_is_valid(work, argument, row):
        return 0
    block = pinned_address(work + 8 * (_PIN_OF_LEFT if argument == _LEFT else _PIN_OF_RIGHT))
    return array_at(block, c.BLOCK_WORDS, word)[c.BLOCK_BOUND]


@njit
def _read_entries(descriptor, work, row, argument, item_bytes):
    """Write where the entries of a row are to the work memory; returns how many there are, or an error code."""
    if not argument_is_valid(work, argument, row):
        return 0
    place = work + 8 * (_PIN_OF_LEFT if argument == _LEFT else _PIN_OF_RIGHT)
    code = pin_block(descriptor, work, place, argument, row)
    if code < 0:
        return code
    first, last = range_of_row(work, pinned_address(place), integer_at(work, _ROW, row))
    if first < 0:
        return first
    operands = array_at(work + 8 * ROW, 2 * _OPERAND_WORDS, word)
    write_entries(operands, 0 if argument == _LEFT else _OPERAND_WORDS, pinned_address(place), item_bytes, first, last)
    return last - first


@njit
def _release(work):
    unpin(work + 8 * _PIN_OF_LEFT)
    unpin(work + 8 * _PIN_OF_RIGHT)
    free_slots(work + 8 * _SLOTS)
    return 0


match_rows = entries_callback("match_rows", _is_null, _match_row, _release)

"""Kernels: the callback of PostgreSQL's function that computes all rows of a masked product of sparse matrices at once.

The arguments are those of the function of one row (row_products.py), without its number. The result is that of
`tensor_compressed_rows` for all rows, without a call and a tuple for each.
"""

from numba import njit, types

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.block_layout import arrays_of_block, offset_of_numbers, offset_of_positions
from sparseeinsum.kernels.compiled.column_slots import COLUMNS_OF_MASKS, hash_of_row
from sparseeinsum.kernels.compiled.kernel_calls import ROW, copy_bytes, report, word
from sparseeinsum.kernels.compiled.postgresql.compressed_values import item_bytes_of, operands_of
from sparseeinsum.kernels.compiled.postgresql.compression import BLOCK, new_block
from sparseeinsum.kernels.compiled.postgresql.datums import FLAT_HEADER, KEPT, allocate_huge
from sparseeinsum.kernels.compiled.postgresql.whole_products import (
    check_rows,
    checked_block,
    checked_blocks,
    value_callback,
)
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.compiled.threads import compute_on_threads, most_threads

compressed_rows = load_kernels("compressed_rows")

half_word = types.int32

_LEFT, _RIGHT, _START, _MASK = range(1, 5)  # the arguments after the semiring
# The operands of the kernel after the semiring; see masked_product_kernels.py.
_OF_LEFT, _OF_RIGHT, _OF_MASK, _FIRST, _SLOTS, _COUNTS, _POSITIONS, _COLUMNS = range(1, 9)
_COLUMN_COUNT = KEPT  # the word that the last one is


@njit
def _rows(descriptor, work):
    """Return a bigint[] of the entries of all rows; 0 if there are none, or an error code."""
    left, right = checked_blocks(descriptor, work, _LEFT, _RIGHT)
    mask = checked_block(descriptor, work, _MASK) if right >= 0 else right
    if mask < 0:
        return mask
    code = check_rows(work, left, right)
    rows, rows_of_mask = _head(left, c.BLOCK_ROWS), _head(mask, c.BLOCK_ROWS)
    if code == 0 and rows != rows_of_mask:
        report(work, rows_of_mask, rows)
        code = word(d.ROWS_DIFFER)
    if code < 0:
        return code
    products = _head(left, c.BLOCK_ENTRIES) * (_head(right, c.BLOCK_ENTRIES) // max(_head(right, c.BLOCK_ROWS), 1) + 1)
    numbers = _write_operands(descriptor, work, left, right, mask, max(most_threads(work, products), 1))
    code = compute_on_threads(descriptor, work, work + 8 * ROW, numbers, _head(mask, c.BLOCK_ENTRIES), products)
    return _block_of(descriptor, work, mask, numbers) if code == 0 else word(code)


postgres_masked_product_rows = value_callback("postgres_masked_product_rows", _rows)


@njit
def _head(block, index):
    return array_at(block, c.BLOCK_WORDS, word)[index]


@njit
def _write_operands(descriptor, work, left, right, mask, threads):
    """Write the operands of the kernel, with memory for so many threads; returns memory for the numbers of entries."""
    operands, entries, rows = operands_of(work), _head(mask, c.BLOCK_ENTRIES), _head(mask, c.BLOCK_ROWS)
    start = operands[2 * _START]
    columns = max(_head(right, c.BLOCK_BOUND), _head(mask, c.BLOCK_BOUND))
    starts = array_at(mask + 8 * c.BLOCK_WORDS, rows + 1, word)
    room, _, _ = hash_of_row(compressed_rows.longest_row(starts), columns, COLUMNS_OF_MASKS)
    slots = array_at(allocate_huge(4 * room * threads), room * threads, half_word)
    for slot in range(slots.size):
        slots[slot] = 0
    array_at(work + 8 * _COLUMN_COUNT, 1, word)[0] = columns
    operands[2 * _OF_LEFT], operands[2 * _OF_RIGHT], operands[2 * _OF_MASK] = left, right, mask
    operands[2 * _FIRST], operands[2 * _FIRST + 1] = start, 1
    operands[2 * _SLOTS], operands[2 * _SLOTS + 1] = slots.ctypes.data, slots.size
    operands[2 * _COUNTS], operands[2 * _COUNTS + 1] = allocate_huge(8 * rows + 8), rows
    operands[2 * _POSITIONS], operands[2 * _POSITIONS + 1] = allocate_huge(4 * entries + 8), entries
    operands[2 * _COLUMNS], operands[2 * _COLUMNS + 1] = work + 8 * _COLUMN_COUNT, 1
    return allocate_huge(item_bytes_of(descriptor) * entries + 8)


@njit
def _block_of(descriptor, work, mask, numbers):
    """Return a bigint[] of the entries that the kernel wrote; 0 if there are none, or an error code."""
    operands, item_bytes, rows = operands_of(work), item_bytes_of(descriptor), _head(mask, c.BLOCK_ROWS)
    counts, narrow = array_at(operands[2 * _COUNTS], rows, word), operands[2 * _POSITIONS]
    positions, in_mask = array_at(narrow, operands[2 * _POSITIONS + 1], half_word), arrays_of_block(mask, half_word)[0]
    count, bound = word(0), word(0)
    for row in range(rows):
        for entry in range(in_mask[row], in_mask[row] + counts[row]):
            bound = max(bound, word(positions[entry]) + 1)
        count += counts[row]
    if count == 0:
        return word(0)
    result = new_block(descriptor, work, descriptor[d.ELEMENT_TYPE], rows, count, bound, item_bytes)
    if result < 0:
        return result
    block = result + FLAT_HEADER + 8 * BLOCK
    starts = array_at(block + 8 * c.BLOCK_WORDS, rows + 1, word)
    to_positions, to_numbers = block + offset_of_positions(rows), block + offset_of_numbers(rows, count)
    for row in range(rows):
        begin, end = in_mask[row], starts[row]
        starts[row + 1] = end + counts[row]
        copy_bytes(to_positions + 4 * end, narrow + 4 * begin, 4 * counts[row])
        copy_bytes(to_numbers + item_bytes * end, numbers + item_bytes * begin, item_bytes * counts[row])
    array_at(block, c.BLOCK_WORDS, word)[c.BLOCK_LONGEST] = compressed_rows.longest_row(starts)
    return result

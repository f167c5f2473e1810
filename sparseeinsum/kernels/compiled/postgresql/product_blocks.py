"""Kernels: the callback of PostgreSQL's function that computes all rows of a product of sparse matrices in one call.

The arguments are those of the function of one row (row_products.py), without its number. The result is that of
`tensor_compressed_rows` for all rows, without a call and a tuple for each.
"""

from numba import njit, types

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.block_layout import (
    offset_of_numbers,
    offset_of_positions,
    write_block,
    write_entries,
)
from sparseeinsum.kernels.compiled.column_slots import FEW_COLUMNS, choose_slots
from sparseeinsum.kernels.compiled.kernel_calls import ROW, compute, copy_bytes, report, word
from sparseeinsum.kernels.compiled.postgresql.compressed_values import item_bytes_of, operands_of
from sparseeinsum.kernels.compiled.postgresql.compression import BLOCK, new_block
from sparseeinsum.kernels.compiled.postgresql.datums import FLAT_HEADER, KEPT, KEPT_WORDS, allocate_huge
from sparseeinsum.kernels.compiled.postgresql.whole_products import check_rows, checked_blocks, value_callback
from sparseeinsum.kernels.compiled.raw_memory import array_at, copy_elements

compressed_rows = load_kernels("compressed_rows")

half_word = types.int32

_LEFT, _RIGHT, _START = range(1, 4)  # the arguments after the semiring
_OF_ROW, _OF_RIGHT = 1, 3  # the operands of the kernel after the semiring: positions and numbers of a row; the matrix
_LEAST_ROOM = 1 << 10  # entries

# What is written, in words, after what the kernel needs for a row: where positions and numbers are, for how many
# entries there is room, and for how many slots.
_PRODUCT = KEPT
_POSITIONS, _NUMBERS, _ROOM, _SLOT_ROOM = range(KEPT + c.PRODUCT_WORDS, KEPT + c.PRODUCT_WORDS + 4)
assert c.PRODUCT_WORDS + 4 <= KEPT_WORDS


@njit
def _rows(descriptor, work):
    """Return a bigint[] of the entries of all rows; 0 if there are none, or an error code."""
    operands, item_bytes = operands_of(work), item_bytes_of(descriptor)
    start = operands[2 * _START]
    left, right = checked_blocks(descriptor, work, _LEFT, _RIGHT)
    code = check_rows(work, left, right) if right >= 0 else right
    if code < 0:
        return code
    head = array_at(left, c.BLOCK_WORDS, word)
    write_block(operands, 2 * _OF_RIGHT, right, item_bytes)
    array_at(work + 8 * _PRODUCT, c.PRODUCT_WORDS, word)[c.START] = start
    room = array_at(work + 8 * _ROOM, 2, word)
    room[0], room[1] = 0, 0
    ends = allocate_huge(8 * head[c.BLOCK_ROWS] + 8)
    count = _append_rows(descriptor, work, left, right, array_at(ends, head[c.BLOCK_ROWS] + 1, word))
    return _block_of(descriptor, work, array_at(ends, head[c.BLOCK_ROWS] + 1, word)) if count > 0 else count


postgres_product_rows = value_callback("postgres_product_rows", _rows)


@njit
def _append_rows(descriptor, work, left, right, ends):
    """Write the entries of all rows, and where they end; returns how many there are, or an error code."""
    ends[0] = 0
    for row in range(ends.size - 1):
        end = _append_row(descriptor, work, left, right, row, ends[row])
        if end < 0:
            return end
        ends[row + 1] = end
    return ends[ends.size - 1]


@njit
def _append_row(descriptor, work, left, right, row, so_far):
    """Append the entries of a row to those of the rows before it; returns how many there are then, or an error code."""
    operands, item_bytes = operands_of(work), item_bytes_of(descriptor)
    starts = array_at(left + 8 * (c.BLOCK_WORDS + row), 2, word)
    write_entries(operands, 2 * _OF_ROW, left, item_bytes, starts[0], starts[1])
    positions = array_at(operands[2 * _OF_ROW], starts[1] - starts[0], half_word)
    right_head = array_at(right, c.BLOCK_WORDS, word)
    right_starts = array_at(right + 8 * c.BLOCK_WORDS, right_head[c.BLOCK_ROWS] + 1, word)
    products = compressed_rows.count_products(positions, right_starts)
    if products == 0:
        return so_far
    product = array_at(work + 8 * _PRODUCT, c.PRODUCT_WORDS, word)
    choose_slots(product, products, right_head[c.BLOCK_BOUND], FEW_COLUMNS)
    _reserve_slots(work)
    most = so_far + min(products, right_head[c.BLOCK_BOUND])
    if most > c.LARGEST or item_bytes * most > descriptor[d.LIMIT_BYTES]:
        report(work, item_bytes * most, descriptor[d.LIMIT_BYTES])
        return word(d.RESULT_TOO_LARGE)
    _reserve_entries(work, item_bytes, so_far, most)
    product[c.ROW_BEGIN] = so_far
    product[c.OUT_POSITIONS] = array_at(work + 8 * _POSITIONS, 1, word)[0]
    product[c.OUT_NUMBERS] = array_at(work + 8 * _NUMBERS, 1, word)[0]
    return word(compute(descriptor, work, work + 8 * ROW, work + 8 * _PRODUCT, most))


@njit
def _reserve_slots(work):
    """Make room for the slots of a row, which are 0 at first; what rows before left in them counts as empty."""
    product, room = array_at(work + 8 * _PRODUCT, c.PRODUCT_WORDS, word), array_at(work + 8 * _SLOT_ROOM, 1, word)
    count = product[c.SLOT_COUNT]
    if count > room[0]:
        product[c.SLOTS], room[0] = allocate_huge(4 * count), count
        slots = array_at(product[c.SLOTS], count, half_word)
        for slot in range(slots.size):
            slots[slot] = 0


@njit
def _reserve_entries(work, item_bytes, used, least):
    """Make room for at least so many entries, of which so many are there already."""
    kept = array_at(work + 8 * _POSITIONS, 3, word)
    if least > kept[2]:
        room = max(least, 2 * kept[2], _LEAST_ROOM)
        positions, numbers = allocate_huge(4 * room), allocate_huge(item_bytes * room)
        copy_bytes(positions, kept[0], 4 * used)
        copy_bytes(numbers, kept[1], item_bytes * used)
        kept[0], kept[1], kept[2] = positions, numbers, room


@njit
def _block_of(descriptor, work, ends):
    """Return a bigint[] of the entries that were written, whose rows end there; or an error code."""
    kept, item_bytes = array_at(work + 8 * _POSITIONS, 2, word), item_bytes_of(descriptor)
    row_count, count = ends.size - 1, ends[ends.size - 1]
    positions, bound = array_at(kept[0], count, half_word), word(0)
    for entry in range(count):
        bound = max(bound, word(positions[entry]) + 1)
    result = new_block(descriptor, work, descriptor[d.ELEMENT_TYPE], row_count, count, bound, item_bytes)
    if result < 0:
        return result
    block = result + FLAT_HEADER + 8 * BLOCK
    starts = array_at(block + 8 * c.BLOCK_WORDS, ends.size, word)
    copy_elements(starts, ends)
    array_at(block, c.BLOCK_WORDS, word)[c.BLOCK_LONGEST] = compressed_rows.longest_row(starts)
    copy_bytes(block + offset_of_positions(row_count), kept[0], 4 * count)
    copy_bytes(block + offset_of_numbers(row_count, count), kept[1], item_bytes * count)
    return result

"""Kernels: the callback of DuckDB's functions that compute rows of a product of two sparse matrices.

The arguments are the text of a semiring, a handle of compressed entries, a row of these, a handle of the other entries,
whose rows are the positions of the first, and the number that sums start from. The result lists the entries of the row
of the product, in no order; it is NULL if an argument is, because a NULL handle stands for no entries.

With a sixth argument, the handle of a mask with the rows and positions of the product, only entries at those of the
mask are computed, and multiplied by them.
"""

from numba import njit, types

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.block_layout import write_block, write_entries
from sparseeinsum.kernels.compiled.column_slots import COLUMNS_OF_MASKS, FEW_COLUMNS, choose_slots
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
from sparseeinsum.kernels.compiled.duckdb.vectors import FIRST_ROW, integer_at, read_row, value_address, word
from sparseeinsum.kernels.compiled.kernel_calls import NULL_ROW, ROW, compute, report
from sparseeinsum.kernels.compiled.raw_memory import array_at

compressed_rows = load_kernels("compressed_rows")

half_word = types.int32

_LEFT, _ROW, _RIGHT, _START, _MASK = range(1, 6)  # the arguments after the semiring

# The memory of a call, in words, from FIRST_ROW on, where this callback reads no row: three pins; what a kernel needs
# to write a row; the slots.
_PIN_OF_LEFT = FIRST_ROW
_PIN_OF_RIGHT = _PIN_OF_LEFT + PIN_WORDS
_PIN_OF_MASK = _PIN_OF_RIGHT + PIN_WORDS
_PRODUCT = _PIN_OF_MASK + PIN_WORDS
_SLOTS = _PRODUCT + c.PRODUCT_WORDS

assert _SLOTS + SLOT_WORDS <= FIRST_ROW + d.ROW_WORDS + d.MAX_ARGUMENTS


@njit
def _is_null(descriptor, work, row):
    """Whether an argument is NULL; if none is, the row of arguments is read."""
    return read_row(descriptor, work, row, work + 8 * ROW) == NULL_ROW


@njit
def _multiply_row(descriptor, work, row, result, end):
    """Append the entries of a row to the result, which has `end` entries; returns where they end, or an error code."""
    products = _read_operands(descriptor, work, row)
    if products <= 0:
        return products if products < 0 else end
    few = COLUMNS_OF_MASKS if _has_mask(descriptor) else FEW_COLUMNS
    columns, results = array_at(pinned_address(work + 8 * _PIN_OF_RIGHT), c.BLOCK_WORDS, word)[c.BLOCK_BOUND], products
    if _has_mask(descriptor):
        results = _read_mask(descriptor, work, row)
        if results <= 0:
            return results if results < 0 else end
        columns = max(columns, array_at(pinned_address(work + 8 * _PIN_OF_MASK), c.BLOCK_WORDS, word)[c.BLOCK_BOUND])
    most = end + (results if _has_mask(descriptor) else min(results, columns))
    code = reserve_entries(descriptor, work, result, most)
    if code == 0:
        code = _prepare_slots(work, results, columns, few)
    if code < 0:
        return code
    product = array_at(work + 8 * _PRODUCT, c.PRODUCT_WORDS, word)
    product[c.START] = value_address(work, _START, row, descriptor[d.HEADER + 2 * _START + 1])
    product[c.OUT_POSITIONS], product[c.OUT_NUMBERS] = field_data(result, 0), field_data(result, 1)
    product[c.ROW_BEGIN] = end
    return compute(descriptor, work, work + 8 * ROW, work + 8 * _PRODUCT, most)


@njit
def _read_operands(descriptor, work, row):
    """Write the operands of the kernel after the semiring; returns the number of products, or an error code.

    They are positions of the left block from the row on, and numbers of the row; where the rows of the right block
    begin, and all of its positions and numbers.
    """
    item_bytes = descriptor[d.HEADER + 2 * _START + 1]
    code = pin_block(descriptor, work, work + 8 * _PIN_OF_LEFT, _LEFT, row)
    if code == 0:
        code = pin_block(descriptor, work, work + 8 * _PIN_OF_RIGHT, _RIGHT, row)
    if code < 0:
        return code
    left, right = pinned_address(work + 8 * _PIN_OF_LEFT), pinned_address(work + 8 * _PIN_OF_RIGHT)
    first, last = range_of_row(work, left, integer_at(work, _ROW, row))
    if first < 0:
        return first
    bound, head = array_at(left, c.BLOCK_WORDS, word)[c.BLOCK_BOUND], array_at(right, c.BLOCK_WORDS, word)
    if bound > head[c.BLOCK_ROWS]:
        report(work, bound - 1, 0, head[c.BLOCK_ROWS] - 1)
        return d.OUTSIDE_ROWS
    operands = array_at(work + 8 * ROW, d.ROW_WORDS, word)
    write_entries(operands, 2, left, item_bytes, first, last)
    write_block(operands, 6, right, item_bytes)
    return compressed_rows.count_products(
        array_at(operands[2], last - first, half_word), array_at(operands[6], operands[7], word)
    )


@njit
def _has_mask(descriptor):
    return descriptor[d.ARGUMENTS] > _MASK


@njit
def _read_mask(descriptor, work, row):
    """Write the last operands of the kernel, the positions and numbers of a row of the mask; returns how many."""
    code = pin_block(descriptor, work, work + 8 * _PIN_OF_MASK, _MASK, row)
    if code < 0:
        return code
    mask = pinned_address(work + 8 * _PIN_OF_MASK)
    first, last = range_of_row(work, mask, integer_at(work, _ROW, row))
    if first < 0:
        return first
    operands = array_at(work + 8 * ROW, d.ROW_WORDS, word)
    write_entries(operands, 12, mask, descriptor[d.HEADER + 2 * _START + 1], first, last)
    operands[13] = last - first
    return last - first


@njit
def _prepare_slots(work, results, columns, few):
    """Make room for the slots of a row, and choose the hash function; returns 0 or an error code."""
    product = array_at(work + 8 * _PRODUCT, c.PRODUCT_WORDS, word)
    choose_slots(product, results, columns, few)
    least = product[c.SLOT_COUNT]
    product[c.SLOT_COUNT] = reserve_slots(work + 8 * _SLOTS, least)
    product[c.SLOTS] = array_at(work + 8 * _SLOTS, SLOT_WORDS, word)[0]
    if product[c.SLOTS] == 0:
        report(work, 4 * least, 0)
        return d.OUT_OF_MEMORY
    return 0


@njit
def _release(work):
    unpin(work + 8 * _PIN_OF_LEFT)
    unpin(work + 8 * _PIN_OF_RIGHT)
    unpin(work + 8 * _PIN_OF_MASK)
    free_slots(work + 8 * _SLOTS)
    return 0


multiply_rows = entries_callback("multiply_rows", _is_null, _multiply_row, _release)

"""Kernels: the callbacks of PostgreSQL's functions that compute rows of a product of two sparse matrices.

The arguments are those of DuckDB's functions, with the entries themselves in place of handles. The entries of a row are
returned as bytes: the positions, as int64, then the numbers.

What is kept from row to row are the slots of the hash table, and how many entries all rows together have had, since
slots of earlier rows count as empty.
"""

from numba import njit, types

from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.block_layout import (
    offset_of_numbers,
    offset_of_positions,
    write_block,
    write_entries,
)
from sparseeinsum.kernels.compiled.column_slots import COLUMNS_OF_MASKS, FEW_COLUMNS, choose_slots
from sparseeinsum.kernels.compiled.fetched_rows import ROWS_AHEAD, fetch_row
from sparseeinsum.kernels.compiled.kernel_calls import NULL_ROW, ROW, compute, report, word
from sparseeinsum.kernels.compiled.postgresql.compressed_values import (
    block_of,
    bytes_of_row,
    checked_row,
    item_bytes_of,
    operands_of,
    range_of_row,
    read_row_of,
)
from sparseeinsum.kernels.compiled.postgresql.datums import (
    FN_CONTEXT,
    KEPT,
    KEPT_WORDS,
    allocate_huge_in,
    descriptor_at,
    null_result,
    number_result,
    raise_error,
    read_row,
    word_at,
    work_of,
)
from sparseeinsum.kernels.compiled.raw_memory import array_at

_LEFT, _ROW, _RIGHT, _START, _MASK = range(1, 6)  # the arguments after the semiring
# The operands of the kernels after the semiring: the positions and numbers of a row, or for kernels of numbers the row,
# and where it begins; the other matrix; the entries of the mask.
_OF_ROW, _OTHER, _OF_MASK = 1, 3, 6
_OF_MATRIX, _OF_VECTOR, _FIRST = 2, 5, 7  # those of the kernel of numbers, after the row

half_word = types.int32

# The words that are kept: what a kernel needs to write a row or a number; the slots, for how many there is room, and
# how many entries there have been; memory for the result, and its bytes; a row, where it begins and ends, and whether
# it has a number.
_PRODUCT = KEPT
_SLOTS, _ROOM, _SO_FAR, _MEMORY, _MEMORY_BYTES, _ONE_ROW, _BEGIN, _END, _VALID = range(
    KEPT + c.PRODUCT_WORDS, KEPT + c.PRODUCT_WORDS + 9
)
assert c.PRODUCT_WORDS + 9 <= KEPT_WORDS


@njit
def postgres_product_row(call_info, description):
    """Return the entries of a row of a product."""
    descriptor, work = descriptor_at(description), work_of(call_info)
    code = read_row(call_info, 0, descriptor, work)
    if code == NULL_ROW:
        return null_result(call_info)
    most = _read_operands(descriptor, work) if code == 0 else code
    entries = _multiply_row(call_info, descriptor, work, most) if most > 0 else most
    value = _bytes_of_entries(descriptor, work, entries, most) if entries >= 0 else entries
    return raise_error(descriptor, work, value) if value < 0 else value


@njit
def postgres_product_number(call_info, description):
    """Return the number of a row of a product with a vector; NULL if the row has no products."""
    descriptor, work = descriptor_at(description), work_of(call_info)
    code = read_row(call_info, 0, descriptor, work)
    if code == NULL_ROW:
        return null_result(call_info)
    products = _read_vector(descriptor, work) if code == 0 else code
    if products == 0:
        return null_result(call_info)
    product, out = array_at(work + 8 * _PRODUCT, c.NUMBERS_WORDS, word), number_result(work)
    product[c.NUMBERS], product[c.VALIDITY] = out, work + 8 * _VALID
    array_at(work + 8 * _VALID, 1, word)[0] = -1
    code = compute(descriptor, work, work + 8 * ROW, work + 8 * _PRODUCT, 1) if products > 0 else products
    return raise_error(descriptor, work, code) if code < 0 else word_at(out)


@njit
def _count_products(work, positions, block, item_bytes):
    """Return how many products a row with these positions has, all of which can be read; or an error code."""
    count = 0
    for entry in range(-ROWS_AHEAD, positions.size):
        if entry + ROWS_AHEAD < positions.size:
            _fetch_entries(block, word(positions[entry + ROWS_AHEAD]), item_bytes)
        if entry < 0:
            continue
        first, last = checked_row(work, _RIGHT, block, word(positions[entry]))
        if first < 0:
            return first
        count += last - first
    return count


@njit
def _fetch_entries(block, row, item_bytes):
    """Let the processor fetch the positions and numbers of a row of a block; nothing if it has no such row."""
    head = array_at(block, c.BLOCK_WORDS, word)
    rows, entries = head[c.BLOCK_ROWS], head[c.BLOCK_ENTRIES]
    if 0 <= row < rows:
        starts = array_at(block + 8 * (c.BLOCK_WORDS + row), 2, word)
        first, last = starts[0], starts[1]
        if 0 <= first <= last <= entries:
            fetch_row(block + offset_of_positions(rows) + 4 * first, 4 * (last - first))
            fetch_row(block + offset_of_numbers(rows, entries) + item_bytes * first, item_bytes * (last - first))


@njit
def _read_operands(descriptor, work):
    """Write the operands of a kernel, and choose slots; returns the most entries of the row, or an error code.

    Arguments are read before operands take their place.
    """
    operands, has_mask = operands_of(work), descriptor[d.ARGUMENTS] > _MASK
    number, start = word_at(operands[2 * _ROW]), operands[2 * _START]
    right = block_of(descriptor, work, _RIGHT)
    if right < 0:
        return right
    columns, in_mask = array_at(right, c.BLOCK_WORDS, word)[c.BLOCK_BOUND], word(0)
    if has_mask:
        mask = block_of(descriptor, work, _MASK)
        if mask < 0:
            return mask
        columns = max(columns, array_at(mask, c.BLOCK_WORDS, word)[c.BLOCK_BOUND])
        first, last = checked_row(work, _MASK, mask, number)
        if first < 0:
            return first
        in_mask = last - first
    count = read_row_of(descriptor, work, _LEFT, number, _OF_ROW)
    if count < 0:
        return count
    if has_mask:  # its operands take the place of its argument
        first, last = range_of_row(work, _MASK, mask, number)
        write_entries(operands, 2 * _OF_MASK, mask, item_bytes_of(descriptor), first, last)
        operands[2 * _OF_MASK + 1] = last - first
    write_block(operands, 2 * _OTHER, right, item_bytes_of(descriptor))
    positions = array_at(operands[2 * _OF_ROW], count, half_word)
    products = _count_products(work, positions, right, item_bytes_of(descriptor))
    if products <= 0:
        return products
    product, results = array_at(work + 8 * _PRODUCT, c.PRODUCT_WORDS, word), in_mask if has_mask else products
    product[c.START] = start
    choose_slots(product, results, columns, COLUMNS_OF_MASKS if has_mask else FEW_COLUMNS)
    return results if has_mask else min(results, columns)


@njit
def _multiply_row(call_info, descriptor, work, most):
    """Compute a row, with at most so many entries, into the memory that is kept; returns how many it has, or a code."""
    if most > descriptor[d.LIMIT_BYTES] // 16:
        report(work, 16 * most, descriptor[d.LIMIT_BYTES])
        return word(d.RESULT_TOO_LARGE)
    product, so_far = array_at(work + 8 * _PRODUCT, c.PRODUCT_WORDS, word), array_at(work + 8 * _SO_FAR, 1, word)
    _keep_slots(call_info, work, most)
    memory = _keep_memory(call_info, work, 24 * most + 8)
    product[c.SLOTS] = word_at(work + 8 * _SLOTS)
    product[c.ROW_BEGIN] = so_far[0]
    product[c.OUT_POSITIONS] = memory - 4 * so_far[0]
    product[c.OUT_NUMBERS] = memory + (4 * most + 7) // 8 * 8 - item_bytes_of(descriptor) * so_far[0]
    end = compute(descriptor, work, work + 8 * ROW, work + 8 * _PRODUCT, so_far[0] + most)
    if end < 0:
        return end
    entries, so_far[0] = end - so_far[0], end
    return entries


@njit
def _keep_slots(call_info, work, most):
    """Make room for the slots of a row; they are 0 at first, and again before places exceed their range."""
    product, kept = array_at(work + 8 * _PRODUCT, c.PRODUCT_WORDS, word), array_at(work + 8 * _SLOTS, 3, word)
    count = product[c.SLOT_COUNT]
    is_new = count > kept[1]
    if is_new:
        kept[0], kept[1] = allocate_huge_in(word_at(word_at(call_info) + FN_CONTEXT), 4 * count), count
    if is_new or kept[2] > c.LARGEST - most:
        slots = array_at(kept[0], kept[1], half_word)
        for slot in range(slots.size):
            slots[slot] = 0
        kept[2] = 0


@njit
def _keep_memory(call_info, work, size):
    """Return memory of at least so many bytes."""
    kept = array_at(work + 8 * _MEMORY, 2, word)
    if size > kept[1]:
        kept[1] = max(size, 2 * kept[1])
        kept[0] = allocate_huge_in(word_at(word_at(call_info) + FN_CONTEXT), kept[1])
    return kept[0]


@njit
def _bytes_of_entries(descriptor, work, entries, most):
    """Return a bytea of the entries that `_multiply_row` left in memory, or an error code."""
    positions = word_at(work + 8 * _MEMORY)
    numbers = positions + (4 * most + 7) // 8 * 8
    wide = numbers + (item_bytes_of(descriptor) * most + 7) // 8 * 8
    return bytes_of_row(descriptor, work, positions, numbers, entries, wide)


@njit
def _read_vector(descriptor, work):
    """Write the operands of the kernel of numbers; returns how many products there are, or an error code."""
    operands, item_bytes = operands_of(work), item_bytes_of(descriptor)
    number, start = word_at(operands[2 * _ROW]), operands[2 * _START]
    vector = block_of(descriptor, work, _RIGHT)
    if vector < 0:
        return vector
    head = array_at(vector, c.BLOCK_WORDS, word)
    if head[c.BLOCK_BOUND] > 1:
        report(work, head[c.BLOCK_BOUND] - 1, 0)
        return word(d.NOT_A_VECTOR)
    count = read_row_of(descriptor, work, _LEFT, number, _OF_MATRIX + 1)
    if count < 0:
        return count
    positions = array_at(operands[2 * _OF_MATRIX + 2], count, half_word)
    products = _count_products(work, positions, vector, item_bytes)
    row = array_at(work + 8 * _ONE_ROW, 3, word)
    row[0], row[1], row[2] = 0, 0, count
    operands[2], operands[3] = work + 8 * _ONE_ROW, 1
    operands[2 * _OF_MATRIX], operands[2 * _OF_MATRIX + 1] = work + 8 * _BEGIN, 2
    write_block(operands, 2 * _OF_VECTOR, vector, item_bytes)
    for index in range(2 * _FIRST - 2, 2 * _FIRST):  # the positions of the vector are all 0
        operands[index] = operands[index + 2]
    operands[2 * _FIRST], operands[2 * _FIRST + 1] = start, 1
    return products

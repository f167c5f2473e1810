"""Kernels: the callbacks of PostgreSQL's functions that compute all rows of a product of sparse matrices in one call.

The arguments are those of the functions of one row (row_products.py), without its number. The result is that of
`tensor_compressed_rows` for all rows, without a call and a tuple for each.

Rows are computed together that have no more than some entries, each in room for as many as it may have, by several
threads; then they are appended to those of the rows before.
"""

from numba import njit, types

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.block_layout import offset_of_numbers, offset_of_positions
from sparseeinsum.kernels.compiled.column_slots import COLUMNS_OF_MASKS, FEW_COLUMNS, hash_of_row
from sparseeinsum.kernels.compiled.kernel_calls import ROW, THREADS, copy_bytes, report, word
from sparseeinsum.kernels.compiled.postgresql.compressed_values import (
    check_rows,
    checked_block,
    checked_blocks,
    item_bytes_of,
    operands_of,
)
from sparseeinsum.kernels.compiled.postgresql.compression import BLOCK, new_block
from sparseeinsum.kernels.compiled.postgresql.datums import (
    FLAT_HEADER,
    KEPT,
    KEPT_WORDS,
    allocate_huge,
    value_callback,
)
from sparseeinsum.kernels.compiled.raw_memory import array_at, copy_elements
from sparseeinsum.kernels.compiled.threads import compute_on_threads

compressed_rows = load_kernels("compressed_rows")

half_word = types.int32

_LEFT, _RIGHT, _START, _MASK = range(1, 5)  # the arguments after the semiring
# The operands of the kernels after the semiring; see whole_product_kernels.py.
_OF_LEFT, _OF_RIGHT, _OF_MASK, _FIRST, _SLOTS, _PLACES, _NEW_POSITIONS, _SHAPE, _BOUNDS = range(1, 10)
_ENTRIES_TOGETHER = 1 << 22
_LEAST_ROOM = 1 << 10  # entries
_ELEMENTS_OF_PRODUCT = 8  # that take as long

# The words of a call: the shape; where the positions and numbers of rows are that are computed, and for how many
# entries there is room.
_COLUMNS, _FIRST_ROW, _END_ROW, _POSITIONS, _NUMBERS, _ROOM = range(6)
assert KEPT_WORDS > _ROOM


@njit
def _rows(descriptor, work):
    """Return a bigint[] of the entries of all rows; 0 if there are none, or an error code."""
    left, right = checked_blocks(descriptor, work, _LEFT, _RIGHT)
    code = check_rows(work, left, right) if right >= 0 else right
    if code < 0:
        return code
    rows = _head(left, c.BLOCK_ROWS)
    bounds = array_at(allocate_huge(8 * rows + 8), rows + 1, word)
    _write_bounds(left, right, bounds)
    return _product(descriptor, work, (left, right, word(0)), bounds, _head(right, c.BLOCK_BOUND), FEW_COLUMNS)


postgres_product_rows = value_callback("postgres_product_rows", _rows)


@njit
def _masked_rows(descriptor, work):
    """Return what `_rows` does, but only where a mask has entries."""
    left, right = checked_blocks(descriptor, work, _LEFT, _RIGHT)
    mask = checked_block(descriptor, work, _MASK) if right >= 0 else right
    code = check_rows(work, left, right) if mask >= 0 else mask
    if code < 0:
        return code
    rows, rows_of_mask = _head(left, c.BLOCK_ROWS), _head(mask, c.BLOCK_ROWS)
    if rows != rows_of_mask:
        report(work, rows_of_mask, rows)
        return word(d.ROWS_DIFFER)
    bounds = array_at(mask + 8 * c.BLOCK_WORDS, rows + 1, word)
    columns = max(_head(right, c.BLOCK_BOUND), _head(mask, c.BLOCK_BOUND))
    return _product(descriptor, work, (left, right, mask), bounds, columns, COLUMNS_OF_MASKS)


postgres_masked_product_rows = value_callback("postgres_masked_product_rows", _masked_rows)


@njit
def _kept(work):
    return array_at(work + 8 * KEPT, _ROOM + 1, word)


@njit
def _head(block, index):
    return array_at(block, c.BLOCK_WORDS, word)[index]


@njit
def _write_bounds(left, right, bounds):
    """Write how many entries all rows before each may have together, if none has more than columns and products."""
    starts = array_at(left + 8 * c.BLOCK_WORDS, bounds.size, word)
    right_starts = array_at(right + 8 * c.BLOCK_WORDS, _head(right, c.BLOCK_ROWS) + 1, word)
    positions = array_at(left + offset_of_positions(bounds.size - 1), _head(left, c.BLOCK_ENTRIES), half_word)
    bounds[0] = 0
    for row in range(bounds.size - 1):
        products = compressed_rows.count_products(positions[starts[row] : starts[row + 1]], right_starts)
        bounds[row + 1] = bounds[row] + min(products, _head(right, c.BLOCK_BOUND))


@njit
def _product(descriptor, work, blocks, bounds, columns, few_columns):
    """Return a bigint[] of the entries of all rows, which have no more than the bounds tell; 0, or an error code."""
    rows = bounds.size - 1
    longest = compressed_rows.longest_row(bounds)
    slots, _, _ = hash_of_row(longest, columns, few_columns)
    most = min(bounds[rows] - bounds[0], max(_ENTRIES_TOGETHER, longest))
    numbers = _write_operands(descriptor, work, blocks, bounds, slots, most)
    kept = _kept(work)
    kept[_COLUMNS], kept[_POSITIONS], kept[_NUMBERS], kept[_ROOM] = columns, 0, 0, 0
    ends = array_at(allocate_huge(8 * rows + 8), rows + 1, word)
    ends[0] = 0
    mean = _head(blocks[1], c.BLOCK_ENTRIES) // max(_head(blocks[1], c.BLOCK_ROWS), 1) + 1
    starts, first = array_at(blocks[0] + 8 * c.BLOCK_WORDS, rows + 1, word), 0
    while first < rows:
        last = first + 1
        while last < rows and bounds[last + 1] - bounds[first] <= _ENTRIES_TOGETHER:
            last += 1
        kept[_FIRST_ROW], kept[_END_ROW] = first, last
        elements = (starts[last] - starts[first]) * mean * _ELEMENTS_OF_PRODUCT
        size = bounds[last] - bounds[first]
        code = compute_on_threads(descriptor, work, work + 8 * ROW, numbers, size, elements) if size > 0 else 0
        code = _append_rows(descriptor, work, numbers, size, first, ends[: last + 1]) if code == 0 else word(code)
        if code < 0:
            return code
        first = last
    return _block_of(descriptor, work, ends) if ends[rows] > 0 else word(0)


@njit
def _write_operands(descriptor, work, blocks, bounds, slots, most):
    """Write the operands of the kernel, for so many entries at once; returns memory for their numbers."""
    operands, rows = operands_of(work), bounds.size - 1
    start, slots = operands[2 * _START], slots * array_at(work + 8 * THREADS, 1, word)[0]
    operands[2 * _OF_LEFT], operands[2 * _OF_RIGHT], operands[2 * _OF_MASK] = blocks
    operands[2 * _FIRST], operands[2 * _FIRST + 1] = start, 1
    operands[2 * _SLOTS], operands[2 * _SLOTS + 1] = allocate_huge(4 * slots), slots
    operands[2 * _PLACES], operands[2 * _PLACES + 1] = allocate_huge(16 * rows + 8), 2 * rows
    operands[2 * _NEW_POSITIONS], operands[2 * _NEW_POSITIONS + 1] = allocate_huge(4 * most + 8), most
    operands[2 * _SHAPE], operands[2 * _SHAPE + 1] = work + 8 * KEPT, 3
    operands[2 * _BOUNDS], operands[2 * _BOUNDS + 1] = bounds.ctypes.data, bounds.size
    return allocate_huge(item_bytes_of(descriptor) * most + 8)


@njit
def _append_rows(descriptor, work, numbers, size, first, ends):
    """Append the entries of rows from `first` on, which a kernel wrote; writes where they end; 0 or an error code."""
    operands, item_bytes = operands_of(work), item_bytes_of(descriptor)
    places, positions = array_at(operands[2 * _PLACES], operands[2 * _PLACES + 1], word), operands[2 * _NEW_POSITIONS]
    last, kept = ends.size - 1, _kept(work)
    if size == 0:
        for row in range(first, last):
            ends[row + 1] = ends[first]
        return word(0)
    for row in range(first, last):
        ends[row + 1] = ends[row] + places[2 * row + 1]
    if ends[last] > c.LARGEST or item_bytes * ends[last] > descriptor[d.LIMIT_BYTES]:
        report(work, item_bytes * ends[last], descriptor[d.LIMIT_BYTES])
        return word(d.RESULT_TOO_LARGE)
    _reserve_entries(work, item_bytes, ends[first], ends[last])
    row = first
    while row < last:  # rows that one thread wrote are next to each other
        begin, together = places[2 * row], row + 1
        while together < last and places[2 * together] == begin + ends[together] - ends[row]:
            together += 1
        count = ends[together] - ends[row]
        copy_bytes(kept[_POSITIONS] + 4 * ends[row], positions + 4 * begin, 4 * count)
        copy_bytes(kept[_NUMBERS] + item_bytes * ends[row], numbers + item_bytes * begin, item_bytes * count)
        row = together
    return word(0)


@njit
def _reserve_entries(work, item_bytes, used, least):
    """Make room for at least so many entries, of which so many are there already."""
    kept = _kept(work)
    if least > kept[_ROOM]:
        room = max(least, 2 * kept[_ROOM], _LEAST_ROOM)
        positions, numbers = allocate_huge(4 * room), allocate_huge(item_bytes * room)
        copy_bytes(positions, kept[_POSITIONS], 4 * used)
        copy_bytes(numbers, kept[_NUMBERS], item_bytes * used)
        kept[_POSITIONS], kept[_NUMBERS], kept[_ROOM] = positions, numbers, room


@njit
def _block_of(descriptor, work, ends):
    """Return a bigint[] of the entries that were written, whose rows end there; or an error code."""
    kept, item_bytes = _kept(work), item_bytes_of(descriptor)
    row_count, count = ends.size - 1, ends[ends.size - 1]
    positions, bound = array_at(kept[_POSITIONS], count, half_word), word(0)
    for entry in range(count):
        bound = max(bound, word(positions[entry]) + 1)
    result = new_block(descriptor, work, descriptor[d.ELEMENT_TYPE], row_count, count, bound, item_bytes)
    if result < 0:
        return result
    block = result + FLAT_HEADER + 8 * BLOCK
    starts = array_at(block + 8 * c.BLOCK_WORDS, ends.size, word)
    copy_elements(starts, ends)
    array_at(block, c.BLOCK_WORDS, word)[c.BLOCK_LONGEST] = compressed_rows.longest_row(starts)
    copy_bytes(block + offset_of_positions(row_count), kept[_POSITIONS], 4 * count)
    copy_bytes(block + offset_of_numbers(row_count, count), kept[_NUMBERS], item_bytes * count)
    return result

"""Kernels: the callbacks of PostgreSQL's functions that compute sums and numbers of all rows of entries in one call.

The arguments are those of the functions of one row (gathers.py, row_products.py), without its number. The result is
that of `tensor_collected` for all rows that have one, without a call and a tuple for each: a bytea, first the numbers
of these rows, as int64, then what they have.
"""

from numba import njit

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.block_layout import write_block, write_entries
from sparseeinsum.kernels.compiled.kernel_calls import ROW, compute, copy_bytes, report, word
from sparseeinsum.kernels.compiled.postgresql.compressed_values import (
    check_rows,
    check_size,
    checked_block,
    checked_blocks,
    item_bytes_of,
    operands_of,
    rows_of_arrays,
)
from sparseeinsum.kernels.compiled.postgresql.datums import (
    BYTES_HEADER,
    KEPT,
    allocate_huge,
    new_bytes,
    value_callback,
    word_at,
)
from sparseeinsum.kernels.compiled.raw_memory import array_at, copy_elements
from sparseeinsum.kernels.compiled.slices import slice_bounds
from sparseeinsum.kernels.compiled.threads import (
    close_tasks,
    most_threads,
    open_tasks,
    row_of_task,
    run_tasks,
    scratch_of_task,
    write_task,
)

contraction = load_kernels("contraction")

_BYTES_TOGETHER = 1 << 18  # of results, which stay in the processor's cache until they are copied
_BYTES_OF_THREAD = 1 << 20  # of results, if several threads compute them, since it takes time to start one
_ROWS_TOGETHER = 1 << 12  # of numbers; between them, the server may stop the statement

# The arguments of sums: one array or two, the size of their rows, and what sums start from follow the entries. Then the
# operands of their kernels: which rows, where rows begin, positions and numbers of entries, where results are, what
# sums start from, and the arrays.
_ENTRIES, _ARRAY = range(2)
_ROWS, _STARTS, _POSITIONS, _RESULTS, _FIRST, _ARRAYS = 0, 1, 2, 4, 5, 6

# The arguments of products with a vector, after the semiring, then the operands of their kernel: which rows; where
# those of the matrix begin, and its entries; where those of the vector begin, and its numbers; what numbers start from.
_MATRIX, _VECTOR, _INITIAL = range(1, 4)
_OF_ROWS, _OF_MATRIX, _OF_VECTOR, _OF_START = 1, 2, 5, 7


@njit
def _sums(descriptor, work):
    """Return a bytea of the sums of all rows with entries; 0 if there are none, or an error code."""
    operands, item_bytes = operands_of(work), item_bytes_of(descriptor)
    of_start = descriptor[d.ARGUMENTS] - 1
    size, start = word_at(operands[2 * (of_start - 1)]), operands[2 * of_start]
    array, elements = operands[2 * _ARRAY], operands[2 * _ARRAY + 1]
    other, other_elements = operands[2 * _ARRAY + 2], operands[2 * _ARRAY + 3]
    block = _checked_entries(descriptor, work, size)
    if block < 0:
        return block
    head = array_at(block, c.BLOCK_WORDS, word)
    rows = allocate_huge(8 * head[c.BLOCK_ROWS] + 8)
    count = _list_rows(block, array_at(rows, head[c.BLOCK_ROWS], word))
    if count == 0:
        return word(0)
    if size > descriptor[d.LIMIT_BYTES] // (item_bytes * count):
        report(work, descriptor[d.LIMIT_BYTES] + 1, descriptor[d.LIMIT_BYTES])
        return word(d.RESULT_TOO_LARGE)
    row_bytes = item_bytes * size
    value = new_bytes(descriptor, work, count * (8 + row_bytes))
    if value < 0:
        return value
    products = size * head[c.BLOCK_ENTRIES]
    threads = most_threads(work, products)
    bytes_together = threads * _BYTES_OF_THREAD if threads > 1 else _BYTES_TOGETHER
    together = min(count, max(bytes_together // max(row_bytes, 1), 1))
    places, sums = allocate_huge(16 * together), allocate_huge(row_bytes * together + 8)
    _write_places(array_at(places, 2 * together, word), size)
    operands[2 * _STARTS], operands[2 * _STARTS + 1] = block + 8 * c.BLOCK_WORDS, head[c.BLOCK_ROWS] + 1
    write_entries(operands, 2 * _POSITIONS, block, item_bytes, 0, head[c.BLOCK_ENTRIES])
    operands[2 * _RESULTS], operands[2 * _RESULTS + 1] = places, 2 * together
    operands[2 * _FIRST], operands[2 * _FIRST + 1] = start, 1
    operands[2 * _ARRAYS], operands[2 * _ARRAYS + 1] = array, elements
    operands[2 * _ARRAYS + 2], operands[2 * _ARRAYS + 3] = other, other_elements
    target = value + BYTES_HEADER + 8 * count
    for first in range(0, count, together):
        now = min(together, count - first)
        operands[2 * _ROWS], operands[2 * _ROWS + 1] = rows + 8 * first, now
        code = _sum_rows(descriptor, work, sums, row_bytes, products // count * now)
        if code < 0:
            return word(code)
        copy_bytes(target + first * row_bytes, sums, now * row_bytes)
    copy_bytes(value + BYTES_HEADER, rows, 8 * count)
    return value


postgres_product_sums = value_callback("postgres_product_sums", _sums)


@njit
def _checked_entries(descriptor, work, size):
    """Return the address of the block of entries, at all of whose positions arrays have rows; or an error code."""
    code = check_size(work, size)
    block = checked_block(descriptor, work, _ENTRIES) if code == 0 else code
    if block < 0 or size == 0:
        return block
    rows = rows_of_arrays(work, _ARRAY, descriptor[d.ARGUMENTS] - _ARRAY - 2, size)
    bound = array_at(block, c.BLOCK_WORDS, word)[c.BLOCK_BOUND]
    if bound > rows:
        report(work, bound - 1, size, rows * size)
        return word(d.OUTSIDE_RESIDENT)
    return block


@njit
def _sum_rows(descriptor, work, sums, row_bytes, products):
    """Compute the sums of the rows in the operands, which have so many products; returns 0 or an error code."""
    operands = operands_of(work)
    rows, count = operands[2 * _ROWS], operands[2 * _ROWS + 1]
    memory, threads = open_tasks(work, products, count)
    code = word(contraction.INTERRUPTED)
    if memory != 0:
        for index in range(threads):
            first, end = slice_bounds(count, index, threads)
            row, scratch = row_of_task(memory, index), scratch_of_task(work, memory, index)
            part = array_at(row, operands.size, word)
            copy_elements(part, operands)
            part[2 * _ROWS], part[2 * _ROWS + 1] = rows + 8 * first, end - first
            arguments = (row, sums + first * row_bytes, end - first, scratch, word(0), word(0))
            write_task(memory, index, descriptor[d.COMPUTE], arguments)
        code = run_tasks(work, memory, threads)
    close_tasks(memory, threads)
    return compute(descriptor, work, work + 8 * ROW, sums, count) if code == contraction.INTERRUPTED else code


@njit
def _numbers(descriptor, work):
    """Return a bytea of the numbers of all rows with products; 0 if there are none, or an error code."""
    operands, item_bytes = operands_of(work), item_bytes_of(descriptor)
    start = operands[2 * _INITIAL]
    matrix, vector = checked_blocks(descriptor, work, _MATRIX, _VECTOR)
    if vector < 0:
        return vector
    head, vector_head = array_at(matrix, c.BLOCK_WORDS, word), array_at(vector, c.BLOCK_WORDS, word)
    if vector_head[c.BLOCK_BOUND] > 1:
        report(work, vector_head[c.BLOCK_BOUND] - 1, 0)
        return word(d.NOT_A_VECTOR)
    code = check_rows(work, matrix, vector)
    if code < 0:
        return code
    rows = allocate_huge(8 * head[c.BLOCK_ROWS] + 8)
    count = _list_rows(matrix, array_at(rows, head[c.BLOCK_ROWS], word))
    write_block(operands, 2 * _OF_VECTOR, vector, item_bytes)
    for index in range(2 * _OF_START - 2, 2 * _OF_START):  # the positions of the vector are all 0
        operands[index] = operands[index + 2]
    if _is_full(vector):
        operands[2 * _OF_VECTOR + 1] = 0  # its rows begin one after the other
    write_block(operands, 2 * _OF_MATRIX, matrix, item_bytes)
    operands[2 * _OF_START], operands[2 * _OF_START + 1] = start, 1
    numbers = allocate_huge(item_bytes * count + 8)
    count = _multiply(descriptor, work, rows, numbers, count)
    if count <= 0:
        return count
    value = new_bytes(descriptor, work, count * (8 + item_bytes))
    if value >= 0:
        copy_bytes(value + BYTES_HEADER, rows, 8 * count)
        copy_bytes(value + BYTES_HEADER + 8 * count, numbers, item_bytes * count)
    return value


postgres_product_numbers = value_callback("postgres_product_numbers", _numbers)


@njit
def _multiply(descriptor, work, rows, numbers, count):
    """Write the numbers of rows, and leave out rows without products; returns how many are left, or an error code."""
    operands, item_bytes = operands_of(work), item_bytes_of(descriptor)
    validity = allocate_huge(_ROWS_TOGETHER // 8)
    valid, numbered = array_at(validity, _ROWS_TOGETHER // 64, word), array_at(rows, count, word)
    product, kept = array_at(work + 8 * KEPT, c.NUMBERS_WORDS, word), word(0)
    product[c.VALIDITY] = validity
    for first in range(0, count, _ROWS_TOGETHER):
        now = min(_ROWS_TOGETHER, count - first)
        operands[2 * _OF_ROWS], operands[2 * _OF_ROWS + 1] = rows + 8 * first, now
        product[c.NUMBERS] = numbers + item_bytes * first
        for index in range(valid.size):
            valid[index] = -1
        code = compute(descriptor, work, work + 8 * ROW, work + 8 * KEPT, now)
        if code < 0:
            return word(code)
        for index in range(now):
            if valid[index >> 6] >> (index & 63) & 1:
                if kept < first + index:
                    numbered[kept] = numbered[first + index]
                    copy_bytes(numbers + item_bytes * kept, numbers + item_bytes * (first + index), item_bytes)
                kept += 1
    return kept


@njit
def _list_rows(block, rows):
    """Write the numbers of the rows of a block that have entries; returns how many there are."""
    starts, count = array_at(block + 8 * c.BLOCK_WORDS, rows.size + 1, word), word(0)
    for row in range(rows.size):
        rows[count] = row
        count += starts[row] < starts[row + 1]
    return count


@njit
def _write_places(places, size):
    """Write where the results of rows begin, one after the other, and their size."""
    for index in range(places.size // 2):
        places[2 * index], places[2 * index + 1] = index * size, size


@njit
def _is_full(vector):
    """Whether every row of a block has one entry, in the order of the rows."""
    rows = array_at(vector, c.BLOCK_WORDS, word)[c.BLOCK_ROWS]
    starts, is_full = array_at(vector + 8 * c.BLOCK_WORDS, rows + 1, word), True
    for row in range(rows + 1):
        is_full &= starts[row] == row
    return is_full

"""Kernels: reads rows from DuckDB's vectors, and writes results to them, for scalar functions and aggregates.

All parameters are int64, as pointers and idx_t are in the C ABI. DuckDB passes flattened vectors: a list vector is an
array of (offset, length) and one child vector; the rows of a constant have equal offsets.
"""

from numba import njit, types

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.kernel_calls import (
    HOST_WORDS,
    NULL_ROW,
    ROW,
    compute_batch,
    is_complex,
    is_list,
    pair_elements,
    report,
)
from sparseeinsum.kernels.compiled.raw_memory import LARGE_PAGE, array_at, copy_elements, use_large_pages

word = types.int64
half_word = types.uint32

get_vector = types.ExternalFunction("duckdb_data_chunk_get_vector", word(word, word))
get_rows = types.ExternalFunction("duckdb_data_chunk_get_size", word(word))
get_data = types.ExternalFunction("duckdb_vector_get_data", word(word))
_get_validity = types.ExternalFunction("duckdb_vector_get_validity", word(word))
_make_validity = types.ExternalFunction("duckdb_vector_ensure_validity_writable", types.void(word))
get_child = types.ExternalFunction("duckdb_list_vector_get_child", word(word))
get_list_size = types.ExternalFunction("duckdb_list_vector_get_size", word(word))
reserve = types.ExternalFunction("duckdb_list_vector_reserve", types.int32(word, word))
set_list_size = types.ExternalFunction("duckdb_list_vector_set_size", types.int32(word, word))
calloc = types.ExternalFunction("calloc", word(word, word))

# The words of DuckDB's callbacks in the work memory: columns, the first row, steps.
_COLUMN_WORDS = 4  # addresses: data, validity, data of the child, validity of the child
_COLUMNS = HOST_WORDS
FIRST_ROW = _COLUMNS + _COLUMN_WORDS * d.MAX_ARGUMENTS
STEPS = FIRST_ROW + d.ROW_WORDS
_WORK_BYTES = 8 * (STEPS + d.MAX_ARGUMENTS)


@njit
def new_work():
    """Allocate zeroed work memory for one call; 0 if there is not enough memory."""
    return calloc(1, _WORK_BYTES)


@njit
def start_work(chunk, descriptor):
    """Allocate work memory for one call and fill in its columns; 0 if there is not enough memory."""
    work = new_work()
    if work == 0:
        return 0
    words = array_at(work + 8 * _COLUMNS, _COLUMN_WORDS * d.MAX_ARGUMENTS, word)
    for index in range(descriptor[d.ARGUMENTS]):
        vector = get_vector(chunk, index)
        column = _COLUMN_WORDS * index
        words[column] = get_data(vector)
        words[column + 1] = _get_validity(vector)
        if is_list(descriptor[d.HEADER + 2 * index]):
            child = get_child(vector)
            words[column + 2] = get_data(child)
            words[column + 3] = _get_validity(child)
    return work


@njit
def is_valid(validity, row):
    """Whether a row of a column with this validity is not NULL."""
    return validity == 0 or (array_at(validity + 8 * (row >> 6), 1, word)[0] >> (row & 63)) & 1 == 1


@njit
def argument_is_valid(work, index, row):
    """Whether argument `index` is not NULL in a row."""
    return is_valid(validity_address(work, index), row)


@njit
def validity_address(work, index):
    """Return the address of the validity of argument `index`, for `is_valid`."""
    return array_at(work + 8 * (_COLUMNS + _COLUMN_WORDS * index), _COLUMN_WORDS, word)[1]


@njit
def has_no_nulls(work, arguments):
    """Whether DuckDB says that the first so many arguments are not NULL in any row."""
    for index in range(arguments):
        if array_at(work + 8 * (_COLUMNS + _COLUMN_WORDS * index), _COLUMN_WORDS, word)[1] != 0:
            return False
    return True


@njit
def value_address(work, index, row, item_bytes):
    """Return the address of argument `index`, a number, in a row."""
    return array_at(work + 8 * (_COLUMNS + _COLUMN_WORDS * index), 1, word)[0] + row * item_bytes


@njit
def integer_at(work, index, row):
    """Return argument `index`, an integer, in a row."""
    return array_at(value_address(work, index, row, 8), 1, word)[0]


@njit
def elements_address(work, index):
    """Return the address of the elements of argument `index`, an array, of all rows."""
    return array_at(work + 8 * (_COLUMNS + _COLUMN_WORDS * index), _COLUMN_WORDS, word)[2]


@njit
def has_null_elements(work, index):
    """Whether DuckDB says that elements of argument `index`, an array, may be NULL."""
    return array_at(work + 8 * (_COLUMNS + _COLUMN_WORDS * index), _COLUMN_WORDS, word)[3] != 0


@njit
def elements_are_valid(work, index, start, size):
    """Whether no element of argument `index` in a range, counted over all rows, is NULL."""
    return _all_valid(array_at(work + 8 * (_COLUMNS + _COLUMN_WORDS * index), _COLUMN_WORDS, word)[3], start, size)


@njit
def array_of_row(work, index, row, item_bytes):
    """Return the address of argument `index`, an array, in a row, and its number of elements, or an error code."""
    first, elements = array_at(value_address(work, index, row, 16), 2, word)
    if not elements_are_valid(work, index, first, elements):
        report(work, index + 1, elements)
        return word(0), word(d.HOLDS_NULL)
    return elements_address(work, index) + first * item_bytes, elements


@njit
def _all_valid(validity, start, size):
    if validity == 0:
        return True
    words, position, end = array_at(validity, (start + size + 63) >> 6, word), start, start + size
    while position < end:
        if position & 63 == 0 and end - position >= 64 and words[position >> 6] == -1:
            position += 64
        elif is_valid(validity, position):
            position += 1
        else:
            return False
    return True


@njit
def read_row(descriptor, work, row, target):
    """Write the addresses and sizes of one row's arguments to `target`; returns 0, NULL_ROW or an error code."""
    for index in range(descriptor[d.ARGUMENTS]):
        code = _read_argument(descriptor, work, index, row, target + 16 * index)
        if code != 0:
            return code
    return 0


@njit
def _read_argument(descriptor, work, index, row, target):
    """Write the address and size of argument `index` of a row to `target`; returns 0, NULL_ROW or an error code."""
    column = array_at(work + 8 * (_COLUMNS + _COLUMN_WORDS * index), _COLUMN_WORDS, word)
    if not is_valid(column[1], row):
        return word(NULL_ROW)
    argument = array_at(target, 2, word)
    kind, item_bytes = descriptor[d.HEADER + 2 * index], descriptor[d.HEADER + 2 * index + 1]
    if kind == d.VALUE:
        argument[0], argument[1] = column[0] + row * item_bytes, 1
    elif is_list(kind):
        entry = array_at(column[0] + 16 * row, 2, word)
        if not _all_valid(column[3], entry[0], entry[1]):
            report(work, index + 1, entry[1])
            return word(d.HOLDS_NULL)
        argument[0], argument[1] = column[2] + entry[0] * item_bytes, entry[1]
        if is_complex(kind):
            return word(pair_elements(kind, work, index, argument, column[2] + entry[0] * (item_bytes // 2)))
    else:
        read_text(column[0] + 16 * row, argument)
    return word(0)


@njit
def read_text(address, argument):
    """Write the address and the size of a text to `argument`.

    A duckdb_string_t is a length, then up to 12 bytes inline, or 4 bytes and a pointer.
    """
    length = word(array_at(address, 1, half_word)[0])
    argument[0] = address + 4 if length <= 12 else array_at(address + 8, 1, word)[0]
    argument[1] = length


@njit
def prepare_batch(descriptor, work, rows):
    """Whether two rows or more can be one batch.

    They have no NULL, arrays of equal sizes at constant distances, and equal texts and extents. It writes the first row
    and the distances of arrays and numbers, in elements, to the work memory.
    """
    if read_row(descriptor, work, 0, work + 8 * FIRST_ROW) != 0:
        return False
    for index in range(descriptor[d.ARGUMENTS]):
        if not _all_valid(validity_address(work, index), 0, rows) or not _is_in_batch(descriptor, work, index, rows):
            return False
    return True


@njit
def _is_in_batch(descriptor, work, index, rows):
    """Whether argument `index`, which is NULL in no row, lets the rows be one batch; writes the distance of arrays."""
    kind, item_bytes = descriptor[d.HEADER + 2 * index], descriptor[d.HEADER + 2 * index + 1]
    steps = array_at(work + 8 * STEPS, d.MAX_ARGUMENTS, word)
    if kind == d.VALUE:
        steps[index] = 1
        return True
    first, target = array_at(work + 8 * (FIRST_ROW + 2 * index), 2, word), work + 8 * (ROW + 2 * index)
    argument, entries = array_at(target, 2, word), array_at(value_address(work, index, 0, 16), 2 * rows, word)
    is_shared = kind == d.TEXT or kind == d.EXTENTS
    for row in range(1, rows):
        # DuckDB repeats the entry of a constant, which need not be read again.
        if is_shared and entries[2 * row] == entries[0] and entries[2 * row + 1] == entries[1]:
            continue
        if _read_argument(descriptor, work, index, row, target) != 0 or argument[1] != first[1]:
            return False
        if is_shared:
            if argument[0] != first[0] and not _same_bytes(first[0], argument[0], first[1] * item_bytes):
                return False
            continue
        if row == 1:
            steps[index] = (argument[0] - first[0]) // item_bytes
        if steps[index] < 0 or argument[0] != first[0] + row * steps[index] * item_bytes:
            return False
    return True


@njit
def merge_rows(descriptor, work, rows, merged):
    """Write one row for two or more: argument `merged` of all of them, and the other arguments, which must be equal.

    Returns False if they differ, or if argument `merged` is not adjacent from row to row.
    """
    if rows < 2 or not prepare_batch(descriptor, work, rows):
        return False
    steps, row = array_at(work + 8 * STEPS, d.MAX_ARGUMENTS, word), array_at(work + 8 * ROW, d.ROW_WORDS, word)
    copy_elements(row, array_at(work + 8 * FIRST_ROW, d.ROW_WORDS, word))
    for index in range(descriptor[d.ARGUMENTS]):
        first, size, item_bytes = row[2 * index], row[2 * index + 1], descriptor[d.HEADER + 2 * index + 1]
        if index == merged:
            if steps[index] != size:
                return False
            row[2 * index + 1] *= rows
        else:
            for position in range(1, rows if steps[index] != 0 else 1):
                if not _same_bytes(first, first + position * steps[index] * item_bytes, size * item_bytes):
                    return False
    return True


@njit
def _same_bytes(first, second, size):
    first_bytes, second_bytes = array_at(first, size, types.uint8), array_at(second, size, types.uint8)
    for i in range(size):
        if first_bytes[i] != second_bytes[i]:
            return False
    return True


@njit
def writable_validity(vector):
    """Return the address of the validity of a vector's rows, for `clear_valid`."""
    _make_validity(vector)
    return _get_validity(vector)


@njit
def clear_valid(validity, row):
    mask = array_at(validity + 8 * (row >> 6), 1, word)
    mask[0] &= ~(word(1) << (row & 63))


@njit
def set_null(vector, row):
    clear_valid(writable_validity(vector), row)


@njit
def compute_batch_rows(descriptor, work, rows, out, size):
    """Compute the rows of `prepare_batch` at once; returns 1, 0 if the kernel needs one row at a time, or a code."""
    return compute_batch(descriptor, work, work + 8 * FIRST_ROW, work + 8 * STEPS, rows, out, size)


@njit
def write_row_of_batch(descriptor, work, position, target):
    """Write the addresses and sizes of the arguments of one row of a batch to `target`, as `read_row` does."""
    first, steps = array_at(work + 8 * FIRST_ROW, d.ROW_WORDS, word), array_at(work + 8 * STEPS, d.MAX_ARGUMENTS, word)
    row = array_at(target, d.ROW_WORDS, word)
    copy_elements(row, first)
    for index in range(descriptor[d.ARGUMENTS]):
        kind, item_bytes = descriptor[d.HEADER + 2 * index], descriptor[d.HEADER + 2 * index + 1]
        if kind != d.TEXT and kind != d.EXTENTS:  # rows of a batch share these
            row[2 * index] += position * steps[index] * item_bytes


@njit
def reserve_elements(descriptor, work, result, elements):
    """Reserve that many more elements of a result in a list vector; returns where they start, or an error code."""
    lanes = descriptor[d.RESULT_LANES]
    start = get_list_size(result) // lanes
    limit = descriptor[d.LIMIT_BYTES]
    if start + elements > limit // descriptor[d.RESULT_BYTES]:
        report(work, (start + elements) * descriptor[d.RESULT_BYTES], limit)
        return d.RESULT_TOO_LARGE
    total = (start + elements) * lanes
    if reserve(result, total) != 0 or set_list_size(result, total) != 0:
        report(work, elements * descriptor[d.RESULT_BYTES], 0)
        return d.OUT_OF_MEMORY
    added_bytes = elements * descriptor[d.RESULT_BYTES]
    if added_bytes >= 2 * LARGE_PAGE:
        use_large_pages(get_data(get_child(result)) + start * descriptor[d.RESULT_BYTES], added_bytes)
    return start


@njit
def write_entry(descriptor, entries, index, start, size):
    """Write entry `index` of a list vector: offset and length, converted from elements of a result to DuckDB's."""
    lanes = descriptor[d.RESULT_LANES]
    entries[2 * index], entries[2 * index + 1] = start * lanes, size * lanes


@njit
def copy_number(target, source, item_bytes):
    """Copy a number of 8 or 4 bytes."""
    if item_bytes == 8:
        array_at(target, 1, word)[0] = array_at(source, 1, word)[0]
    else:
        array_at(target, 1, half_word)[0] = array_at(source, 1, half_word)[0]

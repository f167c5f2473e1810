"""Kernels: the callback of DuckDB's functions that add up rows of resident arrays at the positions of entries.

The arguments are a handle of compressed entries, a row of these, a handle of an array, the number of elements in a row
of the array, and the fill. A NULL handle of an array stands for an array without stored entries: all elements are the
fill. A row without entries gives NULL.

With two arrays, position i * k + j stands for the product of row i of the first and row j of the second, which has k
rows; the last argument is then what sums start from. A NULL handle of one of them gives NULL.
"""

from numba import njit, types

from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.duckdb.compressed_blocks import pin_block, range_of_row, write_entries
from sparseeinsum.kernels.compiled.duckdb.pins import PIN_WORDS, pin, pinned_address, unpin
from sparseeinsum.kernels.compiled.duckdb.vectors import (
    FIRST_ROW,
    argument_is_valid,
    free,
    get_child,
    get_data,
    get_rows,
    integer_at,
    malloc,
    reserve_elements,
    set_null,
    start_work,
    value_address,
    word,
    write_entry,
)
from sparseeinsum.kernels.compiled.kernel_calls import ROW, compute, copy_bytes, message_of, report, template_of
from sparseeinsum.kernels.compiled.raw_memory import array_at

_extra_info = types.ExternalFunction("duckdb_scalar_function_get_extra_info", word(word))
_set_error = types.ExternalFunction("duckdb_scalar_function_set_error", types.void(word, word))

_ENTRIES, _ROW, _ARRAY = range(3)  # the arguments; one array or two, the size and the fill or start follow

# The memory of a call, in words, from FIRST_ROW on, where this callback reads no row: three pins, and the address of
# positions and fills, or 0.
_PIN_OF_ENTRIES = FIRST_ROW
_PIN_OF_ARRAY = _PIN_OF_ENTRIES + PIN_WORDS
_FILLS = _PIN_OF_ARRAY + 2 * PIN_WORDS
_LARGEST_SIZE = 1 << 40


@njit
def gather_rows(info, chunk, result):
    """Compute the sums for all rows of a chunk."""
    descriptor = array_at(_extra_info(info), d.DESCRIPTOR_WORDS, word)
    work = start_work(chunk, descriptor)
    if work == 0:
        _set_error(info, template_of(descriptor, d.OUT_OF_MEMORY))
        return 0
    rows = get_rows(chunk)
    code = _measure_rows(descriptor, work, rows, result)
    if code == 0:
        code = _compute_rows(descriptor, work, rows, result)
    if code < 0:
        _set_error(info, message_of(descriptor, code, work))
    unpin(work + 8 * _PIN_OF_ENTRIES)
    unpin(work + 8 * _PIN_OF_ARRAY)
    unpin(work + 8 * (_PIN_OF_ARRAY + PIN_WORDS))
    free(array_at(work + 8 * _FILLS, 1, word)[0])
    free(work)
    return 0


@njit
def _size_argument(descriptor):
    """Return the number of the argument that is the size of a row; the fill or the start comes last."""
    return descriptor[d.ARGUMENTS] - 2


@njit
def _has_result(descriptor, work, row):
    """Whether no argument is NULL, but for the handle of the only array."""
    for index in range(descriptor[d.ARGUMENTS]):
        is_only_array = index == _ARRAY and _size_argument(descriptor) == _ARRAY + 1
        if not is_only_array and not argument_is_valid(work, index, row):
            return False
    return True


@njit
def _measure_rows(descriptor, work, rows, result):
    """Write where the results of all rows begin, and how long they are; returns 0 or an error code."""
    entries = array_at(get_data(result), 2 * rows, word)
    limit, total = descriptor[d.LIMIT_BYTES] // descriptor[d.RESULT_BYTES], word(0)
    entries_pin = work + 8 * _PIN_OF_ENTRIES
    for row in range(rows):
        write_entry(descriptor, entries, row, total, 0)
        if not _has_result(descriptor, work, row):
            set_null(result, row)
            continue
        code = pin_block(descriptor, work, entries_pin, _ENTRIES, row)
        size = integer_at(work, _size_argument(descriptor), row)
        if code < 0:
            return code
        first, last = range_of_row(work, pinned_address(entries_pin), integer_at(work, _ROW, row))
        if first < 0:
            return first
        if first == last:
            set_null(result, row)
            continue
        if size < 0 or size > _LARGEST_SIZE:
            report(work, size, 0)
            return d.BAD_SIZE
        if size > limit - total:
            report(work, (total + size) * descriptor[d.RESULT_BYTES], descriptor[d.LIMIT_BYTES])
            return d.RESULT_TOO_LARGE
        write_entry(descriptor, entries, row, total, size)
        total += size
    start = reserve_elements(descriptor, work, result, total)
    for row in range(rows if start > 0 else 0):
        entries[2 * row] += start
    return min(start, 0)


@njit
def _compute_rows(descriptor, work, rows, result):
    entries, out = array_at(get_data(result), 2 * rows, word), get_data(get_child(result))
    for row in range(rows):
        size = entries[2 * row + 1]
        if size == 0:
            continue
        code = pin_block(descriptor, work, work + 8 * _PIN_OF_ENTRIES, _ENTRIES, row)
        if code == 0:
            code = _read_operands(descriptor, work, row, size)
        if code == 0:
            code = compute(descriptor, work, work + 8 * ROW, out + entries[2 * row] * descriptor[d.RESULT_BYTES], size)
        if code < 0:
            return code
    return 0


@njit
def _read_operands(descriptor, work, row, size):
    """Write the operands of the kernel: positions, numbers, arrays, and what sums start from; returns 0 or a code."""
    operands, item_bytes = array_at(work + 8 * ROW, d.ROW_WORDS, word), descriptor[d.RESULT_BYTES]
    block = pinned_address(work + 8 * _PIN_OF_ENTRIES)
    first, last = range_of_row(work, block, integer_at(work, _ROW, row))
    write_entries(operands, 0, block, item_bytes, first, last)
    bound, end = array_at(block, c.BLOCK_WORDS, word)[c.BLOCK_BOUND], _size_argument(descriptor)
    last_value = value_address(work, end + 1, row, item_bytes)
    if not argument_is_valid(work, _ARRAY, row):
        return _read_fills(work, operands, last_value, item_bytes, size)
    positions, elements = word(1), word(0)
    for argument in range(_ARRAY, end):
        elements = _read_array(descriptor, work, row, argument, operands)
        if elements < 0:
            return elements
        positions *= elements // size
    if bound > positions:
        report(work, bound - 1, size, elements)
        return d.OUTSIDE_RESIDENT
    operands[2 * end], operands[2 * end + 1] = last_value, 1
    return 0


@njit
def _read_array(descriptor, work, row, argument, operands):
    """Write the operand of the kernel that is a resident array; returns its elements or an error code."""
    handle, kind = integer_at(work, argument, row), descriptor[d.ELEMENT_TYPE]
    place = work + 8 * (_PIN_OF_ARRAY + (argument - _ARRAY) * PIN_WORDS)
    elements = pin(place, handle, kind, kind)
    if elements < 0:
        report(work, handle, 0)
    else:
        operands[2 * argument], operands[2 * argument + 1] = pinned_address(place), elements
    return elements


@njit
def _read_fills(work, operands, fill, item_bytes, size):
    """Let the kernel read one row of `size` fills for every entry; returns 0 or an error code."""
    fills, entries = array_at(work + 8 * _FILLS, 1, word), operands[3]
    free(fills[0])
    fills[0] = malloc(4 * entries + 4 + size * item_bytes)
    if fills[0] == 0:
        report(work, 4 * entries + size * item_bytes, 0)
        return d.OUT_OF_MEMORY
    positions = array_at(fills[0], entries + 1, types.int32)
    for entry in range(entries + 1):
        positions[entry] = 0
    start = fills[0] + 4 * (entries + entries % 2)
    for index in range(size):
        copy_bytes(start + index * item_bytes, fill, item_bytes)
    operands[0], operands[1], operands[4], operands[5] = fills[0], entries, start, size
    return 0

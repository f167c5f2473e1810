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
from sparseeinsum.kernels.compiled.block_layout import write_block
from sparseeinsum.kernels.compiled.duckdb.callbacks import scalar_callback
from sparseeinsum.kernels.compiled.duckdb.compressed_blocks import pin_block
from sparseeinsum.kernels.compiled.duckdb.pins import PIN_WORDS, pin, pinned_address, unpin
from sparseeinsum.kernels.compiled.duckdb.runs import end_of_run, find_outside
from sparseeinsum.kernels.compiled.duckdb.vectors import (
    FIRST_ROW,
    argument_is_valid,
    calloc,
    free,
    get_child,
    get_data,
    integer_at,
    reserve_elements,
    set_null,
    value_address,
    word,
    writable_validity,
    write_entry,
)
from sparseeinsum.kernels.compiled.kernel_calls import ROW, compute, copy_bytes, report
from sparseeinsum.kernels.compiled.raw_memory import array_at

_bits = types.uint64  # of places that are known not to be negative, for which numba writes no code

_ENTRIES, _ROW, _ARRAY = range(3)  # the arguments; one array or two, the size and the fill or start follow

# The memory of a call, in words, from FIRST_ROW on, where this callback reads no row: three pins, and the address of a
# row of fills, or 0.
_PIN_OF_ENTRIES = FIRST_ROW
_PIN_OF_ARRAY = _PIN_OF_ENTRIES + PIN_WORDS
_FILLS = _PIN_OF_ARRAY + 2 * PIN_WORDS
_LARGEST_SIZE = 1 << 40

# The operands of a kernel: the numbers of rows, where rows begin, positions and numbers of all entries, where results
# go, what sums start from, and arrays.
_ROWS, _STARTS, _POSITIONS, _NUMBERS, _RESULTS, _START, _ARRAYS = range(7)


@njit
def _gather_rows(descriptor, work, rows, result):
    """Compute the sums, for rows with the same arguments together; kernels compute rows after all are measured."""
    total, first = word(0), 0
    while first < rows and total >= 0:
        end = end_of_run(descriptor, work, first, rows, _ROW)
        total = _measure_run(descriptor, work, first, end, result, total)
        first = end
    start = reserve_elements(descriptor, work, result, total) if total >= 0 else total
    if start < 0:
        return start
    entries, code = array_at(get_data(result), 2 * rows, word), word(0)
    for row in range(rows if start > 0 else 0):
        entries[2 * row] += start
    first = 0
    while first < rows and code == 0:
        end = end_of_run(descriptor, work, first, rows, _ROW)
        if _has_result(descriptor, work, first):
            code = _compute_run(descriptor, work, first, end, result)
        first = end
    return code


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
def _measure_run(descriptor, work, first, end, result, total):
    """Write where the results of rows begin, from `total` on, and how long they are; returns their end, or a code."""
    entries = array_at(get_data(result), 2 * end, word)
    if not _has_result(descriptor, work, first):
        for row in range(first, end):
            write_entry(descriptor, entries, row, total, 0)
            set_null(result, row)
        return total
    code = pin_block(descriptor, work, work + 8 * _PIN_OF_ENTRIES, _ENTRIES, first)
    if code < 0:
        return code
    size, limit = integer_at(work, _size_argument(descriptor), first), descriptor[d.LIMIT_BYTES]
    if size < 0 or size > _LARGEST_SIZE:
        report(work, size, 0)
        return d.BAD_SIZE
    block = pinned_address(work + 8 * _PIN_OF_ENTRIES)
    count = array_at(block, c.BLOCK_WORDS, word)[c.BLOCK_ROWS]
    starts = array_at(block + 8 * c.BLOCK_WORDS, count + 1, word)
    numbers = array_at(value_address(work, _ROW, 0, 8), end, word)
    outside = find_outside(numbers[first:], count)
    if outside >= 0:
        report(work, numbers[first + outside], 0, count - 1)
        return d.OUTSIDE_ROWS
    lanes, filled = descriptor[d.RESULT_LANES], 0
    for row in range(first, end):
        is_filled = _is_filled(starts, numbers, row)
        entries[2 * row], entries[2 * row + 1] = total * lanes, is_filled * size * lanes
        total += is_filled * size
        filled += is_filled
    if total > limit // descriptor[d.RESULT_BYTES]:
        report(work, total * descriptor[d.RESULT_BYTES], limit)
        return d.RESULT_TOO_LARGE
    if filled < end - first:
        validity = array_at(writable_validity(result), (end + 63) // 64, word)
        for begin in range(first - first % 64, end, 64):
            absent = word(0)
            for row in range(max(begin, first), min(begin + 64, end)):
                absent |= word(not _is_filled(starts, numbers, row)) << (row - begin)
            validity[begin // 64] &= ~absent
    return total


@njit
def _is_filled(starts, numbers, row):
    """Whether the row of entries with the number of a row has any; the number is valid."""
    number = _bits(numbers[_bits(row)])
    return starts[number + _bits(1)] > starts[number]


@njit
def _compute_run(descriptor, work, first, end, result):
    code = pin_block(descriptor, work, work + 8 * _PIN_OF_ENTRIES, _ENTRIES, first)
    if code == 0:
        code = _read_operands(descriptor, work, first, integer_at(work, _size_argument(descriptor), first))
    if code < 0:
        return code
    operands = array_at(work + 8 * ROW, d.ROW_WORDS, word)
    operands[2 * _ROWS], operands[2 * _ROWS + 1] = value_address(work, _ROW, first, 8), end - first
    operands[2 * _RESULTS], operands[2 * _RESULTS + 1] = get_data(result) + 16 * first, 2 * (end - first)
    return compute(descriptor, work, work + 8 * ROW, get_data(get_child(result)), end - first)


@njit
def _read_operands(descriptor, work, row, size):
    """Write the operands of the kernel that rows share; returns 0 or an error code."""
    operands, item_bytes = array_at(work + 8 * ROW, d.ROW_WORDS, word), descriptor[d.RESULT_BYTES]
    block, end = pinned_address(work + 8 * _PIN_OF_ENTRIES), _size_argument(descriptor)
    write_block(operands, 2 * _STARTS, block, item_bytes)
    operands[2 * _START], operands[2 * _START + 1] = value_address(work, end + 1, row, item_bytes), 1
    if not argument_is_valid(work, _ARRAY, row):
        return _read_fills(work, operands, item_bytes, size)
    positions, elements = word(1), word(0)
    for index in range(end - _ARRAY):
        elements = _read_array(descriptor, work, row, index, operands)
        if elements < 0:
            return elements
        positions *= elements // max(size, 1)
    bound = array_at(block, c.BLOCK_WORDS, word)[c.BLOCK_BOUND]
    if bound > positions and size > 0:
        report(work, bound - 1, size, elements)
        return d.OUTSIDE_RESIDENT
    return 0


@njit
def _read_array(descriptor, work, row, index, operands):
    """Write the operand of the kernel that is a resident array; returns its elements or an error code."""
    handle, kind = integer_at(work, _ARRAY + index, row), descriptor[d.ELEMENT_TYPE]
    place = work + 8 * (_PIN_OF_ARRAY + index * PIN_WORDS)
    elements = pin(place, handle, kind, kind)
    if elements < 0:
        report(work, handle, 0)
    else:
        at = 2 * (_ARRAYS + index)
        operands[at], operands[at + 1] = pinned_address(place), elements
    return elements


@njit
def _read_fills(work, operands, item_bytes, size):
    """Let the kernel read one row of `size` fills for every entry; returns 0 or an error code."""
    fills, entries = array_at(work + 8 * _FILLS, 1, word), operands[2 * _NUMBERS + 1]
    free(fills[0])
    first = 4 * (entries + entries % 2)
    fills[0] = calloc(first + size * item_bytes + 1, 1)
    if fills[0] == 0:
        report(work, first + size * item_bytes, 0)
        return d.OUT_OF_MEMORY
    for index in range(size):
        copy_bytes(fills[0] + first + index * item_bytes, operands[2 * _START], item_bytes)
    operands[2 * _POSITIONS] = fills[0]
    operands[2 * _ARRAYS], operands[2 * _ARRAYS + 1] = fills[0] + first, size
    return 0


@njit
def _release(work):
    unpin(work + 8 * _PIN_OF_ENTRIES)
    unpin(work + 8 * _PIN_OF_ARRAY)
    unpin(work + 8 * (_PIN_OF_ARRAY + PIN_WORDS))
    free(array_at(work + 8 * _FILLS, 1, word)[0])
    return 0


gather_rows = scalar_callback("gather_rows", _gather_rows, _release)

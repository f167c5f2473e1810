"""Kernels: the callback of DuckDB's functions that add up rows of resident arrays at the positions of entries.

The arguments are a handle of compressed entries, a row of these, a handle of an array, the number of elements in a row
of the array, and the fill. A NULL handle of an array stands for an array without stored entries: all elements are the
fill. A row without entries gives NULL. The text of another semiring than that of sums of products may come first.

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
    get_child,
    get_data,
    integer_at,
    read_text,
    reserve_elements,
    value_address,
    word,
    writable_validity,
)
from sparseeinsum.kernels.compiled.kernel_calls import ROW, compute, copy_bytes, report
from sparseeinsum.kernels.compiled.raw_memory import array_at, free

_bits = types.uint64  # of places that are known not to be negative, for which numba writes no code

# The arguments from `_first_argument` on; one array or two, the size and the fill or start follow.
_ENTRIES, _ROW, _ARRAY = range(3)

# The memory of a call, in words, from FIRST_ROW on, where this callback reads no row: three pins, and the address of a
# row of fills, or 0.
_PIN_OF_ENTRIES = FIRST_ROW
_PIN_OF_ARRAY = _PIN_OF_ENTRIES + PIN_WORDS
_FILLS = _PIN_OF_ARRAY + 2 * PIN_WORDS
END_OF_OPERANDS = _FILLS + 1
_LARGEST_SIZE = 1 << 40

# The operands of a kernel: the numbers of rows, where rows begin, positions and numbers of all entries, where results
# go, what sums start from, and arrays, of which there is one if the text of a semiring follows.
_ROWS, _STARTS, _POSITIONS, _NUMBERS, _RESULTS, _START, _ARRAYS, _SEMIRING = range(8)


@njit
def _first_argument(descriptor):
    """Return the number of the argument that is the handle of entries: 1 after the text of a semiring, else 0."""
    return word(descriptor[d.HEADER] == d.TEXT)


@njit
def _gather_rows(descriptor, work, rows, result):
    """Compute the sums; kernels compute rows after all are measured."""
    places, arguments = get_data(result), descriptor[d.ARGUMENTS]
    total, runs = measure_rows(descriptor, work, rows, arguments, places)
    start = reserve_elements(descriptor, work, result, total) if total >= 0 else total
    if start < 0:
        return start
    entries = array_at(places, 2 * rows, word)
    _set_nulls(result, entries, rows)
    for row in range(rows if start > 0 else 0):
        entries[2 * row] += start
    return compute_rows(descriptor, work, (0, rows), runs, arguments, places, get_data(get_child(result)))


@njit
def _set_nulls(result, entries, rows):
    """Make the results of rows without a sum NULL, and of no elements."""
    missing = word(0)
    for row in range(rows):
        missing += entries[2 * row + 1] < 0
    if missing == 0:
        return
    validity = array_at(writable_validity(result), (rows + 63) // 64, word)
    for first in range(0, rows, 64):
        absent = word(0)
        for row in range(first, min(first + 64, rows)):
            absent |= word(entries[2 * row + 1] < 0) << (row - first)
            entries[2 * row + 1] = max(entries[2 * row + 1], 0)
        validity[first // 64] &= ~absent


@njit
def measure_rows(descriptor, work, rows, arguments, places):
    """Measure the sums of rows, those with the same arguments together.

    Args:
        descriptor: That of the function.
        work: The memory of the call.
        rows: The number of rows.
        arguments: How many of the arguments, the first ones, are those of the sum.
        places: The address of two words for every row, written: where its sum begins, as if all were written one after
            the other, and how many elements it has; -1 for a row without a sum.

    Returns:
        The number of all elements, or an error code; and how many runs of rows share arguments.
    """
    total, runs, first = word(0), 0, 0
    while first < rows and total >= 0:
        end = end_of_run(descriptor, work, first, rows, arguments, _first_argument(descriptor) + _ROW)
        total = _measure_run(descriptor, work, (first, end), arguments, array_at(places, 2 * end, word), total)
        first, runs = end, runs + 1
    return total, runs


@njit
def compute_rows(descriptor, work, rows, runs, arguments, places, out):
    """Compute the sums of a range of rows at their places from `out` on; returns 0 or an error code.

    `runs` is what `measure_rows` returned for all rows.
    """
    code, (first, end) = word(0), rows
    while first < end and code == 0:
        varying = _first_argument(descriptor) + _ROW
        stop = end if runs == 1 else end_of_run(descriptor, work, first, end, arguments, varying)
        if _has_result(descriptor, work, first, arguments):
            code = _compute_run(descriptor, work, (first, stop), arguments, places, out)
        first = stop
    return code


@njit
def _has_result(descriptor, work, row, arguments):
    """Whether no argument is NULL, but for the handle of the only array."""
    array = _first_argument(descriptor) + _ARRAY
    for index in range(arguments):
        is_only_array = index == array and _size_argument(arguments) == array + 1
        if not is_only_array and not argument_is_valid(work, index, row):
            return False
    return True


@njit
def _size_argument(arguments):
    """Return the number of the argument that is the size of a row; the fill or the start comes last."""
    return arguments - 2


@njit
def _measure_run(descriptor, work, rows, arguments, entries, total):
    """Write where the sums of rows begin, from `total` on, and how long they are; returns their end, or a code."""
    first, end = rows
    if not _has_result(descriptor, work, first, arguments):
        for row in range(first, end):
            entries[2 * row], entries[2 * row + 1] = total, -1
        return total
    start = _first_argument(descriptor)
    code = pin_block(descriptor, work, work + 8 * _PIN_OF_ENTRIES, start + _ENTRIES, first)
    if code < 0:
        return code
    size, limit = integer_at(work, _size_argument(arguments), first), descriptor[d.LIMIT_BYTES]
    if size < 0 or size > _LARGEST_SIZE:
        report(work, size, 0)
        return d.BAD_SIZE
    block = pinned_address(work + 8 * _PIN_OF_ENTRIES)
    count = array_at(block, c.BLOCK_WORDS, word)[c.BLOCK_ROWS]
    starts = array_at(block + 8 * c.BLOCK_WORDS, count + 1, word)
    numbers = array_at(value_address(work, start + _ROW, 0, 8), end, word)
    outside = find_outside(numbers[first:], count)
    if outside >= 0:
        report(work, numbers[first + outside], 0, count - 1)
        return d.OUTSIDE_ROWS
    for row in range(first, end):
        number = _bits(numbers[_bits(row)])
        is_filled = word(starts[number + _bits(1)] > starts[number])
        entries[2 * row], entries[2 * row + 1] = total, is_filled * (size + 1) - 1
        total += is_filled * size
    item_bytes = descriptor[d.RESULT_BYTES]
    if total > limit // item_bytes:
        report(work, total * item_bytes, limit)
        return d.RESULT_TOO_LARGE
    return total


@njit
def _compute_run(descriptor, work, rows, arguments, places, out):
    (first, end), start = rows, _first_argument(descriptor)
    code = pin_block(descriptor, work, work + 8 * _PIN_OF_ENTRIES, start + _ENTRIES, first)
    if code == 0:
        code = _read_operands(descriptor, work, first, arguments)
    if code < 0:
        return code
    operands = array_at(work + 8 * ROW, d.ROW_WORDS, word)
    operands[2 * _ROWS], operands[2 * _ROWS + 1] = value_address(work, start + _ROW, first, 8), end - first
    operands[2 * _RESULTS], operands[2 * _RESULTS + 1] = places + 16 * first, 2 * (end - first)
    return compute(descriptor, work, work + 8 * ROW, out, end - first)


@njit
def _read_operands(descriptor, work, row, arguments):
    """Write the operands of the kernel that rows share; returns 0 or an error code."""
    operands, item_bytes = array_at(work + 8 * ROW, d.ROW_WORDS, word), descriptor[d.RESULT_BYTES]
    block, end = pinned_address(work + 8 * _PIN_OF_ENTRIES), _size_argument(arguments)
    size = integer_at(work, end, row)
    write_block(operands, 2 * _STARTS, block, item_bytes)
    operands[2 * _START], operands[2 * _START + 1] = value_address(work, end + 1, row, item_bytes), 1
    array = _first_argument(descriptor) + _ARRAY
    if array > _ARRAY:
        read_text(value_address(work, 0, row, 16), operands[2 * _SEMIRING :])
    if not argument_is_valid(work, array, row):
        return _read_fills(work, operands, item_bytes, size)
    positions, elements = word(1), word(0)
    for index in range(end - array):
        elements = _read_array(descriptor, work, integer_at(work, array + index, row), index, operands)
        if elements < 0:
            return elements
        positions *= elements // max(size, 1)
    bound = array_at(block, c.BLOCK_WORDS, word)[c.BLOCK_BOUND]
    if bound > positions and size > 0:
        report(work, bound - 1, size, elements)
        return d.OUTSIDE_RESIDENT
    return 0


@njit
def _read_array(descriptor, work, handle, index, operands):
    """Write the operand of the kernel that is a resident array; returns its elements or an error code."""
    kind = descriptor[d.ELEMENT_TYPE]
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
def release_operands(work):
    """Release what `measure_rows` and `compute_rows` left in the memory of a call."""
    unpin(work + 8 * _PIN_OF_ENTRIES)
    unpin(work + 8 * _PIN_OF_ARRAY)
    unpin(work + 8 * (_PIN_OF_ARRAY + PIN_WORDS))
    free(array_at(work + 8 * _FILLS, 1, word)[0])
    return 0


gather_rows = scalar_callback("gather_rows", _gather_rows, release_operands)

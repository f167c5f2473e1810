"""Kernels: the callback of PostgreSQL's function that computes inner products of rows of two arrays in one call.

The first argument are tuples with two keys each, as `tensor_collected` returns them, then come the arrays themselves.
The result are the same tuples, the number of each times the inner product of the rows that its keys name.
"""

from numba import njit

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.fetched_rows import ROWS_AHEAD, fetch_row
from sparseeinsum.kernels.compiled.kernel_calls import NULL_ROW, ROW, compute, copy_bytes, report, word
from sparseeinsum.kernels.compiled.postgresql.compressed_values import item_bytes_of, operands_of
from sparseeinsum.kernels.compiled.postgresql.datums import (
    BYTES_HEADER,
    allocate_huge,
    descriptor_at,
    new_bytes,
    null_result,
    raise_error,
    read_row,
    word_at,
    work_of,
)
from sparseeinsum.kernels.compiled.raw_memory import array_at

contraction = load_kernels("contraction")

_LARGEST_SIZE = 1 << 40
_TUPLES_BETWEEN_PAUSES = 1 << 12

_TUPLES, _LEFT, _RIGHT, _POSITIONS, _SIZE = range(5)  # the arguments
_SCALE, _ROW, _OTHER_ROW = range(3)  # the operands of the kernel


@njit
def postgres_scaled_dots(call_info, description):
    """Return the tuples with their products as bytes."""
    descriptor, work = descriptor_at(description), work_of(call_info)
    code = read_row(call_info, 0, descriptor, work)
    if code == NULL_ROW:
        return null_result(call_info)
    code = _check(descriptor, work) if code == 0 else word(code)
    value = _products(descriptor, work) if code == 0 else code
    return raise_error(descriptor, work, value) if value < 0 else value


@njit
def _check(descriptor, work):
    """Return 0 if the tuples and the numbers among the arguments are valid, else an error code."""
    operands, tuple_bytes = operands_of(work), 8 + item_bytes_of(descriptor)
    bytes_of_all, positions = operands[2 * _TUPLES + 1], word_at(operands[2 * _POSITIONS])
    size = word_at(operands[2 * _SIZE])
    if bytes_of_all % tuple_bytes != 0:
        report(work, bytes_of_all, tuple_bytes)
        return word(d.PART_OF_AN_ELEMENT)
    if positions <= 0:
        report(work, positions, 1)
        return word(d.WRONG_POSITIONS)
    if size < 0 or size > _LARGEST_SIZE:
        report(work, size, 0)
        return word(d.BAD_SIZE)
    return word(0)


@njit
def _products(descriptor, work):
    """Return a bytea of the tuples with their products, or an error code."""
    operands, item_bytes = operands_of(work), item_bytes_of(descriptor)
    tuples, bytes_of_all = operands[2 * _TUPLES], operands[2 * _TUPLES + 1]
    positions, count = word_at(operands[2 * _POSITIONS]), bytes_of_all // (8 + item_bytes)
    left, right = operands[2 * _LEFT], operands[2 * _RIGHT]
    elements, other_elements = operands[2 * _LEFT + 1], operands[2 * _RIGHT + 1]
    size = word_at(operands[2 * _SIZE])
    row_bytes, least = size * item_bytes, max(size, 1)
    value = new_bytes(descriptor, work, bytes_of_all)
    if value < 0:
        return value
    numbers, scales = allocate_huge(8 * count + 8), allocate_huge(item_bytes * count + 8)
    copy_bytes(numbers, tuples, 8 * count)
    copy_bytes(scales, tuples + 8 * count, item_bytes * count)
    places = array_at(numbers, count, word)
    operands[2 * _SCALE + 1], operands[2 * _ROW + 1], operands[2 * _OTHER_ROW + 1] = 1, size, size
    code = word(0)
    for entry in range(count):
        row = places[entry] // positions
        other_row = places[entry] - row * positions
        if row < 0 or (size > 0 and row >= elements // least):
            report(work, row, size, elements)
            return word(d.OUTSIDE_RESIDENT)
        if size > 0 and other_row >= other_elements // least:
            report(work, other_row, size, other_elements)
            return word(d.OUTSIDE_RESIDENT)
        if entry + ROWS_AHEAD < count:
            later_row = places[entry + ROWS_AHEAD] // positions
            later_other = places[entry + ROWS_AHEAD] - later_row * positions
            if 0 <= later_row < elements // least and later_other < other_elements // least:
                fetch_row(left + later_row * row_bytes, row_bytes)
                fetch_row(right + later_other * row_bytes, row_bytes)
        out = scales + entry * item_bytes
        operands[2 * _SCALE], operands[2 * _ROW] = out, left + (row * row_bytes if size > 0 else 0)
        operands[2 * _OTHER_ROW] = right + (other_row * row_bytes if size > 0 else 0)
        code = min(code, word(compute(descriptor, work, work + 8 * ROW, out, 1)))
        if entry % _TUPLES_BETWEEN_PAUSES == 0 and contraction.is_interrupted():
            return word(contraction.INTERRUPTED)
    copy_bytes(value + BYTES_HEADER, numbers, 8 * count)
    copy_bytes(value + BYTES_HEADER + 8 * count, scales, item_bytes * count)
    return value if code == 0 else code

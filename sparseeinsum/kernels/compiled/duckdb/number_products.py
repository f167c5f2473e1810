"""Kernels: the callback of DuckDB's function that computes numbers of a product of a sparse matrix and a sparse vector.

The arguments are the text of a semiring, a handle of compressed entries, a row of these, a handle of the vector, whose
rows are the positions of the first and hold numbers at position 0, and the number that sums start from. A row without
products gives NULL, and so does a NULL handle, which stands for no entries.
"""

from numba import njit

from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.block_layout import write_block
from sparseeinsum.kernels.compiled.duckdb.callbacks import scalar_callback
from sparseeinsum.kernels.compiled.duckdb.compressed_blocks import pin_block
from sparseeinsum.kernels.compiled.duckdb.pins import PIN_WORDS, pinned_address, unpin
from sparseeinsum.kernels.compiled.duckdb.runs import end_of_run, find_outside
from sparseeinsum.kernels.compiled.duckdb.vectors import (
    FIRST_ROW,
    clear_valid,
    get_data,
    read_row,
    value_address,
    word,
    writable_validity,
)
from sparseeinsum.kernels.compiled.kernel_calls import NULL_ROW, ROW, compute, report
from sparseeinsum.kernels.compiled.raw_memory import array_at

_MATRIX, _ROW, _VECTOR, _START = range(1, 5)  # the arguments after the semiring

# The memory of a call, in words, from FIRST_ROW on, where this callback reads no row: two pins, what a kernel needs to
# write numbers, and the validity of some of them.
_PIN_OF_MATRIX = FIRST_ROW
_PIN_OF_VECTOR = _PIN_OF_MATRIX + PIN_WORDS
_PRODUCT = _PIN_OF_VECTOR + PIN_WORDS
_VALID = _PRODUCT + c.NUMBERS_WORDS

_TOGETHER = 64  # rows of a call of the kernel, so that their validity is one word
# The operands of the kernel after the semiring: numbers of rows; where rows of the matrix begin, its positions and
# numbers; where rows of the vector begin, and its numbers; what sums start from.
_ROWS, _OF_MATRIX, _OF_VECTOR, _FIRST = 1, 2, 5, 7


@njit
def _multiply_numbers(descriptor, work, rows, result):
    """Compute the numbers of rows, those with the same arguments one after the other."""
    validity, first, code = writable_validity(result), 0, word(0)
    while first < rows and code == 0:
        end = end_of_run(descriptor, work, first, rows, descriptor[d.ARGUMENTS], _ROW)
        code = read_row(descriptor, work, first, work + 8 * ROW)
        if code == NULL_ROW:
            code = 0
            for row in range(first, end):
                clear_valid(validity, row)
        elif code == 0:
            code = _read_operands(descriptor, work, first, end)
            if code == 0:
                code = _multiply_run(descriptor, work, first, end, result, validity)
        first = end
    return code


@njit
def _multiply_run(descriptor, work, first, end, result, validity):
    operands, product = (
        array_at(work + 8 * ROW, d.ROW_WORDS, word),
        array_at(work + 8 * _PRODUCT, c.NUMBERS_WORDS, word),
    )
    valid = array_at(work + 8 * _VALID, 1, word)
    for begin in range(first, end, _TOGETHER):
        count = min(end - begin, _TOGETHER)
        operands[2 * _ROWS], operands[2 * _ROWS + 1] = value_address(work, _ROW, begin, 8), count
        product[c.NUMBERS] = get_data(result) + begin * descriptor[d.RESULT_BYTES]
        product[c.VALIDITY], valid[0] = work + 8 * _VALID, -1
        code = compute(descriptor, work, work + 8 * ROW, work + 8 * _PRODUCT, count)
        if code < 0:
            return code
        for index in range(count if valid[0] != -1 else 0):
            if (valid[0] >> index) & 1 == 0:
                clear_valid(validity, begin + index)
    return 0


@njit
def _read_operands(descriptor, work, first, end):
    """Write the operands of the kernel after the semiring that rows share; returns 0 or an error code."""
    item_bytes = descriptor[d.HEADER + 2 * _START + 1]
    code = pin_block(descriptor, work, work + 8 * _PIN_OF_MATRIX, _MATRIX, first)
    if code == 0:
        code = pin_block(descriptor, work, work + 8 * _PIN_OF_VECTOR, _VECTOR, first)
    if code < 0:
        return code
    matrix, vector = pinned_address(work + 8 * _PIN_OF_MATRIX), pinned_address(work + 8 * _PIN_OF_VECTOR)
    head, vector_head = array_at(matrix, c.BLOCK_WORDS, word), array_at(vector, c.BLOCK_WORDS, word)
    numbers = array_at(value_address(work, _ROW, first, 8), end - first, word)
    outside = find_outside(numbers, head[c.BLOCK_ROWS])
    if outside >= 0:
        report(work, numbers[outside], 0, head[c.BLOCK_ROWS] - 1)
        return d.OUTSIDE_ROWS
    if head[c.BLOCK_BOUND] > vector_head[c.BLOCK_ROWS]:
        report(work, head[c.BLOCK_BOUND] - 1, 0, vector_head[c.BLOCK_ROWS] - 1)
        return d.OUTSIDE_ROWS
    if vector_head[c.BLOCK_BOUND] > 1:
        report(work, vector_head[c.BLOCK_BOUND] - 1, 0)
        return d.NOT_A_VECTOR
    operands = array_at(work + 8 * ROW, d.ROW_WORDS, word)
    write_block(operands, 2 * _OF_MATRIX, matrix, item_bytes)
    write_block(operands, 2 * _OF_VECTOR, vector, item_bytes)
    for index in range(2 * _FIRST - 2, 2 * _FIRST):  # the positions of the vector are all 0
        operands[index] = operands[index + 2]
    if vector_head[c.BLOCK_LONGEST] == 1 and vector_head[c.BLOCK_ENTRIES] == vector_head[c.BLOCK_ROWS]:
        operands[2 * _OF_VECTOR + 1] = 0  # every row has one number: where they begin need not be read
    operands[2 * _FIRST], operands[2 * _FIRST + 1] = value_address(work, _START, first, item_bytes), 1
    return 0


@njit
def _release(work):
    unpin(work + 8 * _PIN_OF_MATRIX)
    unpin(work + 8 * _PIN_OF_VECTOR)
    return 0


multiply_numbers = scalar_callback("multiply_numbers", _multiply_numbers, _release)

"""Kernels: the callbacks of PostgreSQL's functions that multiply all compressed entries by a dense matrix.

The arguments are those that sparse_operands.py lists, with the entries themselves in place of a handle. NULL for
entries stands for none; another NULL gives NULL.
"""

from numba import njit

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.kernel_calls import ROW, word
from sparseeinsum.kernels.compiled.postgresql.compressed_values import checked_block, item_bytes_of, operands_of
from sparseeinsum.kernels.compiled.postgresql.datums import (
    FLAT_HEADER,
    descriptor_at,
    is_null,
    new_array,
    null_result,
    raise_error,
    read_present,
    word_at,
    work_of,
)
from sparseeinsum.kernels.compiled.sparse_operands import (
    ARRAY,
    ENTRIES,
    OTHER_NUMBERS,
    ROWS,
    SIZE,
    check_block,
    check_shape,
    replace_numbers,
    write_array,
    write_entries_of,
)
from sparseeinsum.kernels.compiled.threads import compute_on_threads


@njit
def _multiply(call_info, description, is_transposed):
    descriptor, work = descriptor_at(description), work_of(call_info)
    code = read_present(call_info, descriptor, work)
    for argument in range(ROWS, descriptor[d.ARGUMENTS]):
        if is_null(call_info, argument):
            return null_result(call_info)
    array = _product(descriptor, work, is_transposed, not is_null(call_info, ENTRIES)) if code == 0 else word(code)
    return raise_error(descriptor, work, array) if array < 0 else array


@njit
def _product(descriptor, work, is_transposed, has_entries):
    """Return the array of the product of the arguments, or an error code."""
    operands = operands_of(work)
    rows, size = word_at(operands[2 * ROWS]), word_at(operands[2 * SIZE])
    array, elements, size_address = operands[2 * ARRAY], operands[2 * ARRAY + 1], operands[2 * SIZE]
    numbers, count = operands[2 * OTHER_NUMBERS], operands[2 * OTHER_NUMBERS + 1]
    code, block = check_shape(descriptor, work, rows, size), word(0)
    if code == 0 and has_entries:
        block = checked_block(descriptor, work, ENTRIES)
        code = check_block(work, block, rows, size, elements, is_transposed) if block >= 0 else block
    if code < 0:
        return code
    entries = write_entries_of(work, block, item_bytes_of(descriptor))
    if descriptor[d.ARGUMENTS] > OTHER_NUMBERS:
        code = replace_numbers(work, numbers, count)
    write_array(work, array, elements, size_address)
    result = new_array(descriptor, work, rows * size) if code == 0 else code
    if result < 0:
        return result
    row, out = work + 8 * ROW, result + FLAT_HEADER
    code = compute_on_threads(descriptor, work, row, out, rows * size, max(entries, rows) * size)
    return code if code < 0 else result


@njit
def postgres_sparse_matmul(call_info, description):
    """Return the product of the entries and the array."""
    return _multiply(call_info, description, False)


@njit
def postgres_sparse_matmul_transposed(call_info, description):
    """Return the product of the transpose of the entries and the array."""
    return _multiply(call_info, description, True)

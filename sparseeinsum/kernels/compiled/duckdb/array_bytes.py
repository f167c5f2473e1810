"""Kernels: the callbacks of DuckDB's functions that convert arrays to bytes, and bytes to arrays."""

from numba import njit, types

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.duckdb.callbacks import scalar_callback
from sparseeinsum.kernels.compiled.duckdb.vectors import (
    get_child,
    get_data,
    read_row,
    reserve_elements,
    set_null,
    word,
    write_entry,
)
from sparseeinsum.kernels.compiled.kernel_calls import NULL_ROW, ROW, copy_bytes, report
from sparseeinsum.kernels.compiled.raw_memory import array_at

_MOST_BYTES = (1 << 32) - 1  # of a BLOB: its length has 32 bits

_set_bytes = types.ExternalFunction("duckdb_vector_assign_string_element_len", types.void(word, word, word, word))


@njit
def _compute_bytes(descriptor, work, rows, result):
    """Return the bytes of arrays."""
    argument = array_at(work + 8 * ROW, 2, word)
    for index in range(rows):
        code = read_row(descriptor, work, index, work + 8 * ROW)
        if code == NULL_ROW:
            set_null(result, index)
            continue
        size = argument[1] * descriptor[d.HEADER + 1]
        if code == 0 and size > _MOST_BYTES:
            report(work, size, _MOST_BYTES)
            code = d.RESULT_TOO_LARGE
        if code < 0:
            return code
        _set_bytes(result, index, argument[0], size)
    return 0


array_bytes = scalar_callback("array_bytes", _compute_bytes)


@njit
def _compute_arrays(descriptor, work, rows, result):
    """Return the arrays of bytes."""
    for index in range(rows):
        code = read_row(descriptor, work, index, work + 8 * ROW)
        if code == 0:
            code = _write_array(descriptor, work, rows, index, result)
        elif code == NULL_ROW:
            set_null(result, index)
            write_entry(descriptor, array_at(get_data(result), 2 * rows, word), index, 0, 0)
            code = 0
        if code < 0:
            return code
    return 0


@njit
def _write_array(descriptor, work, rows, index, result):
    argument, item_bytes = array_at(work + 8 * ROW, 2, word), descriptor[d.RESULT_BYTES]
    size = argument[1] // item_bytes
    if argument[1] % item_bytes != 0:
        report(work, argument[1], item_bytes)
        return d.PART_OF_AN_ELEMENT
    start = reserve_elements(descriptor, work, result, size)
    if start < 0:
        return start
    write_entry(descriptor, array_at(get_data(result), 2 * rows, word), index, start, size)
    copy_bytes(get_data(get_child(result)) + start * item_bytes, argument[0], argument[1])
    return 0


array_of_bytes = scalar_callback("array_of_bytes", _compute_arrays)

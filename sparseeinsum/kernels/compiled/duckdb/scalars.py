"""Kernels: the callbacks of DuckDB's scalar functions, which run the kernel that their descriptor names.

The callbacks follow duckdb_scalar_function_t of `duckdb.h`: (info, chunk, result), all addresses.
"""

from numba import njit, types

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.duckdb.callbacks import keep_threads, scalar_callback
from sparseeinsum.kernels.compiled.duckdb.threads import (
    compute_all_rows,
    compute_batch_on_threads,
)
from sparseeinsum.kernels.compiled.duckdb.vectors import (
    FIRST_ROW,
    get_child,
    get_data,
    get_list_size,
    get_rows,
    get_vector,
    merge_rows,
    prepare_batch,
    read_row,
    reserve,
    reserve_elements,
    set_list_size,
    set_null,
    start_work,
    word,
    write_entry,
)
from sparseeinsum.kernels.compiled.kernel_calls import (
    NULL_ROW,
    ROW,
    compute,
    measure,
    part_size,
    report,
)
from sparseeinsum.kernels.compiled.raw_memory import array_at, free
from sparseeinsum.kernels.compiled.threads import compute_array

_extra_info = types.ExternalFunction("duckdb_scalar_function_get_extra_info", word(word))
_reference = types.ExternalFunction("duckdb_vector_reference_vector", types.void(word, word))


@njit
def _compute_values(descriptor, work, rows, result):
    """Compute a scalar function that returns a number."""
    out, item_bytes, row = get_data(result), descriptor[d.RESULT_BYTES], work + 8 * ROW
    if descriptor[d.BATCH] != 0 and rows > 1 and prepare_batch(descriptor, work, rows):
        code = measure(descriptor, work, work + 8 * FIRST_ROW)
        if code < 0:
            return code
        code = compute_batch_on_threads(descriptor, work, rows, out, 1)
        if code != 0:
            return min(code, 0)
    for index in range(rows):
        code = read_row(descriptor, work, index, row)
        if code == NULL_ROW:
            set_null(result, index)
            continue
        if code == 0:
            code = measure(descriptor, work, row)
        if code >= 0:
            code = compute(descriptor, work, row, out + index * item_bytes, 1)
        if code < 0:
            return code
    return 0


scalar_value = scalar_callback("scalar_value", _compute_values)


@njit
def _compute_arrays(descriptor, work, rows, result):
    """Compute a scalar function that returns an array."""
    if descriptor[d.BATCH] != 0 and rows > 1 and prepare_batch(descriptor, work, rows):
        return _compute_batch_lists(descriptor, work, rows, result)
    code = _measure_lists(descriptor, work, rows, result)
    return _compute_lists(descriptor, work, rows, result) if code >= 0 else code


@njit
def _compute_batch_lists(descriptor, work, rows, result):
    """Compute all rows in one batch: their results have equal sizes and are adjacent."""
    size = measure(descriptor, work, work + 8 * FIRST_ROW)
    if size < 0:
        return size
    start = reserve_elements(descriptor, work, result, rows * size)
    if start < 0:
        return start
    entries = array_at(get_data(result), 2 * rows, word)
    for index in range(rows):
        write_entry(descriptor, entries, index, start + index * size, size)
    out = get_data(get_child(result)) + start * descriptor[d.RESULT_BYTES]
    return compute_all_rows(descriptor, work, rows, out, size)


scalar_list = scalar_callback("scalar_list", _compute_arrays)


@njit
def checked_value(info, chunk, result):
    """Compute a check: return the second argument, a number, unchanged, or fail."""
    if not _refer_to_checked(info, chunk, result):
        scalar_value(info, chunk, result)
    return 0


@njit
def checked_list(info, chunk, result):
    """Compute a check: return the second argument, an array, unchanged, or fail."""
    if not _refer_to_checked(info, chunk, result):
        scalar_list(info, chunk, result)
    return 0


@njit
def _refer_to_checked(info, chunk, result):
    """Check all rows and return the argument's vector as result; False if a row fails or has a NULL argument."""
    descriptor = array_at(_extra_info(info), d.DESCRIPTOR_WORDS, word)
    work = start_work(chunk, descriptor)
    if work == 0:
        return False
    rows, row, can_refer = get_rows(chunk), work + 8 * ROW, True
    keep_threads(info, descriptor, work)
    is_merged = merge_rows(descriptor, work, rows, 1)
    for index in range(1 if is_merged else rows):
        code = word(0) if is_merged else read_row(descriptor, work, index, row)
        if code == 0:
            code = compute_array(descriptor, work, row, 0, 0)
        can_refer = can_refer and code == 0
    if can_refer:
        _reference(result, get_vector(chunk, 1))
    free(work)
    return can_refer


@njit
def _measure_lists(descriptor, work, rows, result):
    """Write the sizes of all rows to the entries of a list vector and reserve memory; returns 0 or an error code."""
    entries, row = array_at(get_data(result), 2 * rows, word), work + 8 * ROW
    limit = descriptor[d.LIMIT_BYTES] // descriptor[d.RESULT_BYTES]
    elements = 0
    for index in range(rows):
        code = read_row(descriptor, work, index, row)
        size = 0
        if code == 0:
            size = measure(descriptor, work, row)
        elif code == NULL_ROW:
            set_null(result, index)
        else:
            return code
        if size < 0:
            return size
        entries[2 * index], entries[2 * index + 1] = elements, size
        if size > limit - elements:
            report(work, (elements + size) * descriptor[d.RESULT_BYTES], descriptor[d.LIMIT_BYTES])
            return d.RESULT_TOO_LARGE
        elements += size
    start = reserve_elements(descriptor, work, result, elements)
    for index in range(rows if start >= 0 else 0):
        write_entry(descriptor, entries, index, start + entries[2 * index], entries[2 * index + 1])
    return min(start, 0)


@njit
def _compute_lists(descriptor, work, rows, result):
    entries, row = array_at(get_data(result), 2 * rows, word), work + 8 * ROW
    out, lanes = get_data(get_child(result)), descriptor[d.RESULT_LANES]
    for index in range(rows):
        if read_row(descriptor, work, index, row) == 0:
            measure(descriptor, work, row)  # restores the plan and the program of this row in scratch memory
            at = out + entries[2 * index] // lanes * descriptor[d.RESULT_BYTES]
            size = entries[2 * index + 1] // lanes
            code = compute_array(descriptor, work, row, at, size)
            if code < 0:
                return code
    return 0


@njit
def _split_rows(descriptor, work, rows, result):
    """Compute a scalar function that returns an array of arrays: its first argument, split into parts."""
    row = work + 8 * ROW
    for index in range(rows):
        code = read_row(descriptor, work, index, row)
        if code == 0:
            code = _split_row(descriptor, work, row, index, result)
        elif code == NULL_ROW:
            set_null(result, index)
        if code < 0:
            return code
    return 0


@njit
def _split_row(descriptor, work, row, index, result):
    part_count = measure(descriptor, work, row)
    if part_count < 0:
        return part_count
    elements = array_at(row, 2, word)[1]
    inner = get_child(result)
    first_part = _reserve_parts(descriptor, work, result, part_count)
    start = reserve_elements(descriptor, work, inner, elements) if first_part >= 0 else first_part
    if start < 0:
        return start
    entries = array_at(get_data(result) + 16 * index, 2, word)
    entries[0], entries[1] = first_part, part_count
    inner_entries, at = array_at(get_data(inner) + 16 * first_part, 2 * part_count, word), start
    for part in range(part_count):
        size = part_size(descriptor, work, row, part, part_count)
        write_entry(descriptor, inner_entries, part, at, size)
        at += size
    out = get_data(get_child(inner)) + start * descriptor[d.RESULT_BYTES]
    return compute(descriptor, work, row, out, elements)


@njit
def _reserve_parts(descriptor, work, result, part_count):
    start = get_list_size(result)
    if start + part_count > descriptor[d.LIMIT_BYTES] // 16:
        report(work, (start + part_count) * 16, descriptor[d.LIMIT_BYTES])
        return d.RESULT_TOO_LARGE
    if reserve(result, start + part_count) != 0 or set_list_size(result, start + part_count) != 0:
        report(work, part_count * 16, 0)
        return d.OUT_OF_MEMORY
    return start


scalar_lists = scalar_callback("scalar_lists", _split_rows)

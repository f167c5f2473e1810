"""Kernels: the callback of DuckDB's functions that read resident arrays; a result refers to the array if it can.

The arguments are a handle, a position, the number of elements in a row of the array, and the fill. A NULL handle stands
for an array without stored entries: all elements are the fill.
"""

from numba import njit

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.duckdb.callbacks import scalar_callback
from sparseeinsum.kernels.compiled.duckdb.pins import pin, pinned_address, unpin
from sparseeinsum.kernels.compiled.duckdb.vectors import (
    argument_is_valid,
    get_child,
    get_data,
    integer_at,
    reserve_elements,
    set_list_size,
    set_null,
    value_address,
    word,
    write_entry,
)
from sparseeinsum.kernels.compiled.kernel_calls import ROW, copy_bytes, report
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.compiled.resident_access import share

_HANDLE, _POSITION, _SIZE, _FILL = 0, 1, 2, 3

_NONE, _ONE, _SEVERAL = 0, 1, 2  # how many arrays the rows of a chunk read


@njit
def _view_rows(descriptor, work, rows, result):
    """Compute a function that returns rows of resident arrays."""
    if _count_arrays(work, rows) == _ONE:
        return _refer_to_rows(descriptor, work, rows, result)
    return _copy_rows(descriptor, work, rows, result)


@njit
def _has_result(work, row):
    """Whether the row has a result: no argument but the handle may be NULL."""
    for index in range(_POSITION, _FILL + 1):
        if not argument_is_valid(work, index, row):
            return False
    return True


@njit
def _count_arrays(work, rows):
    """Return whether rows with results read no array, one or several; a NULL handle counts as several."""
    count, first_handle, has_handle = _NONE, word(0), False
    for row in range(rows):
        if _has_result(work, row):
            handle = word(0)
            if argument_is_valid(work, _HANDLE, row):
                handle = integer_at(work, _HANDLE, row)
            if not has_handle:
                first_handle, has_handle = handle, True
                count = _ONE if handle != 0 else _SEVERAL
            elif handle != first_handle:
                return _SEVERAL
    return count


@njit
def _first_handle(work, rows):
    for row in range(rows):
        if _has_result(work, row):
            return integer_at(work, _HANDLE, row)
    return 0


@njit
def _check_place(work, position, size, elements):
    """Return 0, or an error code unless row `position`, of rows of `size` elements, is inside an array."""
    if size < 0:
        report(work, size, 0)
        return d.BAD_SIZE
    if position < 0 or (size > 0 and position >= elements // size):
        report(work, position, size, elements)
        return d.OUTSIDE_RESIDENT
    return 0


@njit
def _refer_to_rows(descriptor, work, rows, result):
    """Compute rows that all read one array: the child of the result vector refers to this array."""
    handle = _first_handle(work, rows)
    elements = share(handle, descriptor[d.ELEMENT_TYPE], get_child(result))
    if elements < 0:
        report(work, handle, 0)
        return elements
    set_list_size(result, elements)
    entries = array_at(get_data(result), 2 * rows, word)
    for row in range(rows):
        position, size = word(0), word(0)
        if _has_result(work, row):
            position, size = integer_at(work, _POSITION, row), integer_at(work, _SIZE, row)
            code = _check_place(work, position, size, elements)
            if code < 0:
                return code
        else:
            set_null(result, row)
        write_entry(descriptor, entries, row, position * size, size)
    return 0


@njit
def _copy_rows(descriptor, work, rows, result):
    """Copy rows of several arrays, or of none, one after the other."""
    entries, item_bytes = array_at(get_data(result), 2 * rows, word), descriptor[d.RESULT_BYTES]
    limit, total = descriptor[d.LIMIT_BYTES] // item_bytes, word(0)
    for row in range(rows):
        size = word(0)
        if _has_result(work, row):
            size = integer_at(work, _SIZE, row)
            if size < 0 or size > limit - total:
                report(work, size if size < 0 else (total + size) * item_bytes, descriptor[d.LIMIT_BYTES])
                return d.BAD_SIZE if size < 0 else d.RESULT_TOO_LARGE
        else:
            set_null(result, row)
        write_entry(descriptor, entries, row, total, size)
        total += size
    start = reserve_elements(descriptor, work, result, total)
    if start < 0:
        return start
    out, code = get_data(get_child(result)), 0
    for row in range(rows):
        if _has_result(work, row):
            entries[2 * row] += start
            target = out + entries[2 * row] * item_bytes
            code = _copy_row(descriptor, work, row, target, entries[2 * row + 1])
            if code < 0:
                break
    unpin(work + 8 * ROW)
    return code


@njit
def _copy_row(descriptor, work, row, target, size):
    """Copy one row of its array, or `size` fills if the handle is NULL; returns 0 or an error code."""
    item_bytes, position = descriptor[d.RESULT_BYTES], integer_at(work, _POSITION, row)
    if not argument_is_valid(work, _HANDLE, row):
        if position < 0:
            report(work, position, size, 0)
            return d.OUTSIDE_RESIDENT
        for index in range(size):
            copy_bytes(target + index * item_bytes, value_address(work, _FILL, row, item_bytes), item_bytes)
        return 0
    handle, kind, place = integer_at(work, _HANDLE, row), descriptor[d.ELEMENT_TYPE], work + 8 * ROW
    elements = pin(place, handle, kind, kind)
    if elements < 0:
        report(work, handle, 0)
        return elements
    code = _check_place(work, position, size, elements)
    if code == 0:
        copy_bytes(target, pinned_address(place) + position * size * item_bytes, size * item_bytes)
    return code


view_rows = scalar_callback("view_rows", _view_rows)

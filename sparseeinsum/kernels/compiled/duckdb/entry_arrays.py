"""Kernels: the callbacks of DuckDB's functions that return an array with an element for every compressed entry.

The first argument is a handle of compressed entries; a NULL handle stands for no entries. The second one is a number,
which is not read, where the elements are the numbers of the entries, and otherwise an array that they come from.
"""

from numba import njit, types

from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.block_layout import offset_of_numbers, offset_of_positions
from sparseeinsum.kernels.compiled.duckdb.callbacks import scalar_callback
from sparseeinsum.kernels.compiled.duckdb.compressed_blocks import pin_block, pin_block_of_any_type
from sparseeinsum.kernels.compiled.duckdb.pins import pinned_address, unpin
from sparseeinsum.kernels.compiled.duckdb.vectors import (
    FIRST_ROW,
    argument_is_valid,
    array_of_row,
    get_child,
    get_data,
    reserve_elements,
    set_null,
    word,
    write_entry,
)
from sparseeinsum.kernels.compiled.kernel_calls import copy_bytes, report
from sparseeinsum.kernels.compiled.raw_memory import array_at

_ENTRIES, _ARRAY = range(2)  # the arguments
_PIN = FIRST_ROW  # words of the work memory, in which these callbacks have no first row
_NUMBERS, _AT_ROWS, _AT_POSITIONS = range(3)  # what elements are

_half_word = types.int32


@njit
def _compute_rows(descriptor, work, rows, result, source):
    for index in range(rows):
        code = _compute_row(descriptor, work, index, result, source)
        if code < 0:
            return code
    return 0


@njit
def _compute_row(descriptor, work, index, result, source):
    """Write the array for one row of the vectors; returns 0 or an error code."""
    entries = array_at(get_data(result), 2 * (index + 1), word)
    write_entry(descriptor, entries, index, 0, 0)
    if source != _NUMBERS and not argument_is_valid(work, _ARRAY, index):
        set_null(result, index)
        return 0
    if not argument_is_valid(work, _ENTRIES, index):
        return 0
    if source == _NUMBERS:
        code = pin_block(descriptor, work, work + 8 * _PIN, _ENTRIES, index)
    else:
        code = pin_block_of_any_type(work, work + 8 * _PIN, _ENTRIES, index)
    if code < 0:
        return code
    block, item_bytes = pinned_address(work + 8 * _PIN), descriptor[d.RESULT_BYTES]
    head = array_at(block, c.BLOCK_WORDS, word)
    count = head[c.BLOCK_ENTRIES]
    start = reserve_elements(descriptor, work, result, count)
    if start < 0:
        return start
    write_entry(descriptor, entries, index, start, count)
    out = get_data(get_child(result)) + start * item_bytes
    if source == _NUMBERS:
        copy_bytes(out, block + offset_of_numbers(head[c.BLOCK_ROWS], count), count * item_bytes)
        return 0
    return _copy_elements(work, index, block, item_bytes, out, source == _AT_ROWS)


@njit
def _copy_elements(work, index, block, item_bytes, out, is_at_rows):
    """Copy an element of the array for every entry; returns 0 or an error code."""
    source, elements = array_of_row(work, _ARRAY, index, item_bytes)
    if elements < 0:
        return elements
    head = array_at(block, c.BLOCK_WORDS, word)
    rows, count = head[c.BLOCK_ROWS], head[c.BLOCK_ENTRIES]
    read = rows if is_at_rows else head[c.BLOCK_BOUND]
    if read > elements:
        report(work, read - 1, elements, 1)
        return d.NO_SUCH_ROW
    starts = array_at(block + 8 * c.BLOCK_WORDS, rows + 1, word)
    positions = array_at(block + offset_of_positions(rows), count, _half_word)
    if item_bytes == 8:
        _copy_items(starts, positions, array_at(source, elements, word), array_at(out, count, word), is_at_rows)
    else:
        source_items, items = array_at(source, elements, _half_word), array_at(out, count, _half_word)
        _copy_items(starts, positions, source_items, items, is_at_rows)
    return 0


@njit
def _copy_items(starts, positions, source, out, is_at_rows):
    if is_at_rows:
        for row in range(starts.size - 1):
            out[starts[row] : starts[row + 1]] = source[row]
    else:
        for entry in range(positions.size):
            out[entry] = source[positions[entry]]


@njit
def _write_numbers(descriptor, work, rows, result):
    return _compute_rows(descriptor, work, rows, result, _NUMBERS)


@njit
def _write_at_rows(descriptor, work, rows, result):
    return _compute_rows(descriptor, work, rows, result, _AT_ROWS)


@njit
def _write_at_positions(descriptor, work, rows, result):
    return _compute_rows(descriptor, work, rows, result, _AT_POSITIONS)


@njit
def _release(work):
    unpin(work + 8 * _PIN)
    return 0


entry_numbers = scalar_callback("entry_numbers", _write_numbers, _release)
elements_at_rows = scalar_callback("elements_at_rows", _write_at_rows, _release)
elements_at_positions = scalar_callback("elements_at_positions", _write_at_positions, _release)

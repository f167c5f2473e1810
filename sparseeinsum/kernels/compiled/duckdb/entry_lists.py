"""Kernels: makes the callbacks of DuckDB's functions that list entries for every row, and grows their slots.

*Slots* are two words of memory, zero at first: the address of a table of int32, which is zero outside of calls that use
it, and for how many of them there is room.
"""

from collections.abc import Callable

from numba import njit, types

from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.duckdb.callbacks import scalar_callback
from sparseeinsum.kernels.compiled.duckdb.vectors import (
    calloc,
    get_child,
    get_data,
    get_list_size,
    reserve,
    set_list_size,
    set_null,
    word,
)
from sparseeinsum.kernels.compiled.kernel_calls import report
from sparseeinsum.kernels.compiled.raw_memory import array_at, free

SLOT_WORDS = 2

_field = types.ExternalFunction("duckdb_struct_vector_get_child", word(word, word))

Compiled = Callable[..., int]


def entries_callback(name: str, is_null: Compiled, append_row: Compiled, release: Compiled) -> Compiled:
    """Make the callback of scalar functions that return a list of entries.

    Args:
        name: The name of the callback in object files.
        is_null: (descriptor, work, row) says whether the result of a row is NULL.
        append_row: (descriptor, work, row, result, end) appends the entries of a row to a result that has `end`;
            returns where they end, or an error code.
        release: As of `scalar_callback`.
    """

    @njit
    def append_rows(descriptor, work, rows, result):
        code = end = get_list_size(result)
        entries = array_at(get_data(result), 2 * rows, word)
        for row in range(rows):
            entries[2 * row], entries[2 * row + 1] = end, 0
            if is_null(descriptor, work, row):
                set_null(result, row)
                continue
            code = append_row(descriptor, work, row, result, end)
            if code < 0:
                break
            entries[2 * row + 1] = code - end
            end = code
        set_list_size(result, end)
        return min(code, 0)

    return scalar_callback(name, append_rows, release)


@njit
def reserve_entries(descriptor, work, result, most):
    """Make room for so many entries of a result; returns 0 or an error code."""
    if most > min(descriptor[d.LIMIT_BYTES] // descriptor[d.RESULT_BYTES], c.LARGEST):
        report(work, most * descriptor[d.RESULT_BYTES], descriptor[d.LIMIT_BYTES])
        return d.RESULT_TOO_LARGE
    if reserve(result, most) != 0:
        report(work, most * descriptor[d.RESULT_BYTES], 0)
        return d.OUT_OF_MEMORY
    return 0


@njit
def field_data(result, index):
    """Return the address of a field of all entries of a result, after `reserve_entries`."""
    return get_data(_field(get_child(result), index))


@njit
def reserve_slots(place, least):
    """Make room for at least so many slots; returns how many to use, a power of two, or 0 without enough memory."""
    count, words = 1, array_at(place, SLOT_WORDS, word)
    while count < least:
        count *= 2
    if count > words[1]:
        free(words[0])
        words[0] = calloc(count, 4)
        words[1] = count if words[0] != 0 else 0
    return min(count, words[1])


@njit
def free_slots(place):
    free(array_at(place, SLOT_WORDS, word)[0])

"""Kernels: the callbacks of the aggregates that compute sums of rows of arrays where the client reads them.

The arguments are those of `tensor_gather_sum` with one array, then those of `tensor_collected`, or of `tensor_resident`
with reserved memory, but for the array. A sum is written once, where a vector between two functions would take one more
copy of it.
"""

from numba import njit, types

from sparseeinsum.kernels import collection as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.duckdb.callbacks import update_callback
from sparseeinsum.kernels.compiled.duckdb.collected_chunks import chunk_with_room, numbers_of
from sparseeinsum.kernels.compiled.duckdb.collecting import make_collect_rows
from sparseeinsum.kernels.compiled.duckdb.gathers import (
    END_OF_OPERANDS,
    compute_rows,
    measure_rows,
    release_operands,
)
from sparseeinsum.kernels.compiled.duckdb.pins import pinned_address, unpin
from sparseeinsum.kernels.compiled.duckdb.reservations import join_state, pin_reserved, row_address
from sparseeinsum.kernels.compiled.duckdb.vectors import argument_is_valid, integer_at, word
from sparseeinsum.kernels.compiled.kernel_calls import report
from sparseeinsum.kernels.compiled.raw_memory import array_at, free, malloc

half_word = types.int32

_ARGUMENTS = 5  # of a sum
_NUMBER = _ARGUMENTS
_RESERVED, _POSITION = _ARGUMENTS, _ARGUMENTS + 1
_PIN_OF_RESERVED = END_OF_OPERANDS  # words of the memory of a call


@njit
def _measured_places(descriptor, work, rows):
    """Allocate the places of the sums of rows, and measure them.

    Returns:
        The address, how many runs of rows share arguments, and 0 or an error code.
    """
    places = malloc(16 * rows)
    if places == 0:
        report(work, 16 * rows, 0)
        return word(0), 0, word(d.OUT_OF_MEMORY)
    total, runs = measure_rows(descriptor, work, rows, _ARGUMENTS, places)
    return places, runs, min(total, 0)


@njit
def _collect_range(descriptor, work, rows, state, measured):
    """Compute the sums of a range of rows in a chunk of a state; returns 0 or an error code."""
    (first, end), (places, runs) = rows, measured
    item_bytes = descriptor[d.RESULT_BYTES]
    entries = array_at(places, 2 * end, word)
    while first < end:
        stop = end
        tuples, elements = _count(work, first, stop, entries)
        while elements > c.MOST_ELEMENTS and stop > first + 1:
            stop = first + (stop - first) // 2
            tuples, elements = _count(work, first, stop, entries)
        chunk = word(0)
        if elements <= c.MOST_ELEMENTS:
            chunk = chunk_with_room(state, tuples + 1, elements, item_bytes)
        if chunk == 0:
            report(work, elements * item_bytes, 0)
            return d.OUT_OF_MEMORY
        _append_places(work, first, stop, entries, chunk)
        head = array_at(chunk, c.CHUNK_WORDS, word)
        code = compute_rows(descriptor, work, (first, stop), runs, _ARGUMENTS, places, head[c.ELEMENTS_ADDRESS])
        if code < 0:
            return code
        state[c.TUPLES] += tuples
        first = stop
    return word(0)


@njit
def _count(work, first, end, entries):
    """Return how many tuples rows are, and how many elements these have; a row without a number gets no sum."""
    tuples, elements = word(0), word(0)
    for row in range(first, end):
        if not argument_is_valid(work, _NUMBER, row):
            entries[2 * row + 1] = -1
        tuples += entries[2 * row + 1] >= 0
        elements += max(entries[2 * row + 1], 0)
    return tuples, elements


@njit
def _append_places(work, first, end, entries, chunk):
    """Append tuples to a chunk that has room, and let their sums be written behind those that it has."""
    head = array_at(chunk, c.CHUNK_WORDS, word)
    numbers = array_at(numbers_of(chunk), head[c.CAPACITY], word)
    starts = array_at(head[c.STARTS_ADDRESS], head[c.CAPACITY] + 1, half_word)
    used, written = head[c.USED], head[c.ELEMENTS]
    for row in range(first, end):
        size = entries[2 * row + 1]
        entries[2 * row] = written
        written += max(size, 0)
        numbers[used], starts[used + 1] = integer_at(work, _NUMBER, row), written
        used += size >= 0
    head[c.USED], head[c.ELEMENTS] = used, written


_collect_measured = make_collect_rows(_collect_range)


@njit
def _collect_gathered(descriptor, work, rows, addresses):
    """Compute the sums of rows where their states collect them."""
    places, runs, code = _measured_places(descriptor, work, rows)
    if code == 0:
        code = _collect_measured(descriptor, work, rows, addresses, (places, runs))
    release_operands(work)
    free(places)
    return code


collecting_update_gathered = update_callback("collecting_update_gathered", _collect_gathered)


@njit
def _write_gathered(descriptor, work, rows, addresses):
    """Compute the sums of rows in the memory that they name; those with a NULL are none."""
    places, runs, code = _measured_places(descriptor, work, rows)
    first, states = 0, array_at(addresses, rows, word)
    while first < rows and code == 0:
        end = first + 1
        while end < rows and integer_at(work, _RESERVED, end) == integer_at(work, _RESERVED, first):
            end += 1
        code = _write_range(descriptor, work, (first, end), states, (places, runs))
        first = end
    release_operands(work)
    unpin(work + 8 * _PIN_OF_RESERVED)
    free(places)
    return code


writing_update_gathered = update_callback("writing_update_gathered", _write_gathered)


@njit
def _write_range(descriptor, work, rows, states, measured):
    """Compute the sums of a range of rows that name the same memory; returns 0 or an error code."""
    (first, end), (places, runs) = rows, measured
    pin, item_bytes = work + 8 * _PIN_OF_RESERVED, descriptor[d.RESULT_BYTES]
    entries, handle = array_at(places, 2 * end, word), integer_at(work, _RESERVED, first)
    is_pinned = False
    for row in range(first, end):
        is_complete = argument_is_valid(work, _RESERVED, row) and argument_is_valid(work, _POSITION, row)
        if entries[2 * row + 1] < 0 or not is_complete:
            entries[2 * row + 1] = -1
            continue
        code = join_state(work, array_at(states[row], 1, word), handle)
        if code == 0 and not is_pinned:
            code = pin_reserved(descriptor, work, pin, handle)
            is_pinned = code == 0
        if code < 0:
            return code
        size = entries[2 * row + 1]
        target = row_address(work, pin, integer_at(work, _POSITION, row), size, item_bytes)
        if target < 0:
            return target
        entries[2 * row] = (target - pinned_address(pin)) // item_bytes
    if not is_pinned:
        return word(0)
    return compute_rows(descriptor, work, rows, runs, _ARGUMENTS, places, pinned_address(pin))

"""Kernels: the callbacks of the aggregate that collects tuples for the client; see kernels/collection.py.

The callbacks follow duckdb_aggregate_*_t of `duckdb.h`. The arguments of a row are the number of a tuple, and its
array. A row with a NULL is no tuple. Threads append to chains of their own, which are then linked, so that every value
is copied once.
"""

from collections.abc import Callable

from numba import njit, types

from sparseeinsum.kernels import collection as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.duckdb.aggregates import fail
from sparseeinsum.kernels.compiled.duckdb.callbacks import update_callback
from sparseeinsum.kernels.compiled.duckdb.collected_chunks import (
    append_chunks,
    chunk_with_room,
    free_chunks,
    numbers_of,
)
from sparseeinsum.kernels.compiled.duckdb.vectors import (
    elements_address,
    elements_are_valid,
    get_data,
    has_null_elements,
    is_valid,
    set_null,
    validity_address,
    value_address,
    word,
)
from sparseeinsum.kernels.compiled.kernel_calls import copy_bytes, report
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.compiled.resident_access import publish, withdraw
from sparseeinsum.kernels.residents import MAX_RESIDENTS

half_word = types.int32
_bits = types.uint64  # of places that are known not to be negative, for which numba writes no code

_extra_info = types.ExternalFunction("duckdb_aggregate_function_get_extra_info", word(word))

_NUMBER, _VALUE = range(2)  # the arguments


@njit
def collecting_size(info):
    return 8 * c.STATE_WORDS


@njit
def collecting_init(info, state):
    words = array_at(state, c.STATE_WORDS, word)
    for index in range(c.STATE_WORDS):
        words[index] = 0
    return 0


def make_collect_rows(collect_range: Callable[..., int]) -> Callable[..., int]:
    """Make the function (descriptor, work, rows, addresses, memory) that appends rows to their states.

    Args:
        collect_range: (descriptor, work, (first, end), state, memory) appends adjacent rows of one state; it returns 0
            or an error code.
    """

    @njit
    def collect_rows(descriptor, work, rows, addresses, memory):
        states, first = array_at(addresses, rows, word), 0
        while first < rows:
            end = first + 1
            while end < rows and states[end] == states[first]:
                end += 1
            state = array_at(states[first], c.STATE_WORDS, word)
            if state[c.IS_TAKEN] != 0 or state[c.HANDLE] != 0:
                return word(d.ALREADY_COLLECTED)
            code = collect_range(descriptor, work, (first, end), state, memory)
            if code < 0:
                return word(code)
            first = end
        return word(0)

    compiled: Callable[..., int] = collect_rows
    return compiled


@njit
def _collect_arrays(descriptor, work, rows, state, memory):
    """Append the rows of a range to a state, so many at a time as a chunk may have; returns 0 or an error code."""
    first, end = rows
    item_bytes = descriptor[d.HEADER + 2 * _VALUE + 1]
    validities = validity_address(work, _NUMBER), validity_address(work, _VALUE)
    entries = array_at(value_address(work, _VALUE, 0, 16), 2 * end, _bits)
    while first < end:
        stop = end
        tuples, elements = _count(validities, first, stop, entries)
        while elements > c.MOST_ELEMENTS and stop > first + 1:
            stop = first + (stop - first) // 2
            tuples, elements = _count(validities, first, stop, entries)
        for row in range(first, stop if has_null_elements(work, _VALUE) else first):
            start, size = word(entries[2 * row]), word(entries[2 * row + 1])
            if _is_tuple(validities, row) and not elements_are_valid(work, _VALUE, start, size):
                report(work, _VALUE + 1, size)
                return d.HOLDS_NULL
        chunk = word(0)
        if elements <= c.MOST_ELEMENTS:  # the last tuple of a chunk may be written, but counts for nothing
            chunk = chunk_with_room(state, tuples + 1, elements, item_bytes)
        if chunk == 0:
            report(work, elements * item_bytes, 0)
            return d.OUT_OF_MEMORY
        _copy_arrays(work, (first, stop), validities, entries, item_bytes, chunk)
        state[c.TUPLES] += tuples
        first = stop
    return 0


_collect_arrays_of_rows = make_collect_rows(_collect_arrays)


@njit
def _collect_rows(descriptor, work, rows, addresses):
    return _collect_arrays_of_rows(descriptor, work, rows, addresses, 0)


collecting_update = update_callback("collecting_update", _collect_rows)


@njit
def _is_tuple(validities, row):
    return is_valid(validities[_NUMBER], row) and is_valid(validities[_VALUE], row)


@njit
def _count(validities, first, end, entries):
    """Return how many tuples rows are, and how many elements these have."""
    tuples, elements = word(0), word(0)
    for row in range(_bits(first), _bits(end)):
        is_tuple = word(_is_tuple(validities, word(row)))
        tuples += is_tuple
        elements += is_tuple * word(entries[2 * row + 1])
    return tuples, elements


@njit
def _copy_arrays(work, rows, validities, entries, item_bytes, chunk):
    """Append the rows of a range to a chunk that has room; arrays that are adjacent in memory are copied together."""
    head, source = array_at(chunk, c.CHUNK_WORDS, word), elements_address(work, _VALUE)
    row_numbers = array_at(value_address(work, _NUMBER, 0, 8), rows[1], word)
    numbers = array_at(numbers_of(chunk), head[c.CAPACITY], word)
    starts = array_at(head[c.STARTS_ADDRESS], head[c.CAPACITY] + 1, half_word)
    target, used, written = head[c.ELEMENTS_ADDRESS], _bits(head[c.USED]), head[c.ELEMENTS]
    begin, end = word(0), word(0)  # what is still to be copied
    for row in range(_bits(rows[0]), _bits(rows[1])):
        is_tuple = word(_is_tuple(validities, word(row)))
        if is_tuple & word(word(entries[2 * row]) != end) != 0:  # one branch, nearly never taken
            copy_bytes(target + item_bytes * written, source + item_bytes * begin, item_bytes * (end - begin))
            written += end - begin
            begin = end = word(entries[2 * row])
        end += is_tuple * word(entries[2 * row + 1])
        numbers[used], starts[used + _bits(1)] = row_numbers[row], written + end - begin
        used += _bits(is_tuple)
    copy_bytes(target + item_bytes * written, source + item_bytes * begin, item_bytes * (end - begin))
    head[c.USED], head[c.ELEMENTS] = word(used), written + end - begin


@njit
def collecting_combine(info, sources, targets, count):
    """Move the chunks of states to others, which therefore no window function may do twice."""
    descriptor = array_at(_extra_info(info), d.DESCRIPTOR_WORDS, word)
    from_states, into_states = array_at(sources, count, word), array_at(targets, count, word)
    for index in range(count):
        source = array_at(from_states[index], c.STATE_WORDS, word)
        target = array_at(into_states[index], c.STATE_WORDS, word)
        if source[c.IS_TAKEN] + source[c.HANDLE] + target[c.IS_TAKEN] + target[c.HANDLE] != 0:
            fail(info, descriptor, d.ALREADY_COLLECTED, 0, 0)
            return 0
        if source[c.FIRST] != 0:
            append_chunks(target, source[c.FIRST], source[c.LAST])
            target[c.TUPLES] += source[c.TUPLES]
            source[c.FIRST], source[c.LAST], source[c.IS_TAKEN] = 0, 0, 1
    return 0


@njit
def collecting_finalize(info, sources, result, count, offset):
    """Write the handles of the chains of states; NULL for states without tuples."""
    descriptor = array_at(_extra_info(info), d.DESCRIPTOR_WORDS, word)
    states, handles = array_at(sources, count, word), array_at(get_data(result) + 8 * offset, count, word)
    for index in range(count):
        state = array_at(states[index], c.STATE_WORDS, word)
        if state[c.IS_TAKEN] != 0:
            fail(info, descriptor, d.ALREADY_COLLECTED, 0, 0)
            return 0
        if state[c.TUPLES] == 0:
            set_null(result, offset + index)
            continue
        if state[c.HANDLE] == 0:
            kind = c.COLLECTED_TYPE + descriptor[d.ELEMENT_TYPE]
            state[c.HANDLE] = publish(state[c.FIRST], state[c.TUPLES], kind)
        if state[c.HANDLE] == 0:
            fail(info, descriptor, d.TOO_MANY_RESIDENTS, MAX_RESIDENTS, 0)
            return 0
        handles[index] = state[c.HANDLE]
    return 0


@njit
def collecting_destroy(states, count):
    """Free the chunks of states, unless they are kept under another handle."""
    addresses = array_at(states, count, word)
    for index in range(count):
        state = array_at(addresses[index], c.STATE_WORDS, word)
        is_kept = state[c.HANDLE] != 0 and withdraw(state[c.HANDLE]) == 0
        if not is_kept:
            free_chunks(state[c.FIRST])
        collecting_init(0, addresses[index])
    return 0

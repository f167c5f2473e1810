"""Kernels: the callbacks of the aggregates that reserve memory for an array, and write its rows; see reservation.py.

The callbacks follow duckdb_aggregate_*_t of `duckdb.h`. A statement reserves memory once, in an aggregate over one row,
whose state owns it. Then every thread writes rows where they belong, so that each is copied once. DuckDB computes equal
subqueries once, so that two arrays would share memory: the query that reserves it must have a volatile argument.
"""

from numba import njit, types

from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels import reservation as r
from sparseeinsum.kernels.compiled.duckdb.aggregates import fail
from sparseeinsum.kernels.compiled.duckdb.callbacks import update_callback
from sparseeinsum.kernels.compiled.duckdb.logical_types import destroy_vector
from sparseeinsum.kernels.compiled.duckdb.pins import PIN_WORDS, pin, pinned_address, unpin
from sparseeinsum.kernels.compiled.duckdb.vector_memory import new_vector_memory
from sparseeinsum.kernels.compiled.duckdb.vectors import (
    FIRST_ROW,
    argument_is_valid,
    array_of_row,
    copy_number,
    get_data,
    integer_at,
    set_null,
    value_address,
    word,
)
from sparseeinsum.kernels.compiled.kernel_calls import copy_bytes, report
from sparseeinsum.kernels.compiled.raw_memory import array_at, free, malloc
from sparseeinsum.kernels.compiled.resident_access import change_type, publish, type_of, withdraw
from sparseeinsum.kernels.duckdb.registry_layout import FLOAT
from sparseeinsum.kernels.residents import MAX_RESIDENTS

_extra_info = types.ExternalFunction("duckdb_aggregate_function_get_extra_info", word(word))

_ROWS, _SIZE, _FILL = range(3)  # the arguments of the aggregate that reserves
_RESERVED, _VALUE, _POSITION = range(3)  # of the one that writes
_READ = 3


@njit
def reserving_size(info):
    return 8 * r.STATE_WORDS


@njit
def reserving_init(info, state):
    words = array_at(state, r.STATE_WORDS, word)
    for index in range(r.STATE_WORDS):
        words[index] = 0
    return 0


@njit
def _reserve_rows(descriptor, work, rows, addresses):
    """Reserve memory for the only row of every state."""
    states = array_at(addresses, rows, word)
    for index in range(rows):
        if not _is_complete(work, index):
            continue
        state = array_at(states[index], r.STATE_WORDS, word)
        if state[r.OWNER] != 0 or state[r.IS_TAKEN] != 0:
            return d.ALREADY_RESERVED
        code = _reserve(descriptor, work, state, index)
        if code < 0:
            return code
    return word(0)


reserving_update = update_callback("reserving_update", _reserve_rows)


@njit
def _is_complete(work, index):
    """Whether no argument of a row is NULL."""
    for argument in range(_READ):
        if not argument_is_valid(work, argument, index):
            return False
    return True


@njit
def _reserve(descriptor, work, state, index):
    """Reserve memory for the arguments of a row; returns 0 or an error code."""
    rows, size, item_bytes = integer_at(work, _ROWS, index), integer_at(work, _SIZE, index), descriptor[d.RESULT_BYTES]
    for count in (rows, size):
        if count < 0 or count > r.LARGEST:
            report(work, count, 0)
            return d.BAD_SIZE
    if size > 0 and rows > r.LARGEST // size:
        report(work, rows, size)
        return d.STACK_TOO_LARGE
    elements_bytes = _elements_bytes(rows * size, item_bytes)
    size_bytes = elements_bytes + 8 * r.RESERVATION_WORDS + rows
    if size_bytes > descriptor[d.LIMIT_BYTES]:
        report(work, size_bytes, descriptor[d.LIMIT_BYTES])
        return d.RESULT_TOO_LARGE
    elements, state[r.OWNER] = new_vector_memory(descriptor[d.ELEMENT_TYPE], item_bytes, size_bytes)
    if elements == 0:
        report(work, size_bytes, 0)
        return d.OUT_OF_MEMORY
    words = array_at(elements + elements_bytes, r.RESERVATION_WORDS, word)
    words[r.ROWS], words[r.SIZE], words[r.FILL] = rows, size, 0
    copy_number(elements + elements_bytes + 8 * r.FILL, value_address(work, _FILL, index, item_bytes), item_bytes)
    written = _written_rows(elements + elements_bytes)
    for row in range(rows):
        written[row] = 0
    state[r.ELEMENTS] = rows * size
    return word(0)


@njit
def _elements_bytes(elements, item_bytes):
    """Return the bytes from the first element to the words behind the elements."""
    return (elements * item_bytes + 7) // 8 * 8


@njit
def _written_rows(words_address):
    """Return the bytes that say which rows have been written."""
    rows = array_at(words_address, r.RESERVATION_WORDS, word)[r.ROWS]
    return array_at(words_address + 8 * r.RESERVATION_WORDS, rows, types.uint8)


@njit
def reserving_combine(info, sources, targets, count):
    """Move what states have reserved to others, which therefore no window function may do twice."""
    descriptor = array_at(_extra_info(info), d.DESCRIPTOR_WORDS, word)
    from_states, into_states = array_at(sources, count, word), array_at(targets, count, word)
    for index in range(count):
        source = array_at(from_states[index], r.STATE_WORDS, word)
        target = array_at(into_states[index], r.STATE_WORDS, word)
        if source[r.OWNER] == 0 and source[r.IS_TAKEN] == 0:
            continue
        if target[r.OWNER] + source[r.HANDLE] + source[r.IS_TAKEN] != 0:
            fail(info, descriptor, d.ALREADY_RESERVED, 0, 0)
            return 0
        target[r.OWNER], target[r.ELEMENTS] = source[r.OWNER], source[r.ELEMENTS]
        source[r.OWNER], source[r.IS_TAKEN] = 0, 1
    return 0


@njit
def reserving_finalize(info, sources, result, count, offset):
    """Write the handles of what states have reserved; NULL for states without a row."""
    descriptor = array_at(_extra_info(info), d.DESCRIPTOR_WORDS, word)
    states, handles = array_at(sources, count, word), array_at(get_data(result) + 8 * offset, count, word)
    for index in range(count):
        state = array_at(states[index], r.STATE_WORDS, word)
        if state[r.IS_TAKEN] != 0:
            fail(info, descriptor, d.ALREADY_RESERVED, 0, 0)
            return 0
        if state[r.OWNER] == 0:
            set_null(result, offset + index)
            continue
        if state[r.HANDLE] == 0:
            kind = r.RESERVED_TYPE + descriptor[d.ELEMENT_TYPE]
            state[r.HANDLE] = publish(state[r.OWNER], state[r.ELEMENTS], kind)
        if state[r.HANDLE] == 0:
            fail(info, descriptor, d.TOO_MANY_RESIDENTS, MAX_RESIDENTS, 0)
            return 0
        handles[index] = state[r.HANDLE]
    return 0


@njit
def reserving_destroy(states, count):
    addresses = array_at(states, count, word)
    for index in range(count):
        state = array_at(addresses[index], r.STATE_WORDS, word)
        if state[r.OWNER] != 0:
            if state[r.HANDLE] != 0:
                withdraw(state[r.HANDLE])
            destroy_vector(addresses[index] + 8 * r.OWNER)
        reserving_init(0, addresses[index])
    return 0


@njit
def writing_size(info):
    return 8  # the handle


@njit
def writing_init(info, state):
    array_at(state, 1, word)[0] = 0
    return 0


@njit
def _write_rows(descriptor, work, rows, addresses):
    """Write rows to the memory that they name; those with a NULL are none."""
    code = _write_all(descriptor, work, rows, array_at(addresses, rows, word))
    unpin(work + 8 * FIRST_ROW)
    return code


writing_update = update_callback("writing_update", _write_rows)


@njit
def _note_handles(descriptor, work, rows, addresses):
    """Note the memory that functions have written rows to; NULL is none."""
    states = array_at(addresses, rows, word)
    for index in range(rows):
        if not argument_is_valid(work, _RESERVED, index):
            continue
        state, handle = array_at(states[index], 1, word), integer_at(work, _RESERVED, index)
        if state[0] != handle and type_of(handle) < r.RESERVED_TYPE:
            report(work, handle, 0)
            return word(d.NOT_RESERVED)
        code = join_state(work, state, handle)
        if code < 0:
            return code
    return word(0)


writing_update_handles = update_callback("writing_update_handles", _note_handles)


@njit
def _write_all(descriptor, work, rows, states):
    """Write rows, adjacent ones that are adjacent in memory together; returns 0 or an error code."""
    place, item_bytes = work + 8 * FIRST_ROW, descriptor[d.HEADER + 2 * _VALUE + 1]
    target, source, bytes_together = word(0), word(0), word(0)
    for index in range(rows):
        if not _is_complete(work, index):
            continue
        handle = integer_at(work, _RESERVED, index)
        code = join_state(work, array_at(states[index], 1, word), handle)
        if code == 0:
            code = pin_reserved(descriptor, work, place, handle)
        if code < 0:
            return code
        address, size = array_of_row(work, _VALUE, index, item_bytes)
        if size < 0:
            return size
        row_target = row_address(work, place, integer_at(work, _POSITION, index), size, item_bytes)
        if row_target < 0:
            return row_target
        row_bytes = size * item_bytes
        if row_target != target + bytes_together or address != source + bytes_together:
            copy_bytes(target, source, bytes_together)
            target, source, bytes_together = row_target, address, word(0)
        bytes_together += row_bytes
    copy_bytes(target, source, bytes_together)
    return word(0)


@njit
def join_state(work, state, handle):
    """Note the memory that the rows of a state name; returns 0, or an error code if an earlier row names another."""
    if state[0] != 0 and state[0] != handle:
        report(work, handle, state[0])
        return word(d.RESERVATIONS_DIFFER)
    state[0] = handle
    return word(0)


@njit
def pin_reserved(descriptor, work, place, handle):
    """Pin reserved memory; returns 0 or an error code."""
    code = pin(place, handle, r.RESERVED_TYPE + descriptor[d.ELEMENT_TYPE], descriptor[d.ELEMENT_TYPE])
    if code < 0:
        report(work, handle, 0)
        return word(d.NOT_RESERVED)
    return word(0)


@njit
def row_address(work, place, position, size, item_bytes):
    """Note that a row is written, and return the address of its elements, or an error code."""
    elements = pinned_address(place)
    behind = elements + _elements_bytes(_pinned_elements(place), item_bytes)
    words = array_at(behind, r.RESERVATION_WORDS, word)
    if size != words[r.SIZE]:
        report(work, size, words[r.SIZE])
        return word(d.STATE_LENGTH)
    if position < 0 or position >= words[r.ROWS]:
        report(work, position, words[r.ROWS], size)
        return word(d.NO_SUCH_ROW)
    written = _written_rows(behind)
    if written[position] != 0:
        report(work, position, 0)
        return word(d.WRITTEN_TWICE)
    written[position] = 1
    return elements + position * size * item_bytes


@njit
def _pinned_elements(place):
    return array_at(place, PIN_WORDS, word)[3]


@njit
def writing_combine(info, sources, targets, count):
    """Check that states name the same memory."""
    descriptor = array_at(_extra_info(info), d.DESCRIPTOR_WORDS, word)
    from_states, into_states = array_at(sources, count, word), array_at(targets, count, word)
    for index in range(count):
        source, target = array_at(from_states[index], 1, word), array_at(into_states[index], 1, word)
        if source[0] != 0 and target[0] != 0 and source[0] != target[0]:
            fail(info, descriptor, d.RESERVATIONS_DIFFER, source[0], target[0])
            return 0
        target[0] = max(source[0], target[0])
    return 0


@njit
def writing_finalize(info, sources, result, count, offset):
    """Fill the rows that nobody has written, and make the arrays resident; NULL for states without rows."""
    descriptor = array_at(_extra_info(info), d.DESCRIPTOR_WORDS, word)
    states, handles = array_at(sources, count, word), array_at(get_data(result) + 8 * offset, count, word)
    for index in range(count):
        handle = array_at(states[index], 1, word)[0]
        if handle == 0:
            set_null(result, offset + index)
            continue
        code = _make_resident(handle)
        if code < 0:
            fail(info, descriptor, code, handle, 0)
            return 0
        handles[index] = handle
    return 0


@njit
def _make_resident(handle):
    """Fill what is missing in reserved memory, which nobody may write any more then; returns 0 or an error code."""
    reserved = type_of(handle)
    if reserved < r.RESERVED_TYPE:  # a window function finalises it again
        return word(0) if 0 <= reserved < c.COMPRESSED_TYPE else word(d.NOT_RESERVED)
    kind, place = reserved - r.RESERVED_TYPE, malloc(8 * PIN_WORDS)
    if place == 0:
        return word(d.OUT_OF_MEMORY)
    words = array_at(place, PIN_WORDS, word)
    for index in range(PIN_WORDS):
        words[index] = 0
    elements = pin(place, handle, reserved, kind)
    if elements >= 0:
        _fill_missing(pinned_address(place), elements, 4 if kind == FLOAT else 8)
    unpin(place)
    free(place)
    return change_type(handle, reserved, kind) if elements >= 0 else word(d.NOT_RESERVED)


@njit
def _fill_missing(address, elements, item_bytes):
    """Write the fill to the rows that nobody has written."""
    behind = address + _elements_bytes(elements, item_bytes)
    size, written = array_at(behind, r.RESERVATION_WORDS, word)[r.SIZE], _written_rows(behind)
    for row in range(written.size):
        for element in range(size if written[row] == 0 else 0):
            copy_number(address + (row * size + element) * item_bytes, behind + 8 * r.FILL, item_bytes)


@njit
def writing_destroy(states, count):
    addresses = array_at(states, count, word)
    for index in range(count):
        writing_init(0, addresses[index])
    return 0

"""Kernels: the callbacks of PostgreSQL's aggregates, which run the kernel that their descriptor names.

A state is an array of the result's type, which the callbacks update in place, as PostgreSQL allows inside aggregates.
Some aggregates need the *background* to merge states, the first element before any row, or the number of rows to finish
one. Their states are a bytea of both, the shape of the rows, and the array. Both kinds of states can be sent to other
processes, so that PostgreSQL and its extensions may aggregate in parts anywhere.
"""

from numba import njit, types

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.kernel_calls import (
    NULL_ROW,
    ROW,
    check_fit,
    compute,
    copy_bytes,
    measure,
    report,
    shape_of,
    word,
    words_at,
)
from sparseeinsum.kernels.compiled.postgresql.datums import (
    FLAT_HEADER,
    allocate,
    bytes_of,
    check_array,
    datum_of,
    descriptor_at,
    detoast,
    elements_of,
    is_null,
    new_array,
    null_result,
    raise_error,
    read_row,
    unchanged_state,
    work_of,
)
from sparseeinsum.kernels.compiled.raw_memory import array_at, call, copy_elements
from sparseeinsum.kernels.postgresql.descriptors import RESULT_TYPE

aggregate_context = types.ExternalFunction("AggCheckCallContext", types.int32(word, word))

# Offsets in a state with a background, in bytes: a header of bytea with padding, the number of elements, the background
# in one word or two, the number of rows, the shape of the rows, then the array.
_SIZE = 8
_BACKGROUND = 16
_ROWS = 32
_SHAPE = 40
_HEADER = _SHAPE + 8 * d.SHAPE_WORDS


_NO_ROW = -1  # returned instead of a number of elements if an argument is NULL


@njit
def has_null_row(call_info, descriptor, work):
    """Read the row that is aggregated, the arguments after the state; returns whether one is NULL, or raises errors."""
    code = read_row(call_info, 1, descriptor, work)
    if code < 0:
        raise_error(descriptor, work, code)
    return code == NULL_ROW


@njit
def postgres_transition(call_info, description):
    """Fold a row into a state that is an array; returns the state."""
    descriptor, work = descriptor_at(description), work_inside_aggregate(call_info, description)
    size = _size_of_row(call_info, descriptor, work)
    if size == _NO_ROW:
        return unchanged_state(call_info)
    state = _new_state(descriptor, work, size) if is_null(call_info, 0) else _state_of(call_info, 0, descriptor, work)
    data, expected_size = _state_elements(descriptor, state)
    _require_fit(descriptor, work, size, expected_size)
    code = compute(descriptor, work, work + 8 * ROW, data, size)
    return raise_error(descriptor, work, code) if code < 0 else state


@njit
def _size_of_row(call_info, descriptor, work):
    """Read and measure the row to fold; returns the number of elements of its result, or _NO_ROW; raises errors."""
    if has_null_row(call_info, descriptor, work):
        return _NO_ROW
    size = measure(descriptor, work, work + 8 * ROW)
    return raise_error(descriptor, work, size) if size < 0 else size


@njit
def postgres_combine(call_info, description):
    """Merge the second state, an array, into the first; returns the first."""
    descriptor, work = descriptor_at(description), work_inside_aggregate(call_info, description)
    if is_null(call_info, 0) or is_null(call_info, 1):
        return null_result(call_info)
    state, other = _state_of(call_info, 0, descriptor, work), _state_of(call_info, 1, descriptor, work)
    data, size = _state_elements(descriptor, state)
    other_data, other_size = _state_elements(descriptor, other)
    _require_fit(descriptor, work, other_size, size)
    code = call(descriptor[d.COMBINE], (data, other_data, size, 0, 0))
    return raise_error(descriptor, work, code) if code < 0 else state


@njit
def postgres_transition_with_background(call_info, description):
    """Fold a row into a state with a background; returns the state."""
    descriptor, work = descriptor_at(description), work_inside_aggregate(call_info, description)
    size = _size_of_row(call_info, descriptor, work)
    if size == _NO_ROW:
        return unchanged_state(call_info)
    if is_null(call_info, 0):
        state = _new_state_with_background(descriptor, work, size)
    else:
        state = _state_with_background(call_info, 0, descriptor, work)
    _require_fit_with_background(descriptor, work, state, size, shape_of(work))
    _word(state + _ROWS)[0] += 1
    code = compute(descriptor, work, work + 8 * ROW, state + _HEADER, size)
    return raise_error(descriptor, work, code) if code < 0 else state


@njit
def postgres_combine_with_background(call_info, description):
    """Merge the second state with a background into the first; returns the first."""
    descriptor, work = descriptor_at(description), work_inside_aggregate(call_info, description)
    if is_null(call_info, 0) or is_null(call_info, 1):
        return null_result(call_info)
    state, other = (
        _state_with_background(call_info, 0, descriptor, work),
        _state_with_background(call_info, 1, descriptor, work),
    )
    size = _word(other + _SIZE)[0]
    _require_fit_with_background(descriptor, work, state, size, words_at(other + _SHAPE))
    _word(state + _ROWS)[0] += _word(other + _ROWS)[0]
    background, shape = state + _BACKGROUND, state + _SHAPE
    code = call(descriptor[d.COMBINE], (state + _HEADER, other + _HEADER, size, background, shape))
    return raise_error(descriptor, work, code) if code < 0 else state


@njit
def postgres_result_with_background(call_info, description):
    """Return the result of a state with a background: a copy of its array, which the kernel finishes if it needs to."""
    descriptor, work = descriptor_at(description), work_inside_aggregate(call_info, description)
    if is_null(call_info, 0):
        return null_result(call_info)
    state = _state_with_background(call_info, 0, descriptor, work)
    size = _word(state + _SIZE)[0]
    array = new_array(descriptor, work, size)
    if array < 0:
        return raise_error(descriptor, work, array)
    copy_bytes(array + FLAT_HEADER, state + _HEADER, size * descriptor[d.RESULT_BYTES])
    if descriptor[d.FINISH] != 0:
        call(descriptor[d.FINISH], (array + FLAT_HEADER, size, _word(state + _ROWS)[0]))
    return array


@njit
def work_inside_aggregate(call_info, description):
    work = work_of(call_info)
    if aggregate_context(call_info, 0) == 0:
        raise_error(descriptor_at(description), work, d.NOT_AN_AGGREGATE)
    return work


@njit
def _word(address):
    return array_at(address, 1, word)


@njit
def _new_state(descriptor, work, size):
    array = new_array(descriptor, work, size)
    if array < 0:
        return raise_error(descriptor, work, array)
    call(descriptor[d.INITIALISE], (work + 8 * ROW, array + FLAT_HEADER, size))
    return array


@njit
def _state_of(call_info, index, descriptor, work):
    """Return the address of a state that is an array, checked like an array of a user."""
    state = detoast(datum_of(call_info, index))
    code = check_array(state, descriptor[RESULT_TYPE], work, index)
    if code == 0 and elements_of(state)[1] % descriptor[d.RESULT_LANES] != 0:
        code = d.DAMAGED_STATE
    if code < 0:
        raise_error(descriptor, work, code)
    return state


@njit
def _state_elements(descriptor, state):
    data, numbers = elements_of(state)
    return data, numbers // descriptor[d.RESULT_LANES]


@njit
def _require_fit(descriptor, work, size, expected_size):
    if size != expected_size:
        report(work, size, expected_size)
        raise_error(descriptor, work, d.STATE_LENGTH)


@njit
def _new_state_with_background(descriptor, work, size):
    item_bytes = descriptor[d.RESULT_BYTES]
    if size > descriptor[d.LIMIT_BYTES] // item_bytes:
        report(work, size * item_bytes, descriptor[d.LIMIT_BYTES])
        return raise_error(descriptor, work, d.RESULT_TOO_LARGE)
    total = _HEADER + size * item_bytes
    state = allocate(max(total, _HEADER + 16))
    words, shape = array_at(state, _HEADER // 8, word), shape_of(work)
    for index in range(words.size):
        words[index] = 0
    words[0] = total << 2
    words[_SIZE // 8] = size
    copy_elements(array_at(state + _SHAPE, shape.size, word), shape)
    call(descriptor[d.INITIALISE], (work + 8 * ROW, state + _HEADER, size))
    copy_bytes(state + _BACKGROUND, state + _HEADER, min(16, size * item_bytes))
    return state


@njit
def _state_with_background(call_info, index, descriptor, work):
    """Return the address of a state with a background, checked so that nothing outside of it is read."""
    state = detoast(datum_of(call_info, index))
    total = bytes_of(state)
    is_valid = total >= _HEADER
    if is_valid:
        size, words = _word(state + _SIZE)[0], _word(state + _SHAPE)[0]
        is_valid = 0 <= words < d.SHAPE_WORDS and size >= 0
        is_valid = is_valid and size <= total and _HEADER + size * descriptor[d.RESULT_BYTES] == total
    if not is_valid:
        raise_error(descriptor, work, d.DAMAGED_STATE)
    return state


@njit
def _require_fit_with_background(descriptor, work, state, size, shape):
    code, actual, expected = check_fit(size, shape, _word(state + _SIZE)[0], words_at(state + _SHAPE))
    if code < 0:
        report(work, actual, expected)
        raise_error(descriptor, work, code)

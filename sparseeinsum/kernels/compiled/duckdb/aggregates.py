"""Kernels: the callbacks of DuckDB's aggregates, which run the kernel that their descriptor names.

The callbacks follow duckdb_aggregate_*_t of `duckdb.h`. A state owns one array, which it does not share.
"""

from numba import njit, types

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.duckdb.callbacks import update_callback
from sparseeinsum.kernels.compiled.duckdb.logical_types import destroy_vector
from sparseeinsum.kernels.compiled.duckdb.vector_memory import new_vector_memory
from sparseeinsum.kernels.compiled.duckdb.vectors import (
    FIRST_ROW,
    compute_batch_rows,
    get_child,
    get_data,
    new_work,
    prepare_batch,
    read_row,
    reserve_elements,
    set_null,
    word,
    write_entry,
)
from sparseeinsum.kernels.compiled.kernel_calls import (
    NULL_ROW,
    ROW,
    check_fit,
    compute,
    copy_bytes,
    measure,
    message_of,
    report,
    shape_of,
    template_of,
    words_at,
)
from sparseeinsum.kernels.compiled.raw_memory import array_at, call, copy_elements, free, malloc
from sparseeinsum.kernels.compiled.resident_access import publish, withdraw
from sparseeinsum.kernels.residents import MAX_RESIDENTS

_extra_info = types.ExternalFunction("duckdb_aggregate_function_get_extra_info", word(word))
_set_error = types.ExternalFunction("duckdb_aggregate_function_set_error", types.void(word, word))

# An aggregate's state, in words.
_STATE_ADDRESS = 0  # 0 before the first row
_STATE_SIZE = 1  # number of elements
_STATE_BACKGROUND = 2  # the first element before any row, in one or two words; some aggregates need it to merge
_BACKGROUND_WORDS = 2
_STATE_OWNER = 4  # the vector that owns the memory of a resident array; else 0
_STATE_HANDLE = 5  # the handle of a resident array, once it has one; else 0
_STATE_ROWS = 6  # the number of rows that were folded into the state
_STATE_WORDS = 7
_LEAST_BYTES = 16  # the smallest array of a state, which has room for an element of any dtype

_NOT_BATCHED = 1  # the kernel must be called row by row


@njit
def aggregate_size(info):
    return 8 * _STATE_WORDS


@njit
def aggregate_init(info, state):
    words = array_at(state, _STATE_WORDS, word)
    for index in range(_STATE_WORDS):
        words[index] = 0
    return 0


@njit
def _update_rows(descriptor, work, rows, addresses):
    """Fold rows into their states."""
    states = array_at(addresses, rows, word)
    if descriptor[d.BATCH] != 0 and rows > 1 and _one_state(states) and prepare_batch(descriptor, work, rows):
        code = _update_batch(descriptor, work, rows, states[0])
        if code != _NOT_BATCHED:
            return code
    for index in range(rows):
        code = _update_row(descriptor, work, index, states[index])
        if code < 0:
            return code
    return 0


aggregate_update = update_callback("aggregate_update", _update_rows)


@njit
def _one_state(addresses):
    for index in range(addresses.size):
        if addresses[index] != addresses[0]:
            return False
    return True


@njit
def _update_row(descriptor, work, index, address):
    row = work + 8 * ROW
    code = read_row(descriptor, work, index, row)
    if code == NULL_ROW:
        return 0
    if code == 0:
        code = measure(descriptor, work, row)
    if code >= 0:
        code = _start_state(descriptor, work, row, address, code)
    if code < 0:
        return code
    state = array_at(address, _STATE_WORDS, word)
    state[_STATE_ROWS] += 1
    return compute(descriptor, work, row, state[_STATE_ADDRESS], state[_STATE_SIZE])


@njit
def _update_batch(descriptor, work, rows, address):
    first = work + 8 * FIRST_ROW
    size = measure(descriptor, work, first)
    code = _start_state(descriptor, work, first, address, size) if size >= 0 else size
    if code < 0:
        return code
    state = array_at(address, _STATE_WORDS, word)
    code = compute_batch_rows(descriptor, work, rows, state[_STATE_ADDRESS], size)
    if code == 0:
        return _NOT_BATCHED
    state[_STATE_ROWS] += rows
    return min(code, 0)


@njit
def _start_state(descriptor, work, row, address, size):
    """Allocate a state for a result of `size` elements, or check that the old one fits; returns 0 or an error code."""
    state = array_at(address, _STATE_WORDS, word)
    if state[_STATE_ADDRESS] != 0:
        code, actual, expected = _check_state_fit(state, size, shape_of(work), descriptor[d.RESULT_BYTES])
        if code < 0:
            report(work, actual, expected)
        return code
    item_bytes = descriptor[d.RESULT_BYTES]
    if size > descriptor[d.LIMIT_BYTES] // item_bytes:
        report(work, size * item_bytes, descriptor[d.LIMIT_BYTES])
        return d.RESULT_TOO_LARGE
    shape = shape_of(work)
    memory = _allocate(descriptor, state, _array_bytes(size, item_bytes) + 8 * shape.size)
    if memory == 0:
        report(work, size * item_bytes, 0)
        return d.OUT_OF_MEMORY
    background = state[_STATE_BACKGROUND : _STATE_BACKGROUND + _BACKGROUND_WORDS]
    first = array_at(memory, _BACKGROUND_WORDS, word)
    copy_elements(first, background)  # zeros, for an array without elements
    call(descriptor[d.INITIALISE], (row, memory, size))
    copy_elements(array_at(memory + _array_bytes(size, item_bytes), shape.size, word), shape)
    state[_STATE_ADDRESS], state[_STATE_SIZE] = memory, size
    copy_elements(background, first)
    return 0


@njit
def _array_bytes(size, item_bytes):
    """Return the bytes of a state's array; the shape of its rows follows behind."""
    return max((size * item_bytes + 7) // 8 * 8, _LEAST_BYTES)


@njit
def _allocate(descriptor, state, size_bytes):
    """Allocate memory for a state's array, as a vector if the array is to be resident; 0 if there is not enough."""
    if descriptor[d.ELEMENT_TYPE] == 0:
        return malloc(size_bytes)
    memory, state[_STATE_OWNER] = new_vector_memory(descriptor[d.ELEMENT_TYPE], descriptor[d.RESULT_BYTES], size_bytes)
    return memory


@njit
def _shape_of_state(state, item_bytes):
    return words_at(state[_STATE_ADDRESS] + _array_bytes(state[_STATE_SIZE], item_bytes))


@njit
def _check_state_fit(state, size, shape, item_bytes):
    return check_fit(size, shape, state[_STATE_SIZE], _shape_of_state(state, item_bytes))


@njit
def aggregate_combine(info, sources, targets, count):
    """Merge states pairwise; sources do not change, because window functions use them again."""
    descriptor = array_at(_extra_info(info), d.DESCRIPTOR_WORDS, word)
    from_states, into_states = array_at(sources, count, word), array_at(targets, count, word)
    for index in range(count):
        source = array_at(from_states[index], _STATE_WORDS, word)
        target = array_at(into_states[index], _STATE_WORDS, word)
        if source[_STATE_ADDRESS] == 0:
            continue
        code, actual, expected = _merge_states(descriptor, source, target)
        if code < 0:
            fail(info, descriptor, code, actual, expected)
            return 0
    return 0


@njit
def fail(info, descriptor, code, first, second):
    work = new_work()
    if work == 0:
        _set_error(info, template_of(descriptor, d.OUT_OF_MEMORY))
        return
    report(work, first, second)
    _set_error(info, message_of(descriptor, code, work))
    free(work)


@njit
def _merge_states(descriptor, source, target):
    """Merge a state into another; returns (0, 0, 0), or an error code and the two numbers of its message."""
    size, item_bytes = source[_STATE_SIZE], descriptor[d.RESULT_BYTES]
    shape = _shape_of_state(source, item_bytes)
    if target[_STATE_ADDRESS] == 0:
        state_bytes = _array_bytes(size, item_bytes) + 8 * shape.size
        memory = _allocate(descriptor, target, state_bytes)
        if memory == 0:
            return d.OUT_OF_MEMORY, state_bytes, 0
        copy_bytes(memory, source[_STATE_ADDRESS], state_bytes)
        copy_elements(target[:_STATE_OWNER], source[:_STATE_OWNER])
        target[_STATE_ADDRESS], target[_STATE_ROWS] = memory, source[_STATE_ROWS]
        return 0, 0, 0
    code, actual, expected = _check_state_fit(target, size, shape, item_bytes)
    if code < 0:
        return code, actual, expected
    target[_STATE_ROWS] += source[_STATE_ROWS]
    background = target.ctypes.data + 8 * _STATE_BACKGROUND
    into, shape = target[_STATE_ADDRESS], target[_STATE_ADDRESS] + _array_bytes(size, item_bytes)
    return call(descriptor[d.COMBINE], (into, source[_STATE_ADDRESS], size, background, shape)), 0, 0


@njit
def aggregate_finalize(info, sources, result, count, offset):
    """Write the arrays of states into a list vector, from row `offset` on; NULL for a state without rows."""
    descriptor = array_at(_extra_info(info), d.DESCRIPTOR_WORDS, word)
    work = new_work()
    if work == 0:
        _set_error(info, template_of(descriptor, d.OUT_OF_MEMORY))
        return 0
    states = array_at(sources, count, word)
    elements = 0
    for index in range(count):
        elements += array_at(states[index], _STATE_WORDS, word)[_STATE_SIZE]
    start = reserve_elements(descriptor, work, result, elements)
    if start < 0:
        _set_error(info, message_of(descriptor, start, work))
    else:
        _write_states(descriptor, states, result, offset, start)
    free(work)
    return 0


@njit
def _write_states(descriptor, states, result, offset, start):
    item_bytes = descriptor[d.RESULT_BYTES]
    entries, out = array_at(get_data(result) + 16 * offset, 2 * states.size, word), get_data(get_child(result))
    for index in range(states.size):
        state = array_at(states[index], _STATE_WORDS, word)
        write_entry(descriptor, entries, index, start, state[_STATE_SIZE])
        if state[_STATE_ADDRESS] == 0:
            set_null(result, offset + index)
        else:
            target = out + start * item_bytes
            copy_bytes(target, state[_STATE_ADDRESS], state[_STATE_SIZE] * item_bytes)
            if descriptor[d.FINISH] != 0:
                call(descriptor[d.FINISH], (target, state[_STATE_SIZE], state[_STATE_ROWS]))
        start += state[_STATE_SIZE]


@njit
def aggregate_destroy(states, count):
    addresses = array_at(states, count, word)
    for index in range(count):
        state = array_at(addresses[index], _STATE_WORDS, word)
        if state[_STATE_OWNER] != 0:
            if state[_STATE_HANDLE] != 0:
                withdraw(state[_STATE_HANDLE])
            destroy_vector(addresses[index] + 8 * _STATE_OWNER)
        elif state[_STATE_ADDRESS] != 0:
            free(state[_STATE_ADDRESS])
        aggregate_init(0, addresses[index])
    return 0


@njit
def resident_finalize(info, sources, result, count, offset):
    """Write the handles of states' arrays, which stay resident as long as the states; NULL for states without rows."""
    descriptor = array_at(_extra_info(info), d.DESCRIPTOR_WORDS, word)
    states, handles = array_at(sources, count, word), array_at(get_data(result) + 8 * offset, count, word)
    for index in range(count):
        state = array_at(states[index], _STATE_WORDS, word)
        if state[_STATE_OWNER] == 0:
            set_null(result, offset + index)
            continue
        if state[_STATE_HANDLE] == 0:  # a window function finalises a state several times
            state[_STATE_HANDLE] = publish(state[_STATE_OWNER], state[_STATE_SIZE], descriptor[d.ELEMENT_TYPE])
        handles[index] = state[_STATE_HANDLE]
        if state[_STATE_HANDLE] == 0:
            fail(info, descriptor, d.TOO_MANY_RESIDENTS, MAX_RESIDENTS, 0)
            return 0
    return 0

"""Kernels: the callbacks of the aggregate that compresses entries; see kernels/compression.py.

The callbacks follow duckdb_aggregate_*_t of `duckdb.h`. The arguments of a row are a number, a row, a position, and the
number of rows; or numbers, a row, what to add to it for each number, a position, what to add to it, and how many rows.
"""

from numba import njit, types

from sparseeinsum.assets import load_kernels
from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.duckdb.aggregates import fail
from sparseeinsum.kernels.compiled.duckdb.compressed_blocks import offset_of_numbers, offset_of_positions
from sparseeinsum.kernels.compiled.duckdb.logical_types import create_vector, destroy_vector
from sparseeinsum.kernels.compiled.duckdb.vectors import (
    argument_is_valid,
    free,
    get_data,
    get_rows,
    integer_at,
    malloc,
    read_row,
    set_null,
    start_work,
    value_address,
    word,
)
from sparseeinsum.kernels.compiled.kernel_calls import ROW, copy_bytes, message_of, report, template_of
from sparseeinsum.kernels.compiled.raw_memory import array_at, copy_elements
from sparseeinsum.kernels.compiled.resident_access import publish, withdraw
from sparseeinsum.kernels.duckdb.registry_layout import BIGINT
from sparseeinsum.kernels.residents import MAX_RESIDENTS

compressed_rows = load_kernels("compressed_rows")

half_word = types.int32

_extra_info = types.ExternalFunction("duckdb_aggregate_function_get_extra_info", word(word))
_set_error = types.ExternalFunction("duckdb_aggregate_function_set_error", types.void(word, word))

_NUMBER, _ROW, _POSITION, _ROWS = range(4)  # the arguments
_NUMBERS, _FIRST_ROW, _ROW_LIST, _FIRST_POSITION, _POSITION_LIST, _ROW_COUNT = range(6)  # those of lists


@njit
def compression_size(info):
    return 8 * c.STATE_WORDS


@njit
def compression_init(info, state):
    words = array_at(state, c.STATE_WORDS, word)
    for index in range(c.STATE_WORDS):
        words[index] = 0
    return 0


@njit
def compression_update(info, chunk, states):
    """Append the entries of a chunk of rows to their states; rows with a NULL are none."""
    descriptor = array_at(_extra_info(info), d.DESCRIPTOR_WORDS, word)
    work = start_work(chunk, descriptor)
    if work == 0:
        _set_error(info, template_of(descriptor, d.OUT_OF_MEMORY))
        return 0
    rows = get_rows(chunk)
    code = _append_rows(descriptor, work, rows, array_at(states, rows, word))
    if code < 0:
        _set_error(info, message_of(descriptor, code, work))
    free(work)
    return 0


@njit
def _append_rows(descriptor, work, rows, states):
    item_bytes = descriptor[d.RESULT_BYTES]
    for index in range(rows):
        is_complete = True
        for argument in range(_ROWS + 1):
            is_complete &= argument_is_valid(work, argument, index)
        if not is_complete:
            continue
        row, position = integer_at(work, _ROW, index), integer_at(work, _POSITION, index)
        state = array_at(states[index], c.STATE_WORDS, word)
        code = _check_entry(work, state, row, position, integer_at(work, _ROWS, index))
        if code == 0:
            code = _append(state, row, position, value_address(work, _NUMBER, index, item_bytes), item_bytes)
        if code < 0:
            return code
    return 0


@njit
def compression_update_lists(info, chunk, states):
    """Append the entries in the lists of a chunk of rows to their states; rows with a NULL have none."""
    descriptor = array_at(_extra_info(info), d.DESCRIPTOR_WORDS, word)
    work = start_work(chunk, descriptor)
    if work == 0:
        _set_error(info, template_of(descriptor, d.OUT_OF_MEMORY))
        return 0
    rows = get_rows(chunk)
    addresses = array_at(states, rows, word)
    for index in range(rows):
        code = read_row(descriptor, work, index, work + 8 * ROW)
        if code == 0:
            code = _append_list(work, array_at(addresses[index], c.STATE_WORDS, word), descriptor[d.RESULT_BYTES])
        if code < 0:
            _set_error(info, message_of(descriptor, code, work))
            break
    free(work)
    return 0


@njit
def _append_list(work, state, item_bytes):
    """Append the entries of the row of arguments in the work memory; returns 0 or an error code."""
    arguments = array_at(work + 8 * ROW, d.ROW_WORDS, word)
    size = arguments[2 * _NUMBERS + 1]
    for argument in (_ROW_LIST, _POSITION_LIST):
        length = arguments[2 * argument + 1]
        if length != 0 and length != size:
            report(work, size, length)
            return d.LENGTHS_DIFFER
    first_row, first_position = _integer(arguments, _FIRST_ROW), _integer(arguments, _FIRST_POSITION)
    rows = array_at(arguments[2 * _ROW_LIST], arguments[2 * _ROW_LIST + 1], half_word)
    positions = array_at(arguments[2 * _POSITION_LIST], arguments[2 * _POSITION_LIST + 1], half_word)
    count, number = _integer(arguments, _ROW_COUNT), arguments[2 * _NUMBERS]
    if size > 0 and rows.size == 0 and positions.size > 0:
        return _append_run(work, state, (first_row, first_position, count), positions, number, item_bytes)
    for entry in range(size):
        row = first_row + (rows[entry] if rows.size > 0 else 0)
        position = first_position + (positions[entry] if positions.size > 0 else 0)
        code = _check_entry(work, state, row, position, count)
        if code == 0:
            code = _append(state, row, position, number + item_bytes * entry, item_bytes)
        if code < 0:
            return code
    return 0


@njit
def _append_run(work, state, numbers_of_row, positions, number, item_bytes):
    """Append entries of one row, as many as a chunk has room for at a time; returns 0 or an error code.

    The numbers of the row are its own, the position to add to all others, and how many rows there are.
    """
    row, first_position, count = numbers_of_row
    least, greatest = word(positions[0]), word(positions[0])
    for entry in range(positions.size):
        least, greatest = min(least, word(positions[entry])), max(greatest, word(positions[entry]))
    for position in (first_position + least, first_position + greatest):
        code = _check_entry(work, state, row, position, count)
        if code < 0:
            return code
    done = 0
    while done < positions.size:
        chunk = _chunk_with_room(state, item_bytes)
        if chunk == 0:
            return d.OUT_OF_MEMORY
        head = array_at(chunk, c.CHUNK_WORDS, word)
        used, capacity = head[c.USED], head[c.CAPACITY]
        together = min(capacity - used, positions.size - done)
        placed_rows = array_at(_rows_of(chunk) + 4 * used, together, half_word)
        placed = array_at(_positions_of(chunk, capacity) + 4 * used, together, half_word)
        for entry in range(together):
            placed_rows[entry] = row
            placed[entry] = positions[done + entry] + first_position
        target = _numbers_of(chunk, capacity) + item_bytes * used
        copy_bytes(target, number + item_bytes * done, item_bytes * together)
        head[c.USED] = used + together
        state[c.ENTRIES] += together
        done += together
    state[c.BOUND] = max(state[c.BOUND], first_position + greatest + 1)
    return 0


@njit
def _integer(arguments, argument):
    return array_at(arguments[2 * argument], 1, word)[0]


@njit
def _check_entry(work, state, row, position, rows):
    """Return 0 if an entry fits its state, whose number of rows is that of its first entry; else an error code."""
    if state[c.HANDLE] != 0:
        return d.ALREADY_COMPRESSED
    if state[c.FIRST] == 0:
        if rows < 0 or rows > c.LARGEST:
            report(work, rows, 0)
            return d.TOO_MANY_ROWS
        state[c.ROWS] = rows
    if rows != state[c.ROWS]:
        report(work, rows, state[c.ROWS])
        return d.STATE_SHAPE
    if row < 0 or row >= rows or position < 0 or position >= c.LARGEST:
        report(work, row, position, rows - 1)
        return d.OUTSIDE_ROWS
    return 0


@njit
def _append(state, row, position, number, item_bytes):
    """Append an entry to the last chunk, or to a new one if that is full; returns 0 or an error code."""
    chunk = _chunk_with_room(state, item_bytes)
    if chunk == 0:
        return d.OUT_OF_MEMORY
    head = array_at(chunk, c.CHUNK_WORDS, word)
    at, capacity = head[c.USED], head[c.CAPACITY]
    array_at(_rows_of(chunk) + 4 * at, 1, half_word)[0] = row
    array_at(_positions_of(chunk, capacity) + 4 * at, 1, half_word)[0] = position
    _copy_number(_numbers_of(chunk, capacity) + item_bytes * at, number, item_bytes)
    head[c.USED] = at + 1
    state[c.ENTRIES] += 1
    state[c.BOUND] = max(state[c.BOUND], position + 1)
    return 0


@njit
def _chunk_with_room(state, item_bytes):
    """Return the last chunk, or a new one if that is full; 0 if there is not enough memory."""
    chunk = state[c.LAST]
    if chunk != 0:
        head = array_at(chunk, c.CHUNK_WORDS, word)
        if head[c.USED] < head[c.CAPACITY]:
            return chunk
    size = min(max(state[c.ENTRIES], c.LEAST_CAPACITY), c.MOST_CAPACITY)
    return _add_chunk(state, size + size % 2, item_bytes)


@njit
def _copy_number(target, source, item_bytes):
    """Copy a number of 8 or 4 bytes."""
    if item_bytes == 8:
        array_at(target, 1, word)[0] = array_at(source, 1, word)[0]
    else:
        array_at(target, 1, half_word)[0] = array_at(source, 1, half_word)[0]


@njit
def _add_chunk(state, capacity, item_bytes):
    """Add an empty chunk to the end of the chain, and return its address; 0 if there is not enough memory."""
    chunk = malloc(8 * c.CHUNK_WORDS + capacity * (8 + item_bytes))
    if chunk == 0:
        return 0
    head = array_at(chunk, c.CHUNK_WORDS, word)
    head[c.NEXT], head[c.USED], head[c.CAPACITY] = 0, 0, capacity
    if state[c.LAST] == 0:
        state[c.FIRST] = chunk
    else:
        array_at(state[c.LAST], c.CHUNK_WORDS, word)[c.NEXT] = chunk
    state[c.LAST] = chunk
    return chunk


@njit
def _rows_of(chunk):
    return chunk + 8 * c.CHUNK_WORDS


@njit
def _positions_of(chunk, capacity):
    return _rows_of(chunk) + 4 * capacity


@njit
def _numbers_of(chunk, capacity):
    return _positions_of(chunk, capacity) + 4 * capacity


@njit
def compression_combine(info, sources, targets, count):
    """Copy the chunks of states to others; sources do not change, because window functions use them again."""
    descriptor = array_at(_extra_info(info), d.DESCRIPTOR_WORDS, word)
    from_states, into_states = array_at(sources, count, word), array_at(targets, count, word)
    for index in range(count):
        source = array_at(from_states[index], c.STATE_WORDS, word)
        target = array_at(into_states[index], c.STATE_WORDS, word)
        code = _copy_chunks(source, target, descriptor[d.RESULT_BYTES])
        if code < 0:
            fail(info, descriptor, code, source[c.ROWS], target[c.ROWS])
            return 0
    return 0


@njit
def _copy_chunks(source, target, item_bytes):
    if source[c.HANDLE] != 0 or target[c.HANDLE] != 0:
        return d.ALREADY_COMPRESSED
    if source[c.FIRST] == 0:
        return 0
    if target[c.FIRST] == 0:
        target[c.ROWS] = source[c.ROWS]
    if target[c.ROWS] != source[c.ROWS]:
        return d.STATE_SHAPE
    chunk = source[c.FIRST]
    while chunk != 0:
        head = array_at(chunk, c.CHUNK_WORDS, word)
        used, capacity = head[c.USED], head[c.CAPACITY]
        copy = _add_chunk(target, capacity, item_bytes)
        if copy == 0:
            return d.OUT_OF_MEMORY
        array_at(copy, c.CHUNK_WORDS, word)[c.USED] = used
        target[c.ENTRIES] += used
        copy_elements(array_at(_rows_of(copy), used, half_word), array_at(_rows_of(chunk), used, half_word))
        copy_elements(
            array_at(_positions_of(copy, capacity), used, half_word),
            array_at(_positions_of(chunk, capacity), used, half_word),
        )
        copy_bytes(_numbers_of(copy, capacity), _numbers_of(chunk, capacity), used * item_bytes)
        chunk = head[c.NEXT]
    target[c.BOUND] = max(target[c.BOUND], source[c.BOUND])
    return 0


@njit
def compression_finalize(info, sources, result, count, offset):
    """Order the entries of states by row, and write the handles of the blocks; NULL for states without entries."""
    descriptor = array_at(_extra_info(info), d.DESCRIPTOR_WORDS, word)
    states, handles = array_at(sources, count, word), array_at(get_data(result) + 8 * offset, count, word)
    for index in range(count):
        state = array_at(states[index], c.STATE_WORDS, word)
        if state[c.ENTRIES] == 0:
            set_null(result, offset + index)
            continue
        code = _compress(descriptor, state) if state[c.HANDLE] == 0 else 0  # a window function finalises it again
        if code < 0:
            size = _block_bytes(state, descriptor[d.RESULT_BYTES])
            first, second = (MAX_RESIDENTS, 0) if code == d.TOO_MANY_RESIDENTS else (size, descriptor[d.LIMIT_BYTES])
            fail(info, descriptor, code, first, second)
            return 0
        handles[index] = state[c.HANDLE]
    return 0


@njit
def _block_bytes(state, item_bytes):
    return offset_of_numbers(state[c.ROWS], state[c.ENTRIES]) + state[c.ENTRIES] * item_bytes


@njit
def _compress(descriptor, state):
    """Move the entries of a state to a block, and publish it; returns 0 or an error code."""
    item_bytes = descriptor[d.RESULT_BYTES]
    size = _block_bytes(state, item_bytes)
    if size > descriptor[d.LIMIT_BYTES]:
        return d.RESULT_TOO_LARGE
    memory = malloc(size)
    if memory == 0:
        return d.OUT_OF_MEMORY
    free(memory)  # there is enough: DuckDB would end the process if its own allocation failed
    elements = (size + 7) // 8
    if state[c.OWNER] == 0:
        block = get_data(create_vector(BIGINT, elements, state.ctypes.data + 8 * c.OWNER))
        _fill_block(state, block, item_bytes)
        _free_chunks(state)
    state[c.HANDLE] = publish(state[c.OWNER], elements, c.COMPRESSED_TYPE + descriptor[d.ELEMENT_TYPE])
    return d.TOO_MANY_RESIDENTS if state[c.HANDLE] == 0 else 0


@njit
def _fill_block(state, block, item_bytes):
    rows, entries = state[c.ROWS], state[c.ENTRIES]
    head = array_at(block, c.BLOCK_WORDS, word)
    head[c.BLOCK_ROWS], head[c.BLOCK_ENTRIES], head[c.BLOCK_BOUND] = rows, entries, state[c.BOUND]
    starts = array_at(block + 8 * c.BLOCK_WORDS, rows + 1, word)
    for row in range(rows + 1):
        starts[row] = 0
    chunk = state[c.FIRST]
    while chunk != 0:
        head = array_at(chunk, c.CHUNK_WORDS, word)
        compressed_rows.count_rows(array_at(_rows_of(chunk), head[c.USED], half_word), starts)
        chunk = head[c.NEXT]
    compressed_rows.accumulate(starts)
    positions = array_at(block + offset_of_positions(rows), entries, half_word)
    numbers = block + offset_of_numbers(rows, entries)
    chunk = state[c.FIRST]
    while chunk != 0:
        head = array_at(chunk, c.CHUNK_WORDS, word)
        used, capacity = head[c.USED], head[c.CAPACITY]
        placed = array_at(_rows_of(chunk), used, half_word), array_at(_positions_of(chunk, capacity), used, half_word)
        if item_bytes == 8:
            of_chunk = array_at(_numbers_of(chunk, capacity), used, word)
            compressed_rows.place_rows(*placed, of_chunk, starts, positions, array_at(numbers, entries, word))
        else:
            of_chunk = array_at(_numbers_of(chunk, capacity), used, half_word)
            compressed_rows.place_rows(*placed, of_chunk, starts, positions, array_at(numbers, entries, half_word))
        chunk = head[c.NEXT]
    compressed_rows.restore_starts(starts)


@njit
def _free_chunks(state):
    chunk = state[c.FIRST]
    while chunk != 0:
        following = array_at(chunk, c.CHUNK_WORDS, word)[c.NEXT]
        free(chunk)
        chunk = following
    state[c.FIRST], state[c.LAST] = 0, 0


@njit
def compression_destroy(states, count):
    addresses = array_at(states, count, word)
    for index in range(count):
        state = array_at(addresses[index], c.STATE_WORDS, word)
        _free_chunks(state)
        if state[c.OWNER] != 0:
            if state[c.HANDLE] != 0:
                withdraw(state[c.HANDLE])
            destroy_vector(addresses[index] + 8 * c.OWNER)
        compression_init(0, addresses[index])
    return 0

"""Kernels: the callbacks of the aggregate that compresses entries; see kernels/compression.py.

The callbacks follow duckdb_aggregate_*_t of `duckdb.h`. The arguments of a row are a number, a row, a position, and the
number of rows.
"""

from numba import njit, types

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.block_layout import offset_of_numbers, offset_of_positions
from sparseeinsum.kernels.compiled.duckdb.aggregates import fail
from sparseeinsum.kernels.compiled.duckdb.callbacks import update_callback
from sparseeinsum.kernels.compiled.duckdb.entry_chunks import (
    append_entry,
    append_numbers,
    check_entry,
    free_chunks,
    numbers_of,
    positions_of,
    rows_of,
)
from sparseeinsum.kernels.compiled.duckdb.logical_types import destroy_vector
from sparseeinsum.kernels.compiled.duckdb.vector_memory import new_vector_memory
from sparseeinsum.kernels.compiled.duckdb.vectors import (
    argument_is_valid,
    get_data,
    has_no_nulls,
    integer_at,
    set_null,
    value_address,
    word,
)
from sparseeinsum.kernels.compiled.kernel_calls import report
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.compiled.resident_access import publish, withdraw
from sparseeinsum.kernels.duckdb.registry_layout import BIGINT
from sparseeinsum.kernels.residents import MAX_RESIDENTS

compressed_rows = load_kernels("compressed_rows")

half_word = types.int32

_extra_info = types.ExternalFunction("duckdb_aggregate_function_get_extra_info", word(word))

_NUMBER, _ROW, _POSITION, _ROWS = range(4)  # the arguments


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
def _append_rows(descriptor, work, rows, addresses):
    """Append the entries of rows to their states; rows with a NULL are none."""
    states, item_bytes = array_at(addresses, rows, word), descriptor[d.RESULT_BYTES]
    if rows > 0 and has_no_nulls(work, _ROWS + 1) and _are_equal(states):
        return _append_together(work, rows, array_at(states[0], c.STATE_WORDS, word), item_bytes)
    for index in range(rows):
        is_complete = True
        for argument in range(_ROWS + 1):
            is_complete &= argument_is_valid(work, argument, index)
        if not is_complete:
            continue
        row, position = integer_at(work, _ROW, index), integer_at(work, _POSITION, index)
        state = array_at(states[index], c.STATE_WORDS, word)
        code = check_entry(work, state, row, position, integer_at(work, _ROWS, index))
        if code == 0:
            code = append_entry(state, row, position, value_address(work, _NUMBER, index, item_bytes), item_bytes)
        if code < 0:
            return code
    return 0


compression_update = update_callback("compression_update", _append_rows)


@njit
def _are_equal(states):
    """Whether all rows have one state."""
    for index in range(states.size):
        if states[index] != states[0]:
            return False
    return True


@njit
def _append_together(work, rows, state, item_bytes):
    """Append the entries of rows of one state without a NULL, as many as a chunk has room for at a time."""
    row_numbers = array_at(value_address(work, _ROW, 0, 8), rows, word)
    positions = array_at(value_address(work, _POSITION, 0, 8), rows, word)
    counts = array_at(value_address(work, _ROWS, 0, 8), rows, word)
    code = check_entry(work, state, row_numbers[0], positions[0], counts[0])
    least_row, most_row, least_position, most_position = row_numbers[0], row_numbers[0], positions[0], positions[0]
    differ = False
    for index in range(rows):
        least_row, most_row = min(least_row, row_numbers[index]), max(most_row, row_numbers[index])
        least_position = min(least_position, positions[index])
        most_position = max(most_position, positions[index])
        differ |= counts[index] != counts[0]
    if least_row < 0 or most_row >= counts[0] or least_position < 0 or most_position >= c.LARGEST or differ:
        for index in range(rows if code == 0 else 0):  # which row is wrong
            if counts[index] != counts[0]:
                report(work, counts[index], counts[0])
                return d.STATE_SHAPE
            code = min(code, check_entry(work, state, row_numbers[index], positions[index], counts[index]))
            if code < 0:
                return code
    done = 0
    while done < rows and code == 0:
        number = value_address(work, _NUMBER, done, item_bytes)
        together, row_address, position_address = append_numbers(state, rows - done, number, item_bytes)
        if together == 0:
            return d.OUT_OF_MEMORY
        placed_rows = array_at(row_address, together, half_word)
        placed = array_at(position_address, together, half_word)
        for entry in range(together):
            placed_rows[entry], placed[entry] = row_numbers[done + entry], positions[done + entry]
        done += together
    state[c.BOUND] = max(state[c.BOUND], most_position + 1)
    return code


@njit
def compression_combine(info, sources, targets, count):
    """Move the chunks of states to others, which therefore no window function may do twice."""
    descriptor = array_at(_extra_info(info), d.DESCRIPTOR_WORDS, word)
    from_states, into_states = array_at(sources, count, word), array_at(targets, count, word)
    for index in range(count):
        source = array_at(from_states[index], c.STATE_WORDS, word)
        target = array_at(into_states[index], c.STATE_WORDS, word)
        code = _move_chunks(source, target)
        if code < 0:
            fail(info, descriptor, code, source[c.ROWS], target[c.ROWS])
            return 0
    return 0


@njit
def _move_chunks(source, target):
    if source[c.HANDLE] + source[c.IS_TAKEN] + target[c.HANDLE] + target[c.IS_TAKEN] != 0:
        return d.ALREADY_COMPRESSED
    if source[c.FIRST] == 0:
        return 0
    if target[c.FIRST] == 0:
        target[c.FIRST], target[c.ROWS] = source[c.FIRST], source[c.ROWS]
    elif target[c.ROWS] != source[c.ROWS]:
        return d.STATE_SHAPE
    else:
        array_at(target[c.LAST], c.CHUNK_WORDS, word)[c.NEXT] = source[c.FIRST]
    target[c.LAST] = source[c.LAST]
    target[c.ENTRIES] += source[c.ENTRIES]
    target[c.BOUND] = max(target[c.BOUND], source[c.BOUND])
    source[c.FIRST], source[c.LAST], source[c.ENTRIES], source[c.IS_TAKEN] = 0, 0, 0, 1
    return 0


@njit
def compression_finalize(info, sources, result, count, offset):
    """Order the entries of states by row, and write the handles of the blocks; NULL for states without entries."""
    descriptor = array_at(_extra_info(info), d.DESCRIPTOR_WORDS, word)
    states, handles = array_at(sources, count, word), array_at(get_data(result) + 8 * offset, count, word)
    for index in range(count):
        state = array_at(states[index], c.STATE_WORDS, word)
        if state[c.IS_TAKEN] != 0:
            fail(info, descriptor, d.ALREADY_COMPRESSED, 0, 0)
            return 0
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
    if state[c.OWNER] == 0:
        block, state[c.OWNER] = new_vector_memory(BIGINT, 8, size)
        if block == 0:
            return d.OUT_OF_MEMORY
        _fill_block(state, block, item_bytes)
        free_chunks(state)
    state[c.HANDLE] = publish(state[c.OWNER], (size + 7) // 8, c.COMPRESSED_TYPE + descriptor[d.ELEMENT_TYPE])
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
        compressed_rows.count_rows(array_at(rows_of(chunk), head[c.USED], half_word), starts)
        chunk = head[c.NEXT]
    compressed_rows.accumulate(starts)
    positions = array_at(block + offset_of_positions(rows), entries, half_word)
    numbers = block + offset_of_numbers(rows, entries)
    chunk = state[c.FIRST]
    while chunk != 0:
        head = array_at(chunk, c.CHUNK_WORDS, word)
        used, capacity = head[c.USED], head[c.CAPACITY]
        placed = array_at(rows_of(chunk), used, half_word), array_at(positions_of(chunk, capacity), used, half_word)
        if item_bytes == 8:
            of_chunk = array_at(numbers_of(chunk, capacity), used, word)
            compressed_rows.place_rows(*placed, of_chunk, starts, positions, array_at(numbers, entries, word))
        else:
            of_chunk = array_at(numbers_of(chunk, capacity), used, half_word)
            compressed_rows.place_rows(*placed, of_chunk, starts, positions, array_at(numbers, entries, half_word))
        chunk = head[c.NEXT]
    compressed_rows.restore_starts(starts)
    head = array_at(block, c.BLOCK_WORDS, word)
    head[c.BLOCK_LONGEST] = compressed_rows.longest_row(starts)


@njit
def compression_destroy(states, count):
    addresses = array_at(states, count, word)
    for index in range(count):
        state = array_at(addresses[index], c.STATE_WORDS, word)
        free_chunks(state)
        if state[c.OWNER] != 0:
            if state[c.HANDLE] != 0:
                withdraw(state[c.HANDLE])
            destroy_vector(addresses[index] + 8 * c.OWNER)
        compression_init(0, addresses[index])
    return 0

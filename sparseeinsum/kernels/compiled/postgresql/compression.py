"""Kernels: the callbacks of PostgreSQL's aggregate that compresses entries; see kernels/compression.py.

A state is a bigint[]: the words listed below, then for every entry its row and position in one word, then the numbers,
a word each. The result is a bigint[], too: the type of the numbers, then the block. Queries pass it on as a value,
since processes share no memory.
"""

from numba import njit, types

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.block_layout import offset_of_numbers, offset_of_positions, words_of_block
from sparseeinsum.kernels.compiled.kernel_calls import ROW, report, word
from sparseeinsum.kernels.compiled.postgresql.aggregates import has_null_row, work_inside_aggregate
from sparseeinsum.kernels.compiled.postgresql.datums import (
    FLAT_HEADER,
    check_array,
    datum_of,
    descriptor_at,
    detoast,
    elements_of,
    is_null,
    new_words,
    null_result,
    raise_error,
    unchanged_state,
)
from sparseeinsum.kernels.compiled.raw_memory import array_at, copy_elements
from sparseeinsum.kernels.postgresql.descriptors import INT8, KERNEL_TYPES

compressed_rows = load_kernels("compressed_rows")

half_word = types.int32

_ROW, _POSITION, _ROWS = range(1, 4)  # the arguments after the number
_FIRST_ROW, _ROW_LIST, _FIRST_POSITION, _POSITION_LIST, _ROW_COUNT = range(1, 6)  # those of lists, after the numbers

# A state, in words: the type of the numbers, how many entries there are, and for how many there is room, the number of
# rows, and one more than the largest position.
_TYPE, _ENTRIES, _CAPACITY, _ROW_NUMBER, _BOUND = range(5)
_STATE_WORDS = 5
_LEAST_CAPACITY = 16
_HALF = 1 << 32
BLOCK = 1  # the word of a result in which its block begins


@njit
def postgres_compress_entry(call_info, description):
    """Add an entry to a state; returns the state. A row with a NULL has none."""
    descriptor, work = descriptor_at(description), work_inside_aggregate(call_info, description)
    if has_null_row(call_info, descriptor, work):
        return unchanged_state(call_info)
    row, position, rows = _argument(work, _ROW), _argument(work, _POSITION), _argument(work, _ROWS)
    state = _state_with_room(call_info, descriptor, work, rows, 1)
    _append(descriptor, work, state, row, position, array_at(work + 8 * ROW, 1, word)[0])
    return state


@njit
def postgres_compress_lists(call_info, description):
    """Add the entries in lists to a state; returns the state. A row with a NULL has none."""
    descriptor, work = descriptor_at(description), work_inside_aggregate(call_info, description)
    if has_null_row(call_info, descriptor, work):
        return unchanged_state(call_info)
    arguments = array_at(work + 8 * ROW, d.ROW_WORDS, word)
    size = arguments[1]
    for argument in (_ROW_LIST, _POSITION_LIST):
        length = arguments[2 * argument + 1]
        if length != 0 and length != size:
            report(work, size, length)
            return raise_error(descriptor, work, d.LENGTHS_DIFFER)
    rows = array_at(arguments[2 * _ROW_LIST], arguments[2 * _ROW_LIST + 1], half_word)
    positions = array_at(arguments[2 * _POSITION_LIST], arguments[2 * _POSITION_LIST + 1], half_word)
    first_row, first_position = _argument(work, _FIRST_ROW), _argument(work, _FIRST_POSITION)
    state = _state_with_room(call_info, descriptor, work, _argument(work, _ROW_COUNT), size)
    for entry in range(size):
        row = first_row + (rows[entry] if rows.size > 0 else 0)
        position = first_position + (positions[entry] if positions.size > 0 else 0)
        _append(descriptor, work, state, row, position, arguments[0] + _item_bytes(descriptor) * entry)
    return state


@njit
def postgres_compress_combine(call_info, description):
    """Add the entries of the second state to the first; returns the first."""
    descriptor, work = descriptor_at(description), work_inside_aggregate(call_info, description)
    if is_null(call_info, 0) or is_null(call_info, 1):
        return null_result(call_info)
    other = _state_of(call_info, 1, descriptor, work)
    others = _words(other)
    count, capacity = others[_ENTRIES], others[_CAPACITY]
    state = _state_with_room(call_info, descriptor, work, others[_ROW_NUMBER], count)
    words = _words(state)
    used, room = words[_ENTRIES], words[_CAPACITY]
    for start, other_start in ((0, 0), (room, capacity)):
        into, source = _STATE_WORDS + start + used, _STATE_WORDS + other_start
        copy_elements(words[into : into + count], others[source : source + count])
    words[_ENTRIES] += count
    words[_BOUND] = max(words[_BOUND], others[_BOUND])
    return state


@njit
def postgres_compressed(call_info, description):
    """Return the entries of a state, ordered by row; NULL if there are none."""
    descriptor, work = descriptor_at(description), work_inside_aggregate(call_info, description)
    if is_null(call_info, 0):
        return null_result(call_info)
    words, item_bytes = _words(_state_of(call_info, 0, descriptor, work)), _item_bytes(descriptor)
    entries, capacity, rows = words[_ENTRIES], words[_CAPACITY], words[_ROW_NUMBER]
    if entries == 0:
        return null_result(call_info)
    result = new_block(descriptor, work, words[_TYPE], rows, entries, words[_BOUND], item_bytes)
    if result < 0:
        return raise_error(descriptor, work, result)
    block = result + FLAT_HEADER + 8 * BLOCK
    starts = array_at(block + 8 * c.BLOCK_WORDS, rows + 1, word)
    for entry in range(entries):
        row = words[_STATE_WORDS + entry] >> 32
        if row < 0 or row >= rows:
            return raise_error(descriptor, work, d.DAMAGED_STATE)
        starts[row + 1] += 1
    compressed_rows.accumulate(starts)
    positions = array_at(block + offset_of_positions(rows), entries, half_word)
    numbers = block + offset_of_numbers(rows, entries)
    for entry in range(entries):
        row = words[_STATE_WORDS + entry] >> 32
        place = starts[row]
        positions[place] = words[_STATE_WORDS + entry] & (_HALF - 1)
        number = words[_STATE_WORDS + capacity + entry]
        if item_bytes == 8:
            array_at(numbers + 8 * place, 1, word)[0] = number
        else:
            array_at(numbers + 4 * place, 1, half_word)[0] = number
        starts[row] = place + 1
    compressed_rows.restore_starts(starts)
    array_at(block, c.BLOCK_WORDS, word)[c.BLOCK_LONGEST] = compressed_rows.longest_row(starts)
    return result


@njit
def new_block(descriptor, work, number_type, rows, entries, bound, item_bytes):
    """Allocate a result of so many rows and entries, with its head, and 0 for where rows begin; or an error code."""
    result = new_words(descriptor, work, BLOCK + words_of_block(rows, entries, item_bytes))
    if result < 0:
        return result
    array_at(result + FLAT_HEADER, 1, word)[0] = number_type
    block = result + FLAT_HEADER + 8 * BLOCK
    head = array_at(block, c.BLOCK_WORDS, word)
    head[c.BLOCK_ROWS], head[c.BLOCK_ENTRIES], head[c.BLOCK_BOUND] = rows, entries, bound
    starts = array_at(block + 8 * c.BLOCK_WORDS, rows + 1, word)
    for row in range(rows + 1):
        starts[row] = 0
    for end in (offset_of_numbers(rows, entries), 8 * words_of_block(rows, entries, item_bytes)):  # what pads them
        array_at(block + end - 8, 1, word)[0] = 0
    return result


@njit
def _argument(work, index):
    return array_at(array_at(work + 8 * ROW, d.ROW_WORDS, word)[2 * index], 1, word)[0]


@njit
def _item_bytes(descriptor):
    return descriptor[d.HEADER + 1]


@njit
def _append(descriptor, work, state, row, position, number):
    """Append an entry, whose number is at an address, to a state that has room for it."""
    words = _words(state)
    rows, at = words[_ROW_NUMBER], words[_ENTRIES]
    if row < 0 or row >= rows or position < 0 or position >= c.LARGEST:
        report(work, row, position, rows - 1)
        raise_error(descriptor, work, d.OUTSIDE_ROWS)
    words[_STATE_WORDS + at] = row * _HALF + position
    target = state + FLAT_HEADER + 8 * (_STATE_WORDS + words[_CAPACITY] + at)
    if _item_bytes(descriptor) == 8:
        array_at(target, 1, word)[0] = array_at(number, 1, word)[0]
    else:
        array_at(target, 1, word)[0] = array_at(number, 1, half_word)[0]
    words[_ENTRIES] = at + 1
    words[_BOUND] = max(words[_BOUND], position + 1)


@njit
def _words(state):
    """Return the words of a state, of as many as it has room for."""
    head = array_at(state + FLAT_HEADER, _STATE_WORDS, word)
    return array_at(state + FLAT_HEADER, _STATE_WORDS + 2 * head[_CAPACITY], word)


@njit
def _state_with_room(call_info, descriptor, work, rows, more):
    """Return the first argument, or a copy of it that has room for `more` entries; a new state if it is NULL."""
    if rows < 0 or rows > c.LARGEST:
        report(work, rows, 0)
        raise_error(descriptor, work, d.TOO_MANY_ROWS)
    if is_null(call_info, 0):
        return _new_state(descriptor, work, rows, max(more, _LEAST_CAPACITY))
    state = _state_of(call_info, 0, descriptor, work)
    words = _words(state)
    entries, capacity = words[_ENTRIES], words[_CAPACITY]
    if rows != words[_ROW_NUMBER]:
        report(work, rows, words[_ROW_NUMBER])
        raise_error(descriptor, work, d.STATE_SHAPE)
    if entries + more <= capacity:
        return state
    grown = _new_state(descriptor, work, rows, max(entries + more, 2 * capacity))
    copies = _words(grown)
    room = copies[_CAPACITY]
    copies[_ENTRIES], copies[_BOUND] = entries, words[_BOUND]
    for start, grown_start in ((0, 0), (capacity, room)):
        into, source = _STATE_WORDS + grown_start, _STATE_WORDS + start
        copy_elements(copies[into : into + entries], words[source : source + entries])
    return grown


@njit
def _new_state(descriptor, work, rows, capacity):
    state = new_words(descriptor, work, _STATE_WORDS + 2 * capacity)
    if state < 0:
        return raise_error(descriptor, work, state)
    head = array_at(state + FLAT_HEADER, _STATE_WORDS, word)
    head[_TYPE], head[_ENTRIES], head[_CAPACITY] = descriptor[KERNEL_TYPES], 0, capacity
    head[_ROW_NUMBER], head[_BOUND] = rows, 0
    return state


@njit
def _state_of(call_info, index, descriptor, work):
    """Return the address of a state, checked so that nothing outside of it is read."""
    state = detoast(datum_of(call_info, index))
    if check_array(state, INT8, work, index) < 0 or elements_of(state)[0] != state + FLAT_HEADER:
        raise_error(descriptor, work, d.DAMAGED_STATE)
    size = elements_of(state)[1]
    is_valid = size >= _STATE_WORDS
    if is_valid:
        head = array_at(state + FLAT_HEADER, _STATE_WORDS, word)
        is_valid = 0 <= head[_ENTRIES] <= head[_CAPACITY] <= size
        is_valid = is_valid and _STATE_WORDS + 2 * head[_CAPACITY] == size
        is_valid = is_valid and 0 <= head[_ROW_NUMBER] <= c.LARGEST and 0 <= head[_BOUND] <= c.LARGEST
        is_valid = is_valid and head[_TYPE] == descriptor[KERNEL_TYPES]
    if not is_valid:
        raise_error(descriptor, work, d.DAMAGED_STATE)
    return state

"""Kernels: the callbacks of PostgreSQL's aggregates that append rows to one piece of memory.

`tensor_collected` appends tuples for the client. `tensor_compressed_rows` appends entries, row by row, and orders them
as `tensor_compressed` does.

A state is the address of a few words, of SQL's type `internal`, so that neither users nor other processes can have one.
Its memory belongs to the aggregate, and grows without being copied from context to context.
"""

from numba import njit, types

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.block_layout import offset_of_numbers, offset_of_positions
from sparseeinsum.kernels.compiled.kernel_calls import NULL_ROW, copy_bytes, report, word
from sparseeinsum.kernels.compiled.postgresql.aggregates import aggregate_context, has_null_row
from sparseeinsum.kernels.compiled.postgresql.compressed_values import operands_of
from sparseeinsum.kernels.compiled.postgresql.compression import BLOCK, new_block
from sparseeinsum.kernels.compiled.postgresql.datums import (
    BYTES_HEADER,
    FLAT_HEADER,
    KEPT,
    allocate_huge_in,
    datum_of,
    descriptor_at,
    is_null,
    new_bytes,
    null_result,
    raise_error,
    read_row,
    unchanged_state,
    word_at,
    work_of,
)
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.postgresql.descriptors import KERNEL_TYPES

compressed_rows = load_kernels("compressed_rows")

half_word = types.int32
_grow = types.ExternalFunction("repalloc_huge", word(word, word))

# A state, in words: the bytes in use, the bytes for which there is room, and where they are; what all rows share, which
# is the length of arrays, or the number of rows; how many entries there are, and one more than the largest position.
_BYTES, _ROOM, _MEMORY, _SHARED, _ENTRIES, _BOUND = range(6)
_STATE_WORDS = 6
_LEAST_ROOM = 1 << 13

_NUMBER, _VALUE = range(2)  # the arguments of tuples
_ROW_BYTES, _ROW, _ROWS, _ELEMENT = range(4)  # those of rows of entries
_HEAD_WORDS = 2  # of a row of entries in memory: its number, and how many entries follow


@njit
def postgres_collect(call_info, description):
    """Append a tuple to a state: its number, then its value, in a multiple of 8 bytes; returns the state."""
    descriptor, work = descriptor_at(description), _work_inside_aggregate(call_info, description)
    code = read_row(call_info, 1, descriptor, work)
    if code != 0:
        return raise_error(descriptor, work, d.RESULT_IS_NULL if code == NULL_ROW else code)
    operands = operands_of(work)
    length = operands[2 * _VALUE + 1]
    state = _state_of(call_info, descriptor, work, length, d.STATE_LENGTH)
    value_bytes = length * descriptor[d.HEADER + 2 * _VALUE + 1]
    place = _room_for(state, 8 + _padded(value_bytes))
    array_at(place, 1, word)[0] = word_at(operands[2 * _NUMBER])
    copy_bytes(place + 8, operands[2 * _VALUE], value_bytes)
    return state


@njit
def postgres_collected(call_info, description):
    """Return the tuples of a state as bytes: their numbers, then their values; NULL if there are none."""
    descriptor, work = descriptor_at(description), _work_inside_aggregate(call_info, description)
    if is_null(call_info, 0) or _words(datum_of(call_info, 0))[_BYTES] == 0:
        return null_result(call_info)
    words = _words(datum_of(call_info, 0))
    value_bytes = words[_SHARED] * descriptor[d.HEADER + 2 * _VALUE + 1]
    tuple_bytes = 8 + _padded(value_bytes)
    count = words[_BYTES] // tuple_bytes
    value = new_bytes(descriptor, work, count * (8 + value_bytes))
    if value < 0:
        return raise_error(descriptor, work, value)
    numbers = value + BYTES_HEADER
    values = numbers + 8 * count
    for index in range(count):
        place = words[_MEMORY] + index * tuple_bytes
        copy_bytes(numbers + 8 * index, place, 8)
        copy_bytes(values + value_bytes * index, place + 8, value_bytes)
    return value


@njit
def postgres_compress_row(call_info, description):
    """Append the entries of a row to a state; returns the state. A row with a NULL has none."""
    descriptor, work = descriptor_at(description), _work_inside_aggregate(call_info, description)
    if has_null_row(call_info, descriptor, work):
        return unchanged_state(call_info)
    operands = operands_of(work)
    address, size = operands[2 * _ROW_BYTES], operands[2 * _ROW_BYTES + 1]
    row, rows = word_at(operands[2 * _ROW]), word_at(operands[2 * _ROWS])
    entry_bytes = 8 + _item_bytes(descriptor)
    if size % entry_bytes != 0:
        report(work, size, entry_bytes)
        return raise_error(descriptor, work, d.PART_OF_AN_ELEMENT)
    if rows < 0 or rows > c.LARGEST:
        report(work, rows, 0)
        return raise_error(descriptor, work, d.TOO_MANY_ROWS)
    state = _state_of(call_info, descriptor, work, rows, d.STATE_SHAPE)
    count = size // entry_bytes
    lowest, highest = _append_row(_words(state), row, address, count, size)
    if row < 0 or row >= rows or lowest < 0 or highest >= c.LARGEST:
        report(work, row, lowest if lowest < 0 else highest, rows - 1)
        return raise_error(descriptor, work, d.OUTSIDE_ROWS)
    return state


@njit
def postgres_compressed_rows(call_info, description):
    """Return the entries of a state, ordered by row; NULL if there are none."""
    descriptor, work = descriptor_at(description), _work_inside_aggregate(call_info, description)
    if is_null(call_info, 0):
        return null_result(call_info)
    words, item_bytes = _words(datum_of(call_info, 0)), _item_bytes(descriptor)
    rows, entries = words[_SHARED], words[_ENTRIES]
    if entries == 0:
        return null_result(call_info)
    number_type = descriptor[KERNEL_TYPES + _ELEMENT]
    result = new_block(descriptor, work, number_type, rows, entries, words[_BOUND], item_bytes)
    if result < 0:
        return raise_error(descriptor, work, result)
    block = result + FLAT_HEADER + 8 * BLOCK
    starts = array_at(block + 8 * c.BLOCK_WORDS, rows + 1, word)
    place, end = words[_MEMORY], words[_MEMORY] + words[_BYTES]
    while place < end:
        row, count = _head_of(place)
        starts[row + 1] += count
        place = _next_row(place, count, item_bytes)
    compressed_rows.accumulate(starts)
    positions, numbers = block + offset_of_positions(rows), block + offset_of_numbers(rows, entries)
    place = words[_MEMORY]
    while place < end:
        row, count = _head_of(place)
        wide = place + 8 * _HEAD_WORDS
        _narrow(array_at(positions + 4 * starts[row], count, half_word), array_at(wide, count, word))
        copy_bytes(numbers + item_bytes * starts[row], wide + 8 * count, item_bytes * count)
        starts[row] += count
        place = _next_row(place, count, item_bytes)
    compressed_rows.restore_starts(starts)
    array_at(block, c.BLOCK_WORDS, word)[c.BLOCK_LONGEST] = compressed_rows.longest_row(starts)
    return result


@njit
def _append_row(words, row, address, count, size):
    """Append entries that come as bytes; returns their lowest and their highest position, 0 if there are none."""
    if count == 0:
        return word(0), word(0)
    place = _room_for(words.ctypes.data, 8 * _HEAD_WORDS + _padded(size))
    head = array_at(place, _HEAD_WORDS, word)
    head[0], head[1] = row, count
    copy_bytes(place + 8 * _HEAD_WORDS, address, size)
    positions = array_at(place + 8 * _HEAD_WORDS, count, word)
    lowest, highest = positions[0], positions[0]
    for entry in range(count):
        lowest, highest = min(lowest, positions[entry]), max(highest, positions[entry])
    words[_ENTRIES] += count
    words[_BOUND] = max(words[_BOUND], highest + 1)
    return lowest, highest


@njit
def _head_of(place):
    """Return the number of a row in memory, and how many entries it has."""
    head = array_at(place, _HEAD_WORDS, word)
    return head[0], head[1]


@njit
def _next_row(place, count, item_bytes):
    return place + 8 * _HEAD_WORDS + _padded((8 + item_bytes) * count)


@njit
def _narrow(target, source):
    """Copy positions, which fit into 32 bits."""
    for entry in range(target.size):
        target[entry] = source[entry]


@njit
def _item_bytes(descriptor):
    return descriptor[d.HEADER + 2 * _ELEMENT + 1]


@njit
def _padded(size):
    return (size + 7) // 8 * 8


@njit
def _work_inside_aggregate(call_info, description):
    """Return the work memory, which keeps the aggregate's memory context; raises an error outside an aggregate."""
    work = work_of(call_info)
    if aggregate_context(call_info, work + 8 * KEPT) == 0:
        raise_error(descriptor_at(description), work, d.NOT_AN_AGGREGATE)
    return work


@njit
def _words(state):
    return array_at(state, _STATE_WORDS, word)


@njit
def _state_of(call_info, descriptor, work, shared, code):
    """Return the first argument, a new state if it is NULL; raises an error if it shares something else."""
    if is_null(call_info, 0):
        context = word_at(work + 8 * KEPT)
        state = allocate_huge_in(context, 8 * _STATE_WORDS)
        words = _words(state)
        words[_BYTES], words[_ROOM], words[_MEMORY] = 0, _LEAST_ROOM, allocate_huge_in(context, _LEAST_ROOM)
        words[_SHARED], words[_ENTRIES], words[_BOUND] = shared, 0, 0
        return state
    state = datum_of(call_info, 0)
    if _words(state)[_SHARED] != shared:
        report(work, shared, _words(state)[_SHARED])
        raise_error(descriptor, work, code)
    return state


@njit
def _room_for(state, size):
    """Return where so many bytes are appended to a state."""
    words = _words(state)
    used = words[_BYTES]
    if used + size > words[_ROOM]:
        room = max(used + size, 2 * words[_ROOM])
        words[_MEMORY] = _grow(words[_MEMORY], room)
        words[_ROOM] = room
    words[_BYTES] = used + size
    return words[_MEMORY] + used

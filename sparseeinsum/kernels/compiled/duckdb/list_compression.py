"""Kernels: the callback of the aggregate that compresses entries in lists.

The arguments of a row are numbers, a row, what to add to it for each number, a position, what to add to it, and how
many rows there are.
"""

from numba import njit, types

from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.duckdb.callbacks import update_callback
from sparseeinsum.kernels.compiled.duckdb.entry_chunks import append_entry, append_numbers, check_entry
from sparseeinsum.kernels.compiled.duckdb.vectors import read_row, word
from sparseeinsum.kernels.compiled.kernel_calls import ROW, report
from sparseeinsum.kernels.compiled.raw_memory import array_at

half_word = types.int32

_NUMBERS, _FIRST_ROW, _ROW_LIST, _FIRST_POSITION, _POSITION_LIST, _ROW_COUNT = range(6)  # the arguments


@njit
def _append_lists(descriptor, work, rows, states):
    """Append the entries in lists to the states of their rows; rows with a NULL have none."""
    addresses = array_at(states, rows, word)
    for index in range(rows):
        code = read_row(descriptor, work, index, work + 8 * ROW)
        if code == 0:
            code = _append_list(work, array_at(addresses[index], c.STATE_WORDS, word), descriptor[d.RESULT_BYTES])
        if code < 0:
            return code
    return 0


compression_update_lists = update_callback("compression_update_lists", _append_lists)


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
        code = check_entry(work, state, row, position, count)
        if code == 0:
            code = append_entry(state, row, position, number + item_bytes * entry, item_bytes)
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
        code = check_entry(work, state, row, position, count)
        if code < 0:
            return code
    done = 0
    while done < positions.size:
        together, row_address, position_address = append_numbers(
            state, positions.size - done, number + item_bytes * done, item_bytes
        )
        if together == 0:
            return d.OUT_OF_MEMORY
        placed_rows = array_at(row_address, together, half_word)
        placed = array_at(position_address, together, half_word)
        for entry in range(together):
            placed_rows[entry] = row
            placed[entry] = positions[done + entry] + first_position
        done += together
    state[c.BOUND] = max(state[c.BOUND], first_position + greatest + 1)
    return 0


@njit
def _integer(arguments, argument):
    return array_at(arguments[2 * argument], 1, word)[0]

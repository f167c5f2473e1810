"""Kernels: the chain of chunks in which the state of an aggregate holds entries; see kernels/compression.py."""

from numba import njit, types

from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.duckdb.vectors import copy_number, word
from sparseeinsum.kernels.compiled.kernel_calls import copy_bytes, report
from sparseeinsum.kernels.compiled.raw_memory import LARGE_PAGE, array_at, free, malloc, use_large_pages

half_word = types.int32


@njit
def check_entry(work, state, row, position, rows):
    """Return 0 if an entry fits its state, whose number of rows is that of its first entry; else an error code."""
    if state[c.HANDLE] + state[c.IS_TAKEN] != 0:
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
def append_entry(state, row, position, number, item_bytes):
    """Append an entry to the last chunk, or to a new one if that is full; returns 0 or an error code."""
    chunk = chunk_with_room(state, item_bytes)
    if chunk == 0:
        return d.OUT_OF_MEMORY
    head = array_at(chunk, c.CHUNK_WORDS, word)
    at, capacity = head[c.USED], head[c.CAPACITY]
    array_at(rows_of(chunk) + 4 * at, 1, half_word)[0] = row
    array_at(positions_of(chunk, capacity) + 4 * at, 1, half_word)[0] = position
    copy_number(numbers_of(chunk, capacity) + item_bytes * at, number, item_bytes)
    head[c.USED] = at + 1
    state[c.ENTRIES] += 1
    state[c.BOUND] = max(state[c.BOUND], position + 1)
    return 0


@njit
def append_numbers(state, most, number, item_bytes):
    """Append as many numbers as the last chunk has room for, or a new one if that is full; `most` at the most.

    Returns how many, none if there is not enough memory, and the addresses of their rows and positions, to be written.
    """
    chunk = chunk_with_room(state, item_bytes)
    if chunk == 0:
        return 0, 0, 0
    head = array_at(chunk, c.CHUNK_WORDS, word)
    used, capacity = head[c.USED], head[c.CAPACITY]
    together = min(capacity - used, most)
    copy_bytes(numbers_of(chunk, capacity) + item_bytes * used, number, item_bytes * together)
    head[c.USED] = used + together
    state[c.ENTRIES] += together
    return together, rows_of(chunk) + 4 * used, positions_of(chunk, capacity) + 4 * used


@njit
def chunk_with_room(state, item_bytes):
    """Return the last chunk, or a new one if that is full; 0 if there is not enough memory."""
    chunk = state[c.LAST]
    if chunk != 0:
        head = array_at(chunk, c.CHUNK_WORDS, word)
        if head[c.USED] < head[c.CAPACITY]:
            return chunk
    size = min(max(state[c.ENTRIES], c.LEAST_CAPACITY), c.MOST_CAPACITY)
    return add_chunk(state, size + size % 2, item_bytes)


@njit
def add_chunk(state, capacity, item_bytes):
    """Add an empty chunk to the end of the chain, and return its address; 0 if there is not enough memory."""
    size = 8 * c.CHUNK_WORDS + capacity * (8 + item_bytes)
    chunk = malloc(size)
    if chunk == 0:
        return 0
    if size >= LARGE_PAGE:
        use_large_pages(chunk, size)
    head = array_at(chunk, c.CHUNK_WORDS, word)
    head[c.NEXT], head[c.USED], head[c.CAPACITY] = 0, 0, capacity
    if state[c.LAST] == 0:
        state[c.FIRST] = chunk
    else:
        array_at(state[c.LAST], c.CHUNK_WORDS, word)[c.NEXT] = chunk
    state[c.LAST] = chunk
    return chunk


@njit
def rows_of(chunk):
    return chunk + 8 * c.CHUNK_WORDS


@njit
def positions_of(chunk, capacity):
    return rows_of(chunk) + 4 * capacity


@njit
def numbers_of(chunk, capacity):
    return positions_of(chunk, capacity) + 4 * capacity


@njit
def free_chunks(state):
    chunk = state[c.FIRST]
    while chunk != 0:
        following = array_at(chunk, c.CHUNK_WORDS, word)[c.NEXT]
        free(chunk)
        chunk = following
    state[c.FIRST], state[c.LAST] = 0, 0

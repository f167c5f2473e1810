"""Kernels: the chain of chunks in which the state of an aggregate collects tuples; see kernels/collection.py."""

from numba import njit, types

from sparseeinsum.kernels import collection as c
from sparseeinsum.kernels.compiled.duckdb.vector_memory import free_vector, new_vector_memory
from sparseeinsum.kernels.compiled.duckdb.vectors import word
from sparseeinsum.kernels.compiled.raw_memory import LARGE_PAGE, array_at, free, malloc
from sparseeinsum.kernels.duckdb.registry_layout import BIGINT

half_word = types.int32


@njit
def numbers_of(chunk):
    """Return the address of the numbers of the tuples."""
    return chunk + 8 * c.CHUNK_WORDS


@njit
def chunk_with_room(state, tuples, elements, item_bytes):
    """Return the last chunk, or a new one if that has too little room; 0 if there is not enough memory.

    Args:
        state: The words of the state.
        tuples: The number of tuples to be written.
        elements: The number of their elements, at most MOST_ELEMENTS.
        item_bytes: The bytes of an element.
    """
    last, least = state[c.LAST], c.LEAST_BYTES // item_bytes
    if last != 0:
        head = array_at(last, c.CHUNK_WORDS, word)
        if head[c.USED] + tuples <= head[c.CAPACITY] and head[c.ELEMENTS] + elements <= head[c.ELEMENT_CAPACITY]:
            return last
        least = min(2 * head[c.ELEMENT_CAPACITY], c.MOST_BYTES // item_bytes)
    element_capacity = max(elements, least)
    capacity = max(tuples, min(element_capacity * tuples // max(elements, 1), c.MOST_TUPLES))
    starts_bytes = 8 * (capacity // 2 + 1)
    size = 8 * (c.CHUNK_WORDS + capacity) + starts_bytes + item_bytes * element_capacity
    chunk, owner = _allocate(size)
    if chunk == 0:
        return 0
    head = array_at(chunk, c.CHUNK_WORDS, word)
    head[c.NEXT], head[c.USED], head[c.ELEMENTS], head[c.OWNER] = 0, 0, 0, owner
    head[c.CAPACITY], head[c.ELEMENT_CAPACITY] = capacity, element_capacity
    head[c.STARTS_ADDRESS] = numbers_of(chunk) + 8 * capacity
    head[c.ELEMENTS_ADDRESS] = head[c.STARTS_ADDRESS] + starts_bytes
    array_at(head[c.STARTS_ADDRESS], 1, half_word)[0] = 0
    append_chunks(state, chunk, chunk)
    return chunk


@njit
def _allocate(size):
    """Return memory of a chunk, 0 if there is not enough, and the vector of DuckDB that owns it, 0 if none does."""
    if size < LARGE_PAGE:
        return malloc(size), word(0)
    return new_vector_memory(BIGINT, 8, size)


@njit
def _free(chunk):
    owner = array_at(chunk, c.CHUNK_WORDS, word)[c.OWNER]
    if owner == 0:
        free(chunk)
    else:
        free_vector(owner)


@njit
def append_chunks(state, first, last):
    """Append a chain of chunks to that of a state."""
    if state[c.FIRST] == 0:
        state[c.FIRST] = first
    else:
        array_at(state[c.LAST], c.CHUNK_WORDS, word)[c.NEXT] = first
    state[c.LAST] = last


@njit
def free_chunks(first):
    """Free a chain of chunks."""
    chunk = first
    while chunk != 0:
        next_chunk = array_at(chunk, c.CHUNK_WORDS, word)[c.NEXT]
        _free(chunk)
        chunk = next_chunk

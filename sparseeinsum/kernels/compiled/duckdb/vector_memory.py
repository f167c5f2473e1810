"""Kernels: memory that vectors of DuckDB own, so that others can share it.

DuckDB's allocator keeps large memory for a while after it is freed: the next vector need not wait until the system has
cleared other pages, which takes longer than to write them.
"""

from numba import njit

from sparseeinsum.kernels.compiled.duckdb.logical_types import create_vector, destroy_vector
from sparseeinsum.kernels.compiled.duckdb.vectors import get_data, word
from sparseeinsum.kernels.compiled.raw_memory import LARGE_PAGE, array_at, free, malloc, use_large_pages


@njit
def new_vector_memory(element_type, item_bytes, size_bytes):
    """Return the address of memory of a new vector, and the vector; both are 0 if there is not enough memory.

    DuckDB would end the process if its own allocation failed, so that `malloc` is asked first.
    """
    slot, memory = malloc(8), malloc(size_bytes)
    free(memory)
    if slot == 0 or memory == 0:
        free(slot)
        return word(0), word(0)
    vector = create_vector(element_type, (size_bytes + item_bytes - 1) // item_bytes, slot)
    free(slot)
    address = get_data(vector)
    if size_bytes >= LARGE_PAGE:
        use_large_pages(address, size_bytes)
    return address, vector


@njit
def free_vector(vector):
    """Give up a vector, and its memory unless others share it."""
    slot = malloc(8)
    if slot != 0:
        array_at(slot, 1, word)[0] = vector
        destroy_vector(slot)
        free(slot)

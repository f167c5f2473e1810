"""Kernels: creates DuckDB's logical types and vectors; the handle is also written to a word of memory, the slot.

Types are numbers as in the registry: a duckdb_type plus LIST_DEPTH times the depth of lists.
"""

from numba import njit, types

from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.duckdb.registry_layout import LIST_DEPTH

word = types.int64

destroy_type = types.ExternalFunction("duckdb_destroy_logical_type", types.void(word))
destroy_vector = types.ExternalFunction("duckdb_destroy_vector", types.void(word))  # sets the slot to 0
_create_type = types.ExternalFunction("duckdb_create_logical_type", word(types.int32))
_create_list_type = types.ExternalFunction("duckdb_create_list_type", word(word))
_create_vector = types.ExternalFunction("duckdb_create_vector", word(word, word))


@njit
def create_type(kind, slot):
    """Create a logical type; returns its handle and writes it to the slot."""
    content = array_at(slot, 1, word)
    content[0] = _create_type(kind % LIST_DEPTH)
    for _ in range(kind // LIST_DEPTH):
        inner = content[0]
        outer = _create_list_type(inner)
        destroy_type(slot)
        content[0] = outer
    return content[0]


@njit
def create_vector(kind, capacity, slot):
    """Create a vector with room for `capacity` elements; returns its handle and writes it to the slot."""
    content = array_at(slot, 1, word)
    vector = _create_vector(create_type(kind, slot), capacity)
    destroy_type(slot)
    content[0] = vector
    return vector

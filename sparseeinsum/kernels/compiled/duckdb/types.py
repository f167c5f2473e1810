"""Kernels: DuckDB's logical types and vectors of them, for compiled code; each is put into a word of memory, its place.

Types are written as in the registry: a duckdb_type, and how many lists deep it is.
"""

from numba import njit, types

from sparseeinsum.kernels.compiled.memory import array_at
from sparseeinsum.kernels.duckdb.registry_layout import LIST_DEPTH

word = types.int64

destroy_type = types.ExternalFunction("duckdb_destroy_logical_type", types.void(word))
destroy_vector = types.ExternalFunction("duckdb_destroy_vector", types.void(word))  # leaves 0 in its place
_create_type = types.ExternalFunction("duckdb_create_logical_type", word(types.int32))
_create_list_type = types.ExternalFunction("duckdb_create_list_type", word(word))
_create_vector = types.ExternalFunction("duckdb_create_vector", word(word, word))


@njit
def create_type(kind, place):
    """A new logical type, which is put into its place, too."""
    made = array_at(place, 1, word)
    made[0] = _create_type(kind % LIST_DEPTH)
    for _ in range(kind // LIST_DEPTH):
        inner = made[0]
        outer = _create_list_type(inner)
        destroy_type(place)
        made[0] = outer
    return made[0]


@njit
def create_vector(kind, capacity, place):
    """A new vector with room for so many elements, which is put into its place, too."""
    made = array_at(place, 1, word)
    vector = _create_vector(create_type(kind, place), capacity)
    destroy_type(place)
    made[0] = vector
    return vector

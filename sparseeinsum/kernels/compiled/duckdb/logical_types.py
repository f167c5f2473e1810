"""Kernels: creates DuckDB's logical types and vectors; the handle is also written to a word of memory, the slot.

Types are numbers as in the registry: a duckdb_type plus LIST_DEPTH times the depth of lists.
"""

from numba import njit, types

from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.duckdb.registry_layout import ENTRY_OF, INTEGER, LIST_DEPTH, MATCH_OF

word = types.int64

TYPE_SLOTS = 4  # of `create_type_of_entries`

destroy_type = types.ExternalFunction("duckdb_destroy_logical_type", types.void(word))
destroy_vector = types.ExternalFunction("duckdb_destroy_vector", types.void(word))  # sets the slot to 0
_create_type = types.ExternalFunction("duckdb_create_logical_type", word(types.int32))
_create_list_type = types.ExternalFunction("duckdb_create_list_type", word(word))
_create_struct_type = types.ExternalFunction("duckdb_create_struct_type", word(word, word, word))
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
def create_type_of_entries(kind, names, slots):
    """Create the type of lists of entries, or of matches; returns its handle and writes it to the first slot.

    Args:
        kind: The type of the numbers, plus ENTRY_OF or MATCH_OF, plus LIST_DEPTH.
        names: The address of the addresses of the names of an entry's two fields, and of a match's three.
        slots: The address of TYPE_SLOTS slots.
    """
    content, is_match = array_at(slots, TYPE_SLOTS, word), kind >= MATCH_OF + LIST_DEPTH
    number = kind - LIST_DEPTH - (MATCH_OF if is_match else ENTRY_OF)
    content[1], content[2], content[3] = _create_type(INTEGER), _create_type(number), _create_type(number)
    content[0] = _create_struct_type(slots + 8, names + (16 if is_match else 0), 3 if is_match else 2)
    for place in range(1, TYPE_SLOTS):
        destroy_type(slots + 8 * place)
    content[1] = content[0]
    content[0] = _create_list_type(content[1])
    destroy_type(slots + 8)
    return content[0]


@njit
def create_vector(kind, capacity, slot):
    """Create a vector with room for `capacity` elements; returns its handle and writes it to the slot."""
    content = array_at(slot, 1, word)
    vector = _create_vector(create_type(kind, slot), capacity)
    destroy_type(slot)
    content[0] = vector
    return vector

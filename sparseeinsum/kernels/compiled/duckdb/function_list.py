"""Kernels: the table function `tensor_functions()`, which lists the array functions with descriptions and examples.

Its rows are data of the library, which the extra info refers to: see LIST_HEADER in registry_layout.py.
"""

from numba import njit, types

from sparseeinsum.kernels.compiled.duckdb.logical_types import create_type, destroy_type
from sparseeinsum.kernels.compiled.duckdb.vectors import get_data, get_vector
from sparseeinsum.kernels.compiled.raw_memory import array_at, free, malloc
from sparseeinsum.kernels.duckdb import registry_layout as r

word = types.int64

_VECTOR_ROWS = 2048  # duckdb_vector_size of duckdb.h

_bind_info = types.ExternalFunction("duckdb_bind_get_extra_info", word(word))
_add_column = types.ExternalFunction("duckdb_bind_add_result_column", types.void(word, word, word))
_set_cardinality = types.ExternalFunction("duckdb_bind_set_cardinality", types.void(word, word, word))
_init_info = types.ExternalFunction("duckdb_init_get_extra_info", word(word))
_set_init_data = types.ExternalFunction("duckdb_init_set_init_data", types.void(word, word, word))
_set_init_error = types.ExternalFunction("duckdb_init_set_error", types.void(word, word))
_scan_info = types.ExternalFunction("duckdb_function_get_extra_info", word(word))
_get_init_data = types.ExternalFunction("duckdb_function_get_init_data", word(word))
_set_text = types.ExternalFunction("duckdb_vector_assign_string_element", types.void(word, word, word))
_set_size = types.ExternalFunction("duckdb_data_chunk_set_size", types.void(word, word))


@njit
def function_list_bind(info):
    """Declare the columns (duckdb_table_function_bind_t)."""
    words, slot = _words_of(_bind_info(info)), malloc(8)
    if slot == 0:
        return 0  # without columns, DuckDB refuses the call
    for column in range(words[r.LIST_COLUMNS]):
        place = r.LIST_HEADER + 2 * column
        _add_column(info, words[place], create_type(words[place + 1], slot))
        destroy_type(slot)
    free(slot)
    _set_cardinality(info, words[r.LIST_ROWS], 1)
    return 0


@njit
def _words_of(address):
    """Return the words of the list at an address."""
    header = array_at(address, r.LIST_HEADER, word)
    return array_at(address, r.LIST_HEADER + header[r.LIST_COLUMNS] * (2 + header[r.LIST_ROWS]), word)


@njit
def function_list_init(info):
    """Start at row 0 (duckdb_table_function_init_t)."""
    words, progress = _words_of(_init_info(info)), malloc(8)
    if progress == 0:
        _set_init_error(info, words[r.LIST_NO_MEMORY])
        return 0
    array_at(progress, 1, word)[0] = 0
    _set_init_data(info, progress, words[r.LIST_DESTROY])
    return 0


@njit
def function_list_scan(info, chunk):
    """Return the next rows, or none at the end (duckdb_table_function_t)."""
    words, progress = _words_of(_scan_info(info)), array_at(_get_init_data(info), 1, word)
    columns, first = words[r.LIST_COLUMNS], progress[0]
    count = min(_VECTOR_ROWS, words[r.LIST_ROWS] - first)
    for column in range(columns):
        kind = words[r.LIST_HEADER + 2 * column + 1]
        values = words[r.LIST_HEADER + 2 * columns + first * columns + column :: columns]
        _write_column(get_vector(chunk, column), kind, values, count)
    progress[0] = first + count
    _set_size(chunk, count)
    return 0


@njit
def _write_column(vector, kind, values, count):
    if kind == r.BOOLEAN:
        truths = array_at(get_data(vector), count, types.uint8)
        for row in range(count):
            truths[row] = values[row]
        return
    for row in range(count):
        _set_text(vector, row, values[row])

"""Kernels: a table function that numbers rows on all threads, unlike DuckDB's `range`, which one thread reads.

`tensor_row_numbers(rows, together)` has the rows 0 to rows - 1, at most `together` of them in a vector. A thread takes
the next vector when it has computed the last one, so that no thread waits for others that have longer rows.
"""

from numba import njit, types

from sparseeinsum.kernels.compiled.duckdb.logical_types import create_type, destroy_type
from sparseeinsum.kernels.compiled.duckdb.vectors import get_data, get_vector
from sparseeinsum.kernels.compiled.raw_memory import array_at, free, malloc
from sparseeinsum.kernels.compiled.resident_access import lock_table, unlock_table
from sparseeinsum.kernels.duckdb.registry_layout import BIGINT

word = types.int64

_VECTOR_ROWS = 2048  # duckdb_vector_size of duckdb.h
_MOST_THREADS = 1 << 16  # DuckDB has fewer

# The words of the extra info, of what a call is bound to, and of its progress.
_COLUMN_NAME, _DESTROY, _INFO_WORDS = 0, 1, 2
_ROWS, _TOGETHER, _BOUND_DESTROY, _BOUND_WORDS = 0, 1, 2, 3
_NEXT, _PROGRESS_WORDS = 2, 3

_get_extra_info = types.ExternalFunction("duckdb_bind_get_extra_info", word(word))
_get_parameter = types.ExternalFunction("duckdb_bind_get_parameter", word(word, word))
_get_integer = types.ExternalFunction("duckdb_get_int64", word(word))
_is_null = types.ExternalFunction("duckdb_is_null_value", types.uint8(word))
_destroy_value = types.ExternalFunction("duckdb_destroy_value", types.void(word))
_add_column = types.ExternalFunction("duckdb_bind_add_result_column", types.void(word, word, word))
_set_bind_data = types.ExternalFunction("duckdb_bind_set_bind_data", types.void(word, word, word))
_set_cardinality = types.ExternalFunction("duckdb_bind_set_cardinality", types.void(word, word, word))
_get_bind_data = types.ExternalFunction("duckdb_init_get_bind_data", word(word))
_set_init_data = types.ExternalFunction("duckdb_init_set_init_data", types.void(word, word, word))
_set_most_threads = types.ExternalFunction("duckdb_init_set_max_threads", types.void(word, word))
_get_init_data = types.ExternalFunction("duckdb_function_get_init_data", word(word))
_set_size = types.ExternalFunction("duckdb_data_chunk_set_size", types.void(word, word))


@njit
def row_numbers_bind(info):
    """Read the arguments, and declare one column (duckdb_table_function_bind_t)."""
    extra = array_at(_get_extra_info(info), _INFO_WORDS, word)
    slot, bound = malloc(8), malloc(8 * _BOUND_WORDS)
    if slot == 0 or bound == 0:
        free(slot)
        free(bound)
        return 0  # without a column, DuckDB refuses the call
    words = array_at(bound, _BOUND_WORDS, word)
    words[_ROWS] = max(_parameter(info, 0, slot), 0)
    words[_TOGETHER] = min(max(_parameter(info, 1, slot), 1), _VECTOR_ROWS)
    words[_BOUND_DESTROY] = extra[_DESTROY]
    _add_column(info, extra[_COLUMN_NAME], create_type(BIGINT, slot))
    destroy_type(slot)
    free(slot)
    _set_bind_data(info, bound, extra[_DESTROY])
    _set_cardinality(info, words[_ROWS], 1)
    return 0


@njit
def _parameter(info, index, slot):
    """Return an argument; 0 for NULL."""
    content = array_at(slot, 1, word)
    content[0] = _get_parameter(info, index)
    number = _get_integer(content[0]) if _is_null(content[0]) & 1 == 0 else 0
    _destroy_value(slot)
    return number


@njit
def row_numbers_init(info):
    """Start at row 0 (duckdb_table_function_init_t)."""
    bound = array_at(_get_bind_data(info), _BOUND_WORDS, word)
    progress = malloc(8 * _PROGRESS_WORDS)
    if progress != 0:
        words = array_at(progress, _PROGRESS_WORDS, word)
        words[_ROWS], words[_TOGETHER], words[_NEXT] = bound[_ROWS], bound[_TOGETHER], 0
    _set_init_data(info, progress, bound[_BOUND_DESTROY])
    vectors = (bound[_ROWS] + bound[_TOGETHER] - 1) // bound[_TOGETHER]
    _set_most_threads(info, min(max(vectors, 1), _MOST_THREADS))
    return 0


@njit
def row_numbers_scan(info, chunk):
    """Return the next rows (duckdb_table_function_t)."""
    progress = _get_init_data(info)
    if progress == 0:
        _set_size(chunk, 0)
        return 0
    words = array_at(progress, _PROGRESS_WORDS, word)
    lock_table()
    first = words[_NEXT]
    count = min(words[_TOGETHER], words[_ROWS] - first)
    words[_NEXT] = first + count
    unlock_table()
    numbers = array_at(get_data(get_vector(chunk, 0)), count, word)
    for index in range(count):
        numbers[index] = first + index
    _set_size(chunk, count)
    return 0

"""Kernels: a table function without rows that steers DuckDB's joins.

DuckDB builds a hash table on the side that it expects to be small and copies that side's arrays once per match; the
other side's arrays it only refers to. `UNION ALL ... FROM tensor_no_tuples()` makes the side that carries arrays
look large, so that it is the one that probes. The function returns nothing and costs nothing.
"""

from numba import njit, types

from sparseeinsum.kernels.compiled.duckdb.types import create_type, destroy_type
from sparseeinsum.kernels.compiled.duckdb.vectors import free, malloc
from sparseeinsum.kernels.duckdb.registry_layout import BIGINT

word = types.int64

EXPECTED_TUPLES = 1_000_000_000

_get_extra_info = types.ExternalFunction("duckdb_bind_get_extra_info", word(word))
_add_column = types.ExternalFunction("duckdb_bind_add_result_column", types.void(word, word, word))
_set_cardinality = types.ExternalFunction("duckdb_bind_set_cardinality", types.void(word, word, word))
_set_rows = types.ExternalFunction("duckdb_data_chunk_set_size", types.void(word, word))


@njit
def hint_bind(info):
    """duckdb_table_function_bind_t: one column, whose name the extra info is."""
    place = malloc(8)
    if place != 0:
        _add_column(info, _get_extra_info(info), create_type(BIGINT, place))
        destroy_type(place)
        free(place)
    _set_cardinality(info, EXPECTED_TUPLES, 0)
    return 0


@njit
def hint_init(info):
    """duckdb_table_function_init_t: nothing to prepare."""
    return 0


@njit
def hint_scan(info, chunk):
    """duckdb_table_function_t: no rows."""
    _set_rows(chunk, 0)
    return 0

"""Kernels: a table function without rows that decides the build side of DuckDB's joins.

DuckDB builds a hash table of the operand that it expects to be smaller, and copies the arrays of this build side once
for each match; it does not copy those of the probe side. `UNION ALL ... FROM tensor_no_tuples()` makes the operand with
arrays look large, so that it becomes the probe side. The function returns no rows and takes no time.
"""

from numba import njit, types

from sparseeinsum.kernels.compiled.duckdb.logical_types import create_type, destroy_type
from sparseeinsum.kernels.compiled.raw_memory import free, malloc
from sparseeinsum.kernels.duckdb.registry_layout import BIGINT

word = types.int64

EXPECTED_TUPLES = 1_000_000_000

_get_extra_info = types.ExternalFunction("duckdb_bind_get_extra_info", word(word))
_add_column = types.ExternalFunction("duckdb_bind_add_result_column", types.void(word, word, word))
_set_cardinality = types.ExternalFunction("duckdb_bind_set_cardinality", types.void(word, word, word))
_set_rows = types.ExternalFunction("duckdb_data_chunk_set_size", types.void(word, word))


@njit
def hint_bind(info):
    """Declare one column, whose name is the extra info (duckdb_table_function_bind_t)."""
    slot = malloc(8)
    if slot != 0:
        _add_column(info, _get_extra_info(info), create_type(BIGINT, slot))
        destroy_type(slot)
        free(slot)
    _set_cardinality(info, EXPECTED_TUPLES, 0)
    return 0


@njit
def hint_init(info):
    """Do nothing: there is nothing to prepare (duckdb_table_function_init_t)."""
    return 0


@njit
def hint_scan(info, chunk):
    """Return a chunk without rows (duckdb_table_function_t)."""
    _set_rows(chunk, 0)
    return 0

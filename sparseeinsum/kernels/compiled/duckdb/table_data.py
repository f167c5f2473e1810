"""Kernels: frees what table functions of DuckDB remember about a call."""

from numba import njit

from sparseeinsum.kernels.compiled.raw_memory import free


@njit
def table_data_destroy(data):
    """Free memory that a table function gave to DuckDB (duckdb_delete_callback_t)."""
    free(data)
    return 0

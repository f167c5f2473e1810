"""Kernels: DuckDB's C API, reached through the shared object of the Python wheel, which exports all of it."""

import ctypes
from collections.abc import Callable
from functools import cache

import _duckdb

Pointer = ctypes.c_void_p

_LIBRARY = ctypes.CDLL(_duckdb.__file__)

# The functions that compiled code calls.
CALLED_BY_KERNELS = (
    "duckdb_data_chunk_get_vector",
    "duckdb_data_chunk_get_size",
    "duckdb_data_chunk_set_size",
    "duckdb_vector_get_data",
    "duckdb_vector_get_validity",
    "duckdb_vector_reference_vector",
    "duckdb_vector_ensure_validity_writable",
    "duckdb_create_vector",
    "duckdb_destroy_vector",
    "duckdb_list_vector_get_child",
    "duckdb_list_vector_get_size",
    "duckdb_list_vector_reserve",
    "duckdb_list_vector_set_size",
    "duckdb_scalar_function_get_extra_info",
    "duckdb_scalar_function_set_error",
    "duckdb_aggregate_function_get_extra_info",
    "duckdb_aggregate_function_set_error",
    "duckdb_bind_get_extra_info",
    "duckdb_bind_add_result_column",
    "duckdb_bind_set_cardinality",
)


@cache
def c_function(name: str, result: object, *arguments: object) -> Callable[..., int]:
    """A function of `duckdb.h` with its C types."""
    return ctypes.CFUNCTYPE(result, *arguments)((name, _LIBRARY))  # type: ignore[arg-type]  # types are built here


def addresses_for_kernels() -> dict[str, int]:
    """Addresses of the C API functions that compiled code calls."""
    return {name: address_in(_LIBRARY, name) for name in CALLED_BY_KERNELS}


def address_in(library: ctypes.CDLL, name: str) -> int:
    """Address of a function in a shared library; AttributeError where it has none of that name."""
    return ctypes.cast(library[name], Pointer).value or 0

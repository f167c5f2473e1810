"""Kernels: DuckDB's C API, reached through the shared object of the Python wheel, which exports all of it."""

import ctypes
from collections.abc import Callable
from functools import cache

import _duckdb

Pointer = ctypes.c_void_p

_LIBRARY = ctypes.CDLL(_duckdb.__file__)

C_API_VERSION = "v1.5.6"  # the first that has all of the functions below

# The functions that compiled code calls, and their places in the table that DuckDB hands to extensions of that version
# or a later one, `duckdb_ext_api_v1` of
# https://github.com/duckdb/duckdb/blob/v1.5-variegata/src/include/duckdb_extension.h, where places do not change again.
SLOTS = {
    "duckdb_connect": 3,
    "duckdb_disconnect": 6,
    "duckdb_create_logical_type": 156,
    "duckdb_create_list_type": 159,
    "duckdb_destroy_logical_type": 184,
    "duckdb_data_chunk_get_vector": 190,
    "duckdb_data_chunk_get_size": 191,
    "duckdb_data_chunk_set_size": 192,
    "duckdb_vector_get_data": 194,
    "duckdb_vector_get_validity": 195,
    "duckdb_vector_ensure_validity_writable": 196,
    "duckdb_list_vector_get_child": 199,
    "duckdb_list_vector_get_size": 200,
    "duckdb_list_vector_set_size": 201,
    "duckdb_list_vector_reserve": 202,
    "duckdb_create_scalar_function": 209,
    "duckdb_destroy_scalar_function": 210,
    "duckdb_scalar_function_set_name": 211,
    "duckdb_scalar_function_set_special_handling": 213,
    "duckdb_scalar_function_set_volatile": 214,
    "duckdb_scalar_function_add_parameter": 215,
    "duckdb_scalar_function_set_return_type": 216,
    "duckdb_scalar_function_set_extra_info": 217,
    "duckdb_scalar_function_set_function": 218,
    "duckdb_scalar_function_get_extra_info": 220,
    "duckdb_scalar_function_set_error": 221,
    "duckdb_create_scalar_function_set": 222,
    "duckdb_destroy_scalar_function_set": 223,
    "duckdb_add_scalar_function_to_set": 224,
    "duckdb_register_scalar_function_set": 225,
    "duckdb_create_aggregate_function": 226,
    "duckdb_destroy_aggregate_function": 227,
    "duckdb_aggregate_function_set_name": 228,
    "duckdb_aggregate_function_add_parameter": 229,
    "duckdb_aggregate_function_set_return_type": 230,
    "duckdb_aggregate_function_set_functions": 231,
    "duckdb_aggregate_function_set_destructor": 232,
    "duckdb_aggregate_function_set_extra_info": 235,
    "duckdb_aggregate_function_get_extra_info": 236,
    "duckdb_aggregate_function_set_error": 237,
    "duckdb_create_aggregate_function_set": 238,
    "duckdb_destroy_aggregate_function_set": 239,
    "duckdb_add_aggregate_function_to_set": 240,
    "duckdb_register_aggregate_function_set": 241,
    "duckdb_create_table_function": 242,
    "duckdb_destroy_table_function": 243,
    "duckdb_table_function_set_name": 244,
    "duckdb_table_function_set_extra_info": 247,
    "duckdb_table_function_set_bind": 248,
    "duckdb_table_function_set_init": 249,
    "duckdb_table_function_set_function": 251,
    "duckdb_register_table_function": 253,
    "duckdb_bind_get_extra_info": 254,
    "duckdb_bind_add_result_column": 255,
    "duckdb_bind_set_cardinality": 260,
    "duckdb_create_vector": 536,
    "duckdb_destroy_vector": 537,
    "duckdb_vector_reference_vector": 540,
}
CALLED_BY_KERNELS = tuple(SLOTS)
COPIED_SLOTS = 1 + max(SLOTS.values())


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

"""Kernels: calls DuckDB's C API, which the shared object of DuckDB's Python wheel exports."""

import ctypes
from collections.abc import Callable
from functools import cache

import _duckdb

from sparseeinsum.kernels.duckdb.api_table import COPIED_SLOTS, SLOTS

Pointer = ctypes.c_void_p

_LIBRARY = ctypes.CDLL(_duckdb.__file__)


@cache
def c_function(name: str, result: object, *arguments: object) -> Callable[..., int]:
    """Return the function of `duckdb.h` of that name, with the C types of its result and arguments."""
    return ctypes.CFUNCTYPE(result, *arguments)((name, _LIBRARY))  # type: ignore[arg-type]  # types are built here


@cache
def function_table() -> "ctypes.Array[ctypes.c_int64]":
    """Return the function table of the C API, which DuckDB passes to extension files but not to static extensions."""
    table = (ctypes.c_int64 * COPIED_SLOTS)()
    for name, slot in SLOTS.items():
        table[slot] = address_in(_LIBRARY, name)
    return table


def address_in(library: ctypes.CDLL, name: str) -> int:
    """Return the address of a function in a shared library; raise AttributeError if it has none of that name."""
    return ctypes.cast(library[name], Pointer).value or 0

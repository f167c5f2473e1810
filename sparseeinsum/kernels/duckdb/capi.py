"""Kernels: DuckDB's C API, reached through the shared object of the Python wheel, which exports all of it."""

import ctypes
from collections.abc import Callable
from functools import cache

import _duckdb

from sparseeinsum.kernels.duckdb.api_table import COPIED_SLOTS, SLOTS

Pointer = ctypes.c_void_p

_LIBRARY = ctypes.CDLL(_duckdb.__file__)


@cache
def c_function(name: str, result: object, *arguments: object) -> Callable[..., int]:
    """A function of `duckdb.h` with its C types."""
    return ctypes.CFUNCTYPE(result, *arguments)((name, _LIBRARY))  # type: ignore[arg-type]  # types are built here


@cache
def function_table() -> "ctypes.Array[ctypes.c_int64]":
    """The table that DuckDB hands to extension files, and to static extensions not: functions at their places."""
    table = (ctypes.c_int64 * COPIED_SLOTS)()
    for name, slot in SLOTS.items():
        table[slot] = address_in(_LIBRARY, name)
    return table


def address_in(library: ctypes.CDLL, name: str) -> int:
    """Address of a function in a shared library; AttributeError where it has none of that name."""
    return ctypes.cast(library[name], Pointer).value or 0

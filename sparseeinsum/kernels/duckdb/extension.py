"""Kernels: registers the array functions as a static extension of the DuckDB databases that this process opens."""

import ctypes
from functools import cache

from sparseeinsum.kernels.duckdb.api_table import C_API_VERSION
from sparseeinsum.kernels.duckdb.capi import Pointer
from sparseeinsum.kernels.duckdb.library import available_library, has_library
from sparseeinsum.kernels.duckdb.static_extension import register_static_extension

EXTENSION_NAME = "sparseeinsum"


@cache  # registers once in a process
def register_extension(version: str) -> None:
    """Register the array functions with every DuckDB database that this process opens from now on.

    If no library is available, or it would have to be compiled first, databases open without the functions.
    """
    register_static_extension(EXTENSION_NAME, version, C_API_VERSION, _ENTRY_POINT)


def _enter(info: int, access: int) -> bool:
    library = available_library() if has_library() else None
    return library is None or library.enter(info, access)


_ENTRY_POINT = ctypes.CFUNCTYPE(ctypes.c_bool, Pointer, Pointer)(_enter)

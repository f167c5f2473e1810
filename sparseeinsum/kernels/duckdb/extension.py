"""Kernels: the array functions as a static extension of every DuckDB database that this process opens from now on."""

import ctypes
from functools import cache

from sparseeinsum.kernels.duckdb.api_table import C_API_VERSION
from sparseeinsum.kernels.duckdb.capi import Pointer
from sparseeinsum.kernels.duckdb.library import has_library, library_at_hand
from sparseeinsum.kernels.duckdb.static_extension import register_static_extension

EXTENSION_NAME = "sparseeinsum"


@cache  # once a process
def register_extension(version: str) -> None:
    """Make every DuckDB database opened from now on in this process know the array functions.

    Where they would have to be compiled first, or cannot be had, databases are as if this package were not there.
    """
    register_static_extension(EXTENSION_NAME, version, C_API_VERSION, _ENTRY_POINT)


def _enter(info: int, access: int) -> bool:
    library = library_at_hand() if has_library() else None
    return library is None or library.enter(info, access)


_ENTRY_POINT = ctypes.CFUNCTYPE(ctypes.c_bool, Pointer, Pointer)(_enter)

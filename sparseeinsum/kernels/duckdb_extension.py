"""Kernels: the array functions as a static extension of every DuckDB database that this process opens from now on."""

import ctypes
from functools import cache

from sparseeinsum.kernels.duckdb_capi import Pointer, c_function
from sparseeinsum.kernels.duckdb_registration import register_functions
from sparseeinsum.kernels.duckdb_static_extension import register_static_extension

EXTENSION_NAME = "sparseeinsum"


class _Access(ctypes.Structure):
    _fields_ = (
        ("set_error", ctypes.CFUNCTYPE(None, Pointer, ctypes.c_char_p)),
        ("get_database", ctypes.CFUNCTYPE(Pointer, Pointer)),
        ("get_api", ctypes.CFUNCTYPE(Pointer, Pointer, ctypes.c_char_p)),
    )


@cache  # once a process
def register_extension(version: str) -> None:
    """Make every DuckDB database opened from now on in this process know the array functions."""
    register_static_extension(EXTENSION_NAME, version, "v1.2.0", _ENTRY_POINT)


def _enter(info: int, access: "ctypes._Pointer[_Access]") -> bool:
    """The extension's entry point: register everything on a connection of its own, closed again at once."""
    try:
        database = ctypes.cast(access.contents.get_database(info), ctypes.POINTER(Pointer)).contents
        connection = Pointer()
        c_function("duckdb_connect", ctypes.c_int, Pointer, ctypes.POINTER(Pointer))(database, ctypes.byref(connection))
        try:
            register_functions(connection)
        finally:
            c_function("duckdb_disconnect", None, ctypes.POINTER(Pointer))(ctypes.byref(connection))
    except Exception as error:  # C cannot see a Python exception: it becomes the error of opening the database
        access.contents.set_error(info, f"{EXTENSION_NAME}: {error}".encode())
        return False
    return True


_ENTRY_POINT = ctypes.CFUNCTYPE(ctypes.c_bool, Pointer, ctypes.POINTER(_Access))(_enter)

"""Kernels: a static extension of every DuckDB database that this process opens from now on.

`duckdb_register_static_extension` of the Python wheel's shared object takes a description; DuckDB then runs the
entry point once for each database opened afterwards. A database opened before keeps what it had.
"""

import ctypes
from collections import ChainMap
from functools import cache

from sparseeinsum.kernels import blas, duckdb_capi, residents, user_functions
from sparseeinsum.kernels.duckdb_capi import Pointer, c_function
from sparseeinsum.kernels.duckdb_registry import REGISTRY, registry
from sparseeinsum.kernels.native import NativeCode, kernel_objects
from sparseeinsum.kernels.static_data import Block, in_memory

EXTENSION_NAME = "sparseeinsum"

_OK = 0


class _Description(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32),
        ("set_error", Pointer),
        ("internal", Pointer),
        ("name", ctypes.c_char_p),
        ("extension_version", ctypes.c_char_p),
        ("api_version", ctypes.c_char_p),
        ("entry_cpp", Pointer),
        ("entry_capi_v1", Pointer),
        ("entry_capi_v2", Pointer),
    )


class _Access(ctypes.Structure):
    _fields_ = (
        ("set_error", ctypes.CFUNCTYPE(None, Pointer, ctypes.c_char_p)),
        ("get_database", ctypes.CFUNCTYPE(Pointer, Pointer)),
        ("get_api", ctypes.CFUNCTYPE(Pointer, Pointer, ctypes.c_char_p)),
    )


@cache  # once a process: DuckDB keeps the callbacks
def register_extension(version: str) -> None:
    """Make every DuckDB database opened from now on in this process know the functions."""
    register = c_function("duckdb_register_static_extension", ctypes.c_int32, Pointer)
    status = register(ctypes.cast(_describer(version), Pointer))
    if status != _OK:
        raise ImportError(f"DuckDB refused the static extension {EXTENSION_NAME!r} (status {status})")


@cache
def _describer(version: str) -> "ctypes._FuncPointer":
    entry = ctypes.cast(_ENTRY_POINT, Pointer).value

    def describe(description: "ctypes._Pointer[_Description]") -> int:
        fields = description.contents
        fields.version = 1
        fields.name = EXTENSION_NAME.encode()
        fields.extension_version = version.encode()
        fields.api_version = duckdb_capi.C_API_VERSION.encode()
        fields.entry_capi_v1 = entry
        return _OK

    return ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(_Description))(describe)


def _enter(info: int, access: "ctypes._Pointer[_Access]") -> bool:
    """The extension's entry point: register everything."""
    try:
        words = [ctypes.c_int64] * 3
        enter = ctypes.CFUNCTYPE(ctypes.c_int64, *words)(_native_code().address_of("enter_extension"))
        return bool(enter(info, ctypes.addressof(access.contents), ctypes.addressof(_registry()[REGISTRY])))
    except Exception as error:  # C cannot see a Python exception: it becomes the error of opening the database
        access.contents.set_error(info, f"{EXTENSION_NAME}: {error}".encode())
        return False


_ENTRY_POINT = ctypes.CFUNCTYPE(ctypes.c_bool, Pointer, ctypes.POINTER(_Access))(_enter)


@cache  # as long as the process: databases keep addresses
def _registry() -> dict[str, Block]:
    return in_memory(tuple(registry()), _native_code().address_of)


@cache
def _native_code() -> NativeCode:
    hosts = (duckdb_capi, blas, user_functions, residents)
    return NativeCode(kernel_objects("duckdb"), dict(ChainMap(*(host.addresses_for_kernels() for host in hosts))))

"""Kernels: the array functions as a static extension of every DuckDB database that this process opens from now on."""

import ctypes
from collections import ChainMap
from functools import cache

from sparseeinsum.kernels import blas, residents, user_functions
from sparseeinsum.kernels.duckdb import capi
from sparseeinsum.kernels.duckdb.capi import Pointer
from sparseeinsum.kernels.duckdb.registry import REGISTRY, registry
from sparseeinsum.kernels.duckdb.static_extension import register_static_extension
from sparseeinsum.kernels.native import NativeCode, kernel_objects
from sparseeinsum.kernels.static_data import Block, in_memory

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
    register_static_extension(EXTENSION_NAME, version, capi.C_API_VERSION, _ENTRY_POINT)


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
    hosts = (capi, blas, user_functions, residents)
    return NativeCode(kernel_objects("duckdb"), dict(ChainMap(*(host.addresses_for_kernels() for host in hosts))))

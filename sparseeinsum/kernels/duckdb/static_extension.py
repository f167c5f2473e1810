"""Kernels: extensions that are linked into this process, which every DuckDB database opened from now on loads.

`duckdb_register_static_extension` of the Python wheel (`duckdb_static_extension.h`) takes a description; DuckDB then
runs the entry point once for each database opened afterwards. A database opened before keeps what it had.
"""

import ctypes
import warnings
from collections.abc import Callable

from sparseeinsum.kernels.duckdb.capi import Pointer, c_function
from sparseeinsum.kernels.duckdb.capi_v2 import Slot
from sparseeinsum.kernels.duckdb.declarations import Factory, factory_of
from sparseeinsum.kernels.duckdb.library import has_library

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


class _Input(ctypes.Structure):
    _fields_ = (("get_api", Pointer), ("extension", Pointer), ("context", Pointer), ("error", Slot))


_EntryOfVersion2 = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Input))
_Describe = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(_Description))
_KEPT: list[object] = []  # DuckDB calls these as long as the process lives


def register_static_extension(name: str, version: str, api_version: str, entry: "ctypes._FuncPointer") -> None:
    """Register an extension.

    Args:
        name: Of the extension.
        version: Of the extension.
        api_version: The version of the C API that it is written against, v1... or v2...
        entry: The entry point for that version.

    Raises:
        ImportError: DuckDB refuses it.
    """
    field = "entry_capi_v2" if api_version.startswith("v2") else "entry_capi_v1"

    def describe(description: "ctypes._Pointer[_Description]") -> int:
        fields = description.contents
        fields.version = 1
        fields.name = name.encode()
        fields.extension_version = version.encode()
        fields.api_version = api_version.encode()
        setattr(fields, field, ctypes.cast(entry, Pointer).value)
        return _OK

    describer = _Describe(describe)
    _KEPT.extend((describer, entry))
    register = c_function("duckdb_register_static_extension", ctypes.c_int32, Pointer)
    status = register(ctypes.cast(describer, Pointer))
    if status != _OK:
        raise ImportError(f"DuckDB refused the static extension {name!r} (status {status})")


def register_described_extension(name: str, version: str, enter: Callable[[int, Factory], None], contents: str) -> None:
    """Register an extension of version 2 of the C API, without which everything else works.

    It enters databases that get the array functions, and no others.

    Args:
        name: Of the extension.
        version: Of the extension.
        enter: Gets the extension's handle and a factory, for each database that is opened.
        contents: What a user lacks where DuckDB refuses it, which is a warning.
    """

    def checked(given: "ctypes._Pointer[_Input]") -> None:
        if not has_library():
            return
        entry = given.contents
        try:
            with factory_of(entry.context) as factory:
                enter(entry.extension, factory)
        except Exception as error:  # C cannot see it
            warnings.warn(f"DuckDB refused {contents}: {error}", stacklevel=2)

    register_static_extension(name, version, "v2.0.0", _EntryOfVersion2(checked))

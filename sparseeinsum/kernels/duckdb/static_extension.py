"""Kernels: registers static extensions, which every DuckDB database loads that this process opens from now on.

`duckdb_register_static_extension` of the Python wheel (`duckdb_static_extension.h`) takes a description. DuckDB then
runs the entry point once for each database that is opened afterwards; databases that are already open do not change.
"""

import ctypes
import warnings
from collections.abc import Callable

from sparseeinsum.kernels.duckdb.capi import Pointer, c_function
from sparseeinsum.kernels.duckdb.capi_v2 import ErrorSlot
from sparseeinsum.kernels.duckdb.declarations import ValueFactory, factory_of
from sparseeinsum.kernels.duckdb.library import has_library

_OK = 0


class _ExtensionDescription(ctypes.Structure):
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


class _EntryInput(ctypes.Structure):
    _fields_ = (("get_api", Pointer), ("extension", Pointer), ("context", Pointer), ("error", ErrorSlot))


_EntryOfVersion2 = ctypes.CFUNCTYPE(None, ctypes.POINTER(_EntryInput))
_Describe = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(_ExtensionDescription))
_CALLBACKS: list[object] = []  # DuckDB calls these as long as the process runs


def register_static_extension(name: str, version: str, api_version: str, entry: "ctypes._FuncPointer") -> None:
    """Register a static extension with DuckDB.

    Args:
        name: The name of the extension.
        version: The version of the extension.
        api_version: The version of the C API that the extension uses, v1... or v2...
        entry: The entry point for that version.

    Raises:
        ImportError: DuckDB refuses the extension.
    """
    field = "entry_capi_v2" if api_version.startswith("v2") else "entry_capi_v1"

    # DuckDB reads the texts after the description has been made, so that they must outlive the call.
    encoded_name, encoded_version, encoded_api_version = name.encode(), version.encode(), api_version.encode()

    def describe(description: "ctypes._Pointer[_ExtensionDescription]") -> int:
        fields = description.contents
        fields.version = 1
        fields.name = encoded_name
        fields.extension_version = encoded_version
        fields.api_version = encoded_api_version
        setattr(fields, field, ctypes.cast(entry, Pointer).value)
        return _OK

    describer = _Describe(describe)
    _CALLBACKS.extend((describer, entry))
    register = c_function("duckdb_register_static_extension", ctypes.c_int32, Pointer)
    status = register(ctypes.cast(describer, Pointer))
    if status != _OK:
        raise ImportError(f"DuckDB refused the static extension {name!r} (status {status})")


def register_described_extension(
    name: str, version: str, enter: Callable[[int, ValueFactory], None], contents: str
) -> None:
    """Register an optional static extension through version 2 of the C API; failures are warnings.

    It is loaded only into databases that get the array functions.

    Args:
        name: The name of the extension.
        version: The version of the extension.
        enter: Called for each database that is opened, with the extension's handle and a factory.
        contents: What the extension contains, for the warning if DuckDB refuses it.
    """

    def enter_or_warn(entry_input: "ctypes._Pointer[_EntryInput]") -> None:
        if not has_library():
            return
        entry = entry_input.contents
        try:
            with factory_of(entry.context) as factory:
                enter(entry.extension, factory)
        except Exception as error:  # it cannot pass through C
            warnings.warn(f"DuckDB refused {contents}: {error}", stacklevel=2)

    register_static_extension(name, version, "v2.0.0", _EntryOfVersion2(enter_or_warn))

"""Kernels: calls version 2 of DuckDB's C API (`duckdb_v2.h`): raises its errors, releases handles, passes texts."""

import ctypes
from collections.abc import Callable
from functools import cache

from sparseeinsum.kernels.duckdb.capi import Pointer, c_function

_INVALID_INPUT = 2001  # DUCKDB_V2_ERROR_INPUT_INVALID

ErrorSlot = ctypes.POINTER(Pointer)  # where a callback of DuckDB puts its error


class DuckdbString(ctypes.Structure):
    """`duckdb_v2_str` and `duckdb_v2_identifier_t`: a view of UTF-8 text that another object owns."""

    _fields_ = (("address", Pointer), ("length", ctypes.c_uint64))

    def read(self) -> str:
        """Copy the text into a Python string."""
        return ctypes.string_at(self.address, self.length).decode() if self.length else ""


def text(value: str) -> "ctypes._CArgObject":
    """Convert a Python string to an argument of `call`."""
    encoded = value.encode()
    buffer = ctypes.create_string_buffer(encoded, len(encoded))
    string = DuckdbString(ctypes.addressof(buffer), len(encoded))
    string.buffer = buffer  # keeps the memory as long as the view
    return ctypes.byref(string)


@cache
def constant_text(value: str) -> "ctypes._CArgObject":
    """Convert a string that every database gets, such as the name of a function, to an argument of `call`, once."""
    return text(value)


def call(name: str, *arguments: object) -> None:
    """Call a function whose arguments fit into a word each; its last parameter, the error, is added here.

    Raises:
        RuntimeError: The function reports an error.
    """
    error = Pointer()
    if _function(name, len(arguments) + 1)(*arguments, ctypes.byref(error)) == 0:
        return
    error_text = DuckdbString()
    c_function("duckdb_v2_error_info_get_text", ctypes.c_int, Pointer, Pointer)(error, ctypes.byref(error_text))
    message = error_text.read()
    c_function("duckdb_v2_error_info_destroy", ctypes.c_int, Pointer)(ctypes.byref(error))
    raise RuntimeError(f"{name}: {message}")


@cache
def _function(name: str, parameters: int) -> Callable[..., int]:
    return c_function(name, ctypes.c_int, *[Pointer] * parameters)


def call_for_handle(name: str, *arguments: object) -> int:
    """Call a function that returns a handle or a number through its last argument; the caller does not own it."""
    handle = Pointer()
    call(name, *arguments, ctypes.byref(handle))
    return handle.value or 0


class OwnedHandle:
    """A context with the handle that function `name` creates, which is destroyed at its end as an object of `kind`."""

    __slots__ = ("_handle", "_kind")

    def __init__(self, kind: str, name: str, *arguments: object) -> None:
        self._kind = kind
        self._handle = Pointer(call_for_handle(name, *arguments))

    def __enter__(self) -> int:
        return self._handle.value or 0

    def __exit__(self, *_: object) -> None:
        _destroyer(self._kind)(ctypes.byref(self._handle))


@cache
def _destroyer(kind: str) -> Callable[..., int]:
    return c_function(f"duckdb_v2_{kind}_destroy", ctypes.c_int, Pointer)


def set_error(slot: "ctypes._Pointer[ctypes.c_void_p]", message: str) -> None:
    """Report an error from a callback to DuckDB."""
    c_function("duckdb_v2_error_info_set_code", ctypes.c_int, Pointer, ctypes.c_int)(slot.contents, _INVALID_INPUT)
    c_function("duckdb_v2_error_info_set_text", ctypes.c_int, Pointer, Pointer)(slot.contents, text(message))

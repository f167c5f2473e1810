"""Kernels: version 2 of DuckDB's C API (`duckdb_v2.h`): calls that raise, handles that are given back, texts."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

from sparseeinsum.kernels.duckdb.capi import Pointer, c_function

_INVALID_INPUT = 2001  # DUCKDB_V2_ERROR_INPUT_INVALID

Slot = ctypes.POINTER(Pointer)  # of an error that a callback may set


class Text(ctypes.Structure):
    """`duckdb_v2_str`, which also stands for `duckdb_v2_identifier_t`: UTF-8 that its owner keeps."""

    _fields_ = (("address", Pointer), ("length", ctypes.c_uint64))

    def read(self) -> str:
        """The text."""
        return ctypes.string_at(self.address, self.length).decode() if self.length else ""


def text(value: str) -> "ctypes._CArgObject":
    """A text as an argument."""
    encoded = value.encode()
    buffer = ctypes.create_string_buffer(encoded, len(encoded))
    made = Text(ctypes.addressof(buffer), len(encoded))
    made.buffer = buffer  # lives as long
    return ctypes.byref(made)


def call(name: str, *arguments: object) -> None:
    """Call a function, all of whose arguments fit into a word; the last one, its error, is added here.

    Raises:
        RuntimeError: DuckDB refuses.
    """
    error = Pointer()
    function = c_function(name, ctypes.c_int, *[Pointer] * (len(arguments) + 1))
    if function(*arguments, ctypes.byref(error)) == 0:
        return
    found = Text()
    c_function("duckdb_v2_error_info_get_text", ctypes.c_int, Pointer, Pointer)(error, ctypes.byref(found))
    message = found.read()
    c_function("duckdb_v2_error_info_destroy", ctypes.c_int, Pointer)(ctypes.byref(error))
    raise RuntimeError(f"{name}: {message}")


def found(name: str, *arguments: object) -> int:
    """Call a function that hands back a handle or a number through its last argument; the caller does not own it."""
    handle = Pointer()
    call(name, *arguments, ctypes.byref(handle))
    return handle.value or 0


@contextmanager
def owned(kind: str, name: str, *arguments: object) -> Iterator[int]:
    """The handle that a function makes, given back at the end."""
    handle = Pointer(found(name, *arguments))
    try:
        yield handle.value or 0
    finally:
        c_function(f"duckdb_v2_{kind}_destroy", ctypes.c_int, Pointer)(ctypes.byref(handle))


def set_error(slot: "ctypes._Pointer[ctypes.c_void_p]", message: str) -> None:
    """Let the callback that DuckDB made fail."""
    c_function("duckdb_v2_error_info_set_code", ctypes.c_int, Pointer, ctypes.c_int)(slot.contents, _INVALID_INPUT)
    c_function("duckdb_v2_error_info_set_text", ctypes.c_int, Pointer, Pointer)(slot.contents, text(message))

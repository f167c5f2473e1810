"""Kernels: the library for DuckDB, opened in this process: once, and as long as the process, as databases call it."""

import ctypes
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sparseeinsum.errors import KernelsError, PackageError
from sparseeinsum.extras import imported
from sparseeinsum.kernels.blas import Blas, find_blas
from sparseeinsum.kernels.duckdb.capi import Pointer, address_in, function_table
from sparseeinsum.kernels.libraries import libraries_for_duckdb
from sparseeinsum.kernels.platforms import NATIVE, processor_asked_for
from sparseeinsum.kernels.residents import LIVE
from sparseeinsum.kernels.symbols import (
    BLAS_WORDS,
    CHOSEN_PROCESSOR,
    CONFIGURE,
    ENTRY_POINT,
    STOP_WORD,
    TABLE_OF_RESIDENTS,
    TABLE_OF_USERS_FUNCTIONS,
)

_BUILDER = "sparseeinsum.kernels.building.make"
AddressOf = Callable[[str], int]
_OPENED: list["Library"] = []  # at most one


class Access(ctypes.Structure):
    """`duckdb_extension_access` of duckdb_extension.h; for a static extension, DuckDB leaves `get_api` empty."""

    _fields_ = (("set_error", Pointer), ("get_database", Pointer), ("get_api", Pointer))


_get_api = ctypes.CFUNCTYPE(Pointer, Pointer, Pointer)(lambda info, version: ctypes.addressof(function_table()))


@dataclass(frozen=True, slots=True)
class Library:
    """Compiled code in this process.

    Attributes:
        address_of: Finds what it exports.
        processor: That which its code is for.
        blas: What computes matrix products; None where it does so itself.
    """

    address_of: AddressOf
    processor: str
    blas: Blas | None

    def enter(self, info: int, access: int) -> bool:
        """Register all functions in a database that DuckDB is opening; False after DuckDB was told what is wrong."""
        completed = Access.from_buffer_copy(Access.from_address(access))
        completed.get_api = ctypes.cast(_get_api, Pointer)
        enter = ctypes.CFUNCTYPE(ctypes.c_bool, Pointer, Pointer)(self.address_of(ENTRY_POINT))
        return bool(enter(info, ctypes.addressof(completed)))

    @property
    def users_functions(self) -> int:
        """Address of the table of users' functions; see udfs/expression.py."""
        return self._table(TABLE_OF_USERS_FUNCTIONS)

    def stop_kernels(self, stops: bool) -> None:
        """Let all kernels that run fail soon, or let kernels run again."""
        ctypes.c_int64.from_address(self._table(STOP_WORD)).value = int(stops)

    def count_residents(self) -> int:
        """How many arrays of this process are resident now."""
        return ctypes.c_int64.from_address(self._table(TABLE_OF_RESIDENTS) + 8 * LIVE).value

    def _table(self, symbol: str) -> int:
        return int(ctypes.CFUNCTYPE(Pointer)(self.address_of(symbol))() or 0)


def library_at_hand() -> Library | None:
    """The library that is open, or can be opened now; None where it would have to be compiled first.

    Raises:
        KernelsError: There is none for this platform, or the environment asks for a processor that it has not.
    """
    for path in () if _OPENED else libraries_for_duckdb():
        with suppress(OSError):  # the system refuses it; another one may do
            library = _opened(_exports_of(path))
            if library is not None:
                _OPENED.append(library)
                break
    return _OPENED[0] if _OPENED else None


def stop_kernels(stops: bool) -> None:
    """Let all kernels of the library that is open, if one is, fail soon, or let them run again."""
    for library in _OPENED:
        library.stop_kernels(stops)


def has_library() -> bool:
    """Whether there is a library that is open, or can be opened now."""
    try:
        return library_at_hand() is not None
    except KernelsError:
        return False


def require_library() -> Library:
    """The library, compiled now where there is none.

    Raises:
        KernelsError: It cannot be had; the message says why, and what to do.
    """
    library = library_at_hand()
    if library is None:
        try:
            builder = imported(
                _BUILDER, "compile", "compiling the kernels, of which there are none for this processor,"
            )
        except PackageError as error:
            raise KernelsError(str(error)) from error
        library = _opened(builder.compiled_library(processor_asked_for()))
        if library is None:
            raise KernelsError("the kernels were compiled for another processor than the one at hand")
        _OPENED.append(library)
    return library


def level_at_hand() -> str | None:
    """The best level of which there is a library that can be opened now, beside one for this very processor.

    Raises:
        KernelsError: As `library_at_hand`.
    """
    processors = (_processor_of(_exports_of(path)) for path in libraries_for_duckdb())
    return next((processor for processor in processors if processor not in (None, NATIVE)), None)


def _exports_of(path: Path) -> AddressOf:
    shared = ctypes.CDLL(str(path))
    return lambda symbol: address_in(shared, symbol)


def _opened(address_of: AddressOf) -> Library | None:
    """The library, told which BLAS there is; None where its code is for another processor."""
    processor = _processor_of(address_of)
    if processor is None:
        return None
    blas = find_blas()
    if blas is not None:
        words = (ctypes.c_int64 * BLAS_WORDS)(*blas.addresses)
        ctypes.CFUNCTYPE(None, Pointer)(address_of(CONFIGURE))(ctypes.addressof(words))
    return Library(address_of, processor, blas)


def _processor_of(address_of: AddressOf) -> str | None:
    """The processor whose code a library chooses here; None where it has none for the one at hand."""
    name: bytes | None = ctypes.CFUNCTYPE(ctypes.c_char_p)(address_of(CHOSEN_PROCESSOR))()
    return None if name is None else name.decode()

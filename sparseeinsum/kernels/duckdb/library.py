"""Kernels: opens the library for DuckDB in this process, once; it stays open because databases call it."""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from sparseeinsum.environment.extras import imported
from sparseeinsum.errors import KernelsError, PackageError
from sparseeinsum.kernels.blas import Blas, find_blas
from sparseeinsum.kernels.collection import KEPT_TYPE
from sparseeinsum.kernels.duckdb.capi import Pointer, address_in, c_function, function_table
from sparseeinsum.kernels.gpus import Gpu
from sparseeinsum.kernels.libraries import libraries_for_duckdb
from sparseeinsum.kernels.platforms import NATIVE, processor_asked_for
from sparseeinsum.kernels.residents import (
    ELEMENTS,
    HANDLE,
    LIVE,
    MAX_KEPT,
    MAX_RESIDENTS,
    SLOT_WORDS,
    SLOTS,
    TYPE,
    VECTOR,
)
from sparseeinsum.kernels.symbols import (
    BLAS_WORDS,
    CHOSEN_PROCESSOR,
    CONFIGURE,
    ENTRY_POINT,
    GEMM_DTYPES,
    RELEASE,
    STOP_WORD,
    TABLE_OF_RESIDENTS,
    TABLE_OF_USER_FUNCTIONS,
)

_BUILDER = "sparseeinsum.kernels.building.make"
AddressOf = Callable[[str], int]
_UNLIMITED = (1 << 31) - 1  # threads of a matrix product
_MOST_KEPT_SHARE = 0.75  # of the slots that statements share with what is kept
_PRODUCTS_LOCK = Lock()
_SINGLE_THREADED: list[None] = []  # one entry for each context of single_threaded_products
_NO_BLAS = (0,) * (len(GEMM_DTYPES) + 1)
_GPUS: list[Gpu | None] = []  # the last is in use; kernels may still call the others
_OPENED: list["DuckdbLibrary"] = []  # empty until the library is open, then one


class ExtensionAccess(ctypes.Structure):
    """`duckdb_extension_access` of duckdb_extension.h. DuckDB leaves `get_api` empty for static extensions."""

    _fields_ = (("set_error", Pointer), ("get_database", Pointer), ("get_api", Pointer))


_get_api = ctypes.CFUNCTYPE(Pointer, Pointer, Pointer)(lambda info, version: ctypes.addressof(function_table()))


@dataclass(frozen=True, slots=True)
class KeptElements:
    """Memory that is kept.

    Attributes:
        address: Where it begins.
        element_type: The type of its elements, a duckdb_type of duckdb.h.
    """

    address: int
    element_type: int


@dataclass(frozen=True, slots=True)
class DuckdbLibrary:
    """The library of compiled code that this process has opened.

    Attributes:
        address_of: Returns the address of an exported symbol.
        processor: The processor that the code is for.
        blas: The BLAS that computes matrix products; None if the library computes them itself.
    """

    address_of: AddressOf
    processor: str
    blas: Blas | None

    def enter(self, info: int, access: int) -> bool:
        """Register all functions with a database that DuckDB is opening; False if DuckDB was given an error instead."""
        completed = ExtensionAccess.from_buffer_copy(ExtensionAccess.from_address(access))
        completed.get_api = ctypes.cast(_get_api, Pointer)
        enter = ctypes.CFUNCTYPE(ctypes.c_bool, Pointer, Pointer)(self.address_of(ENTRY_POINT))
        return bool(enter(info, ctypes.addressof(completed)))

    @property
    def user_functions(self) -> int:
        """Address of the table of users' functions; see udfs/expression.py."""
        return self._table(TABLE_OF_USER_FUNCTIONS)

    def stop_kernels(self, stops: bool) -> None:
        """Make all running kernels fail soon, or let kernels run again."""
        ctypes.c_int64.from_address(self._table(STOP_WORD)).value = int(stops)

    def configure_products(self, threads: int, gpu: Gpu | None) -> None:
        """Say how matrix products are computed.

        Args:
            threads: The most threads of a product; it never has more than the BLAS is set to, or its statement has.
            gpu: What computes the large ones; None if the processor does.
        """
        addresses = _NO_BLAS if self.blas is None else self.blas.addresses
        gpu_words = (0, 0) if gpu is None else (gpu.address, gpu.least_products)
        words = (ctypes.c_int64 * BLAS_WORDS)(*addresses, threads, *gpu_words, 0)
        ctypes.CFUNCTYPE(None, Pointer)(self.address_of(CONFIGURE))(ctypes.addressof(words))

    def count_residents(self) -> int:
        """Return the number of arrays that statements of this process have in memory now."""
        return ctypes.c_int64.from_address(self._table(TABLE_OF_RESIDENTS) + 8 * LIVE).value

    def release(self, handle: int) -> bool:
        """Release memory that `tensor_keep` returned a handle of; False if there is none."""
        return bool(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(self.address_of(RELEASE))(handle))

    def lost(self, handles: Sequence[int]) -> frozenset[int]:
        """Return no handle: memory stays until it is released."""
        return frozenset()

    def kept_bytes(self, handles: Sequence[int]) -> list[int]:
        """Return the bytes of memory that is kept under every handle."""
        return [int(self._slot(handle)[ELEMENTS]) * 8 for handle in handles]

    def kept_tuples(self, handle: int) -> KeptElements | None:
        """Return where the first chunk of tuples is that are kept under a handle; None if it is that of an array."""
        slot = self._slot(handle)
        return KeptElements(int(slot[VECTOR]), int(slot[TYPE]) - KEPT_TYPE) if slot[TYPE] >= KEPT_TYPE else None

    def kept_array(self, handle: int) -> KeptElements:
        """Return where the elements of an array are that is kept under a handle."""
        slot = self._slot(handle)
        return KeptElements(c_function("duckdb_vector_get_data", Pointer, Pointer)(slot[VECTOR]), int(slot[TYPE]))

    def _slot(self, handle: int) -> "ctypes.Array[ctypes.c_int64]":
        table = self._table(TABLE_OF_RESIDENTS)
        return (ctypes.c_int64 * SLOT_WORDS).from_address(table + 8 * (SLOTS + handle % MAX_RESIDENTS * SLOT_WORDS))

    def count_kept(self) -> int:
        """Return the number of arrays that stay in memory between statements of this process."""
        table = self._table(TABLE_OF_RESIDENTS)
        words = (ctypes.c_int64 * (MAX_RESIDENTS * SLOT_WORDS)).from_address(table + 8 * SLOTS)
        return sum(1 for handle in words[HANDLE::SLOT_WORDS] if handle) - self.count_residents()

    def can_keep(self) -> bool:
        """Return whether there is room for more arrays that stay, and for those that statements make meanwhile."""
        return self.count_kept() < _MOST_KEPT_SHARE * MAX_KEPT

    def _table(self, symbol: str) -> int:
        return int(ctypes.CFUNCTYPE(Pointer)(self.address_of(symbol))() or 0)


def available_library() -> DuckdbLibrary | None:
    """Return the library, opened now if need be; None if it would have to be compiled first.

    Raises:
        KernelsError: There are no kernels for this platform, or the environment asks for a processor that it lacks.
    """
    for path in () if _OPENED else libraries_for_duckdb():
        with suppress(OSError):  # this one cannot be loaded; the next may
            if _open_library(_exports_of(path)):
                break
    return _OPENED[0] if _OPENED else None


def stop_kernels(stops: bool) -> None:
    """Make all running kernels of the open library, if any, fail soon, or let kernels run again."""
    for library in _OPENED:
        library.stop_kernels(stops)


@contextmanager
def single_threaded_products() -> Iterator[None]:
    """In the context, every matrix product runs in one thread of the processor: otherwise, sums round differently."""
    with _PRODUCTS_LOCK:
        _SINGLE_THREADED.append(None)
        _configure_products()
    try:
        yield
    finally:
        with _PRODUCTS_LOCK:
            _SINGLE_THREADED.pop()
            _configure_products()


def use_gpu(gpu: Gpu | None) -> None:
    """Let a GPU compute the large matrix products of this process from now on, or the processor all of them."""
    with _PRODUCTS_LOCK:
        _GPUS.append(gpu)
        _configure_products()


def gpu_in_use() -> Gpu | None:
    """Return the GPU that computes large matrix products; None if the processor computes all."""
    return _GPUS[-1] if _GPUS else None


def _configure_products() -> None:
    for library in _OPENED:
        if _SINGLE_THREADED:
            library.configure_products(1, None)
        else:
            library.configure_products(_UNLIMITED, gpu_in_use())


def has_library() -> bool:
    """Whether a library is open or can be opened without compiling it."""
    try:
        return available_library() is not None
    except KernelsError:
        return False


def require_library() -> DuckdbLibrary:
    """Return the library, compiled now if there is none.

    Raises:
        KernelsError: The library cannot be compiled or opened; the message says why, and what to do.
    """
    library = available_library()
    if library is None:
        try:
            builder = imported(
                _BUILDER, "compile", "compiling the kernels, of which there are none for this processor,"
            )
        except PackageError as error:
            raise KernelsError(str(error)) from error
        if not _open_library(builder.compile_library(processor_asked_for())):
            raise KernelsError("the kernels were compiled for another processor than that of this machine")
    return _OPENED[0]


def available_level() -> str | None:
    """Return the best processor level for which a library is available; one for exactly this processor does not count.

    Raises:
        KernelsError: As for `available_library`.
    """
    processors = (_processor_of(_exports_of(path)) for path in libraries_for_duckdb())
    return next((processor for processor in processors if processor not in (None, NATIVE)), None)


def _exports_of(path: Path) -> AddressOf:
    library = ctypes.CDLL(str(path))
    return lambda symbol: address_in(library, symbol)


def _open_library(address_of: AddressOf) -> bool:
    """Open a library and tell it how to compute products; return whether its code is for this processor."""
    processor = _processor_of(address_of)
    if processor is None:
        return False
    with _PRODUCTS_LOCK:
        _OPENED.append(DuckdbLibrary(address_of, processor, find_blas()))
        _configure_products()
    return True


def _processor_of(address_of: AddressOf) -> str | None:
    """Return the processor whose code a library chooses on this machine; None if no code of it can run here."""
    name: bytes | None = ctypes.CFUNCTYPE(ctypes.c_char_p)(address_of(CHOSEN_PROCESSOR))()
    return None if name is None else name.decode()

"""Kernels: the matrix products of scipy's BLAS, as addresses for compiled code."""

import ctypes
from collections.abc import Mapping

import scipy  # loads scipy.linalg where it is first used

from sparseeinsum.kernels.duckdb.capi import Pointer, address_in

_THREADS = "openblas_set_num_threads_local"


def addresses_for_kernels() -> dict[str, int]:
    """The matrix products of all dtypes, and how to have them run on the calling thread only."""
    return {
        **{f"sparseeinsum_{name}": _capsule_address(name) for name in ("dgemm", "sgemm", "zgemm", "cgemm")},
        "sparseeinsum_blas_threads": _threads_address(),
    }


def _capsule_address(name: str) -> int:
    capsules: Mapping[str, object] = scipy.linalg.cython_blas.__pyx_capi__
    capsule = capsules[name]
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = Pointer, [ctypes.py_object, ctypes.c_char_p]
    return int(get_pointer(capsule, get_name(capsule)))


def _threads_address() -> int:
    library = ctypes.CDLL(
        scipy.linalg.cython_blas.__file__
    )  # finds the functions of the BLAS that it is linked with, too
    if hasattr(library, _THREADS):
        return address_in(library, _THREADS)
    return address_in(ctypes.CDLL(None), "abs")  # another BLAS: a function of the same type that changes nothing

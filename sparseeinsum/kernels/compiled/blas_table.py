"""Kernels: reads the table of the BLAS that a library calls."""

from numba import njit, types

from sparseeinsum.kernels.compiled.raw_memory import address_of, array_at
from sparseeinsum.kernels.symbols import BLAS, BLAS_WORDS

_address = address_of(BLAS)


@njit
def blas_table():
    """Return the words of the table, which symbols.py numbers."""
    return array_at(_address(), BLAS_WORDS, types.int64)


@njit
def has_blas():
    """Whether matrix products are computed by a BLAS, which has threads of its own."""
    return blas_table()[0] != 0

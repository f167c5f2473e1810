"""Kernels: finds the BLAS that numpy or scipy ships, and the addresses of its matrix products."""

import ctypes
import importlib.util
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sparseeinsum.kernels.symbols import GEMM_DTYPES

_PACKAGES = ("numpy", "scipy")
_FOLDERS = ("{parent}/{package}.libs", "{parent}/{package}/.dylibs")  # where wheels keep bundled libraries
_FILES = "*openblas*"
_LETTERS = {"f64": "d", "f32": "s", "c128": "z", "c64": "c"}
_ROUTINES = ("scipy_{letter}gemm_64_", "scipy_{letter}gemm_", "{letter}gemm_64_", "{letter}gemm_")
_THREADS = "openblas_set_num_threads_local"  # sets the number of threads, returns the old one


@dataclass(frozen=True, slots=True)
class Blas:
    """A BLAS library that this process has loaded.

    Attributes:
        name: The library and the package that ships it.
        addresses: The gemm of each of GEMM_DTYPES, then the function that sets the number of threads, 0 if it has none.
    """

    name: str
    addresses: tuple[int, ...]


def find_blas() -> Blas | None:
    """Find the BLAS of numpy, else that of scipy; None if neither ships one that can be called."""
    return next((blas for package in _PACKAGES for blas in _libraries_of(package)), None)


def _libraries_of(package: str) -> Iterator[Blas]:
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return
    parent = Path(spec.origin).parent.parent
    for folder in _FOLDERS:
        for path in sorted(Path(folder.format(parent=parent, package=package)).glob(_FILES)):
            with suppress(OSError):
                addresses = _addresses(ctypes.CDLL(str(path)))
                if addresses is not None:
                    yield Blas(f"OpenBLAS of {package}", addresses)


def _addresses(library: ctypes.CDLL) -> tuple[int, ...] | None:
    for routine in _ROUTINES:
        names = [routine.format(letter=_LETTERS[dtype]) for dtype in GEMM_DTYPES]
        if all(hasattr(library, name) for name in names):
            threads = _address(library, _THREADS) if hasattr(library, _THREADS) else 0
            return (*(_address(library, name) for name in names), threads)
    return None


def _address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(library[name], ctypes.c_void_p).value or 0

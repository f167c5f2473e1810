"""Kernels: the matrix products of the BLAS that numpy or scipy brings, as addresses for compiled code."""

import ctypes
import importlib.util
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sparseeinsum.kernels.symbols import GEMM_DTYPES

_PACKAGES = ("numpy", "scipy")
_FOLDERS = ("{parent}/{package}.libs", "{parent}/{package}/.dylibs")  # where wheels have libraries of others
_FILES = "*openblas*"
_LETTERS = {"f64": "d", "f32": "s", "c128": "z", "c64": "c"}
_ROUTINES = ("scipy_{letter}gemm_64_", "scipy_{letter}gemm_", "{letter}gemm_64_", "{letter}gemm_")
_THREADS = "openblas_set_num_threads_local"  # of the calling thread; returns how many there were


@dataclass(frozen=True, slots=True)
class Blas:
    """A BLAS in this process.

    Attributes:
        name: Of the library, and who brought it.
        addresses: Of its gemm for each of GEMM_DTYPES, and of what sets its threads, 0 where that has none.
    """

    name: str
    addresses: tuple[int, ...]


def find_blas() -> Blas | None:
    """The BLAS of numpy, else that of scipy; None where neither brings one that can be called."""
    return next((blas for package in _PACKAGES for blas in _brought_by(package)), None)


def _brought_by(package: str) -> Iterator[Blas]:
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

"""Kernels: matrix products on a GPU, which cupy computes: the arrays go there and the product comes back."""

import ctypes
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from sparseeinsum.environment.extras import imported
from sparseeinsum.errors import KernelsError
from sparseeinsum.kernels.gpus import Gpu
from sparseeinsum.kernels.symbols import GEMM_DTYPES

_LOGGER = logging.getLogger(__name__)

# The number of the dtype, whether A and B are transposed, m, n, k, then address and leading dimension of A, B and C.
PRODUCT_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 12)
_COMPUTED, _NOT_COMPUTED = 0, 1
_NUMPY_DTYPES: dict[str, type[np.inexact[Any]]] = {
    "f64": np.float64,
    "f32": np.float32,
    "c128": np.complex128,
    "c64": np.complex64,
}
_FREE_SHARE = 0.8  # of the memory that is free on the GPU, which other programs may use, too
_MEASURED_ORDER = 1024  # of the matrices whose product is timed
_MEASUREMENTS = 3

T = TypeVar("T")  # an array of the GPU


class ArrayLibrary(Protocol[T]):
    """What is used of cupy."""

    def asarray(self, array: NDArray[Any]) -> T:
        """Copy an array of the processor's memory to the GPU."""

    def matmul(self, first: T, second: T) -> T:
        """The matrix product, on the GPU."""

    def asnumpy(self, array: T) -> NDArray[Any]:
        """Copy an array of the GPU to the processor's memory."""


def open_gpu() -> Gpu:
    """The GPU that cupy uses, measured against this machine's processor.

    Raises:
        PackageError: cupy is not installed.
        KernelsError: There is no GPU, or cupy cannot use it.
    """
    cupy = imported("cupy", "gpu", "computing on a GPU")
    try:
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)
        return measured_gpu(cupy, f"cuda: {properties['name'].decode()}", lambda: _free_bytes(cupy))
    except Exception as error:  # cupy raises errors of each of NVIDIA's libraries
        raise KernelsError(
            f"cupy cannot compute on a GPU here ({error}); `python -c 'import cupy; cupy.show_config()'` says what it "
            "finds, and the device cpu needs no GPU"
        ) from error


def measured_gpu(library: ArrayLibrary[T], name: str, free_bytes: Callable[[], float]) -> Gpu:
    """A GPU that an array library computes on.

    Args:
        library: The array library.
        name: The name of the GPU.
        free_bytes: Returns how much memory of the GPU is free.
    """
    product = GpuProduct(library, free_bytes)
    matrix = np.ones((_MEASURED_ORDER, _MEASURED_ORDER))
    result = np.zeros_like(matrix)
    on_processor = _least_seconds(lambda: np.matmul(matrix, matrix, out=result))
    on_gpu = _least_seconds(lambda: product.add(matrix, matrix, result))
    products, copied = _MEASURED_ORDER**3, 4 * _MEASURED_ORDER**2
    # A product of this order is nearly all copying on the GPU, and all computing on the processor.
    least_products = max(int((on_gpu / copied) / (on_processor / products)), 1)
    return Gpu(name, least_products, on_gpu / (2 * products), PRODUCT_FUNCTION(product))


def _least_seconds(run: Callable[[], object]) -> float:
    def seconds() -> float:
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    run()  # the first run loads libraries
    return min(seconds() for _ in range(_MEASUREMENTS))


def _free_bytes(cupy: ModuleType) -> float:
    free, _ = cupy.cuda.runtime.memGetInfo()
    return float(free + cupy.get_default_memory_pool().free_bytes())


@dataclass(frozen=True, slots=True)
class GpuProduct(Generic[T]):
    """Matrix products by an array library; as a function, one of PRODUCT_FUNCTION.

    Attributes:
        library: The array library.
        free_bytes: Returns how much memory of the GPU is free.
    """

    library: ArrayLibrary[T]
    free_bytes: Callable[[], float]

    def __call__(self, dtype: int, ta: int, tb: int, m: int, n: int, k: int, *matrices: int) -> int:
        """Add A B to C, or return 1 and leave C as it is, if the GPU cannot: its memory may be too small."""
        a, lda, b, ldb, c, ldc = matrices
        number = _NUMPY_DTYPES[GEMM_DTYPES[dtype]]
        try:
            return self.add(
                _matrix_at(a, (m, k), lda, ta != 0, number),
                _matrix_at(b, (k, n), ldb, tb != 0, number),
                _matrix_at(c, (m, n), ldc, False, number),
            )
        except Exception as error:  # none may reach the kernel
            _warn(f"{type(error).__name__}: {error}")
            return _NOT_COMPUTED

    def add(self, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> int:
        """Add A (m, k) times B (k, n) to C (m, n), as many rows at a time as fit into the GPU's memory."""
        rows = (_FREE_SHARE * self.free_bytes() - b.nbytes) // ((a.shape[1] + c.shape[1]) * c.itemsize)
        if rows < 1:
            return _NOT_COMPUTED
        there, step = self.library.asarray(b), int(min(rows, len(a)))
        products = [
            self.library.asnumpy(self.library.matmul(self.library.asarray(a[first : first + step]), there))
            for first in range(0, len(a), step)
        ]
        for number, product in enumerate(products):  # after all are there: a product is added whole, or not at all
            c[number * step : number * step + len(product)] += product
        return _COMPUTED


@cache  # says the same only once
def _warn(reason: str) -> None:
    _LOGGER.warning("the processor computes a matrix product that the GPU could not compute: %s", reason)


def _matrix_at(
    address: int, shape: tuple[int, int], leading: int, is_transposed: bool, dtype: type[np.inexact[Any]]
) -> NDArray[Any]:
    """A matrix in memory; if transposed, its columns are contiguous, else its rows."""
    lines, length = shape[::-1] if is_transposed else shape
    item = np.dtype(dtype).itemsize
    memory = (ctypes.c_byte * (((lines - 1) * leading + length) * item)).from_address(address)
    matrix = np.ndarray((lines, length), dtype, memoryview(memory), strides=(leading * item, item))
    return matrix.T if is_transposed else matrix

"""Kernels: a GPU that computes large matrix products."""

import ctypes
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU that computes large matrix products.

    Attributes:
        name: Its name, as `cuda: NVIDIA H100 80GB HBM3`.
        least_products: The multiply-adds for each number that is copied, from which on the GPU is faster.
        seconds_per_operation: Of a floating-point operation of a large product, copies included.
        function: What the library calls, a PRODUCT_FUNCTION.
    """

    name: str
    least_products: int
    seconds_per_operation: float
    function: Any

    @property
    def address(self) -> int:
        """The address of the function."""
        return ctypes.cast(self.function, ctypes.c_void_p).value or 0

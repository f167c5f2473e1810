"""Results: whether a dense array fits into the memory of the machine."""

import math
from typing import Any

import numpy as np

from sparseeinsum.engines.machine_memory import has_memory, machine_memory
from sparseeinsum.errors import ResultSizeError


def check_dense_size(what: str, shape: tuple[int, ...], dtype: np.dtype[Any], instead: str) -> None:
    """Refuse a dense array that does not fit into memory.

    Args:
        what: What becomes an array, for the message.
        shape: The shape of the array.
        dtype: The dtype of the array.
        instead: What to do instead, for the message.

    Raises:
        ResultSizeError: The array would take more than the memory of this machine.
    """
    size = math.prod(shape) * dtype.itemsize
    if not has_memory(size):
        raise ResultSizeError(
            f"{what} as a dense array of shape {shape} takes {size:,} bytes, and this machine has "
            f"{machine_memory():,} for that; {instead}"
        )

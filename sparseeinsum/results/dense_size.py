"""Results: whether a dense array fits into the memory of the machine."""

import math
from functools import lru_cache
from typing import Any

import duckdb
import numpy as np

from sparseeinsum.engines.byte_sizes import parse_bytes
from sparseeinsum.errors import ResultSizeError

_SMALL = 1 << 28  # bytes of an array that fits into the memory of every machine


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
    if size > _SMALL and size > _memory():
        raise ResultSizeError(
            f"{what} as a dense array of shape {shape} takes {size:,} bytes, and this machine has {_memory():,} for "
            f"that; {instead}"
        )


@lru_cache(maxsize=1)
def _memory() -> int:
    """The bytes that a database in this process would use by default: 80 % of the machine's or container's memory."""
    with duckdb.connect() as connection:
        ((limit,),) = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    return parse_bytes(str(limit))

"""Kernels: lets the processor fetch rows of an array into its caches, some rows before they are read."""

from numba import njit, types

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels.compiled.raw_memory import array_at

compressed_rows = load_kernels("compressed_rows")

ROWS_AHEAD = 8  # how many products earlier a row is fetched
_LINE_BYTES, _MOST_FETCHED = 64, 512  # processors fetch the rest of long rows


@njit
def fetch_row(address, row_bytes):
    """Fetch the row of `row_bytes` bytes at an address."""
    memory = array_at(address, 1, types.uint8)
    for offset in range(0, max(min(row_bytes, _MOST_FETCHED), 0), _LINE_BYTES):
        compressed_rows.prefetch(memory, offset)

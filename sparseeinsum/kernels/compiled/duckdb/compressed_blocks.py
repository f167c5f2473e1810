"""Kernels: reads blocks of compressed entries, in callbacks of DuckDB's functions; see kernels/compression.py."""

from numba import njit

from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.collection import COLLECTED_TYPE
from sparseeinsum.kernels.compiled.duckdb.pins import pin
from sparseeinsum.kernels.compiled.duckdb.vectors import integer_at, word
from sparseeinsum.kernels.compiled.kernel_calls import report
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.compiled.resident_access import type_of
from sparseeinsum.kernels.duckdb.registry_layout import BIGINT


@njit
def pin_block(descriptor, work, place, argument, row):
    """Pin the block whose handle is an argument of a row, at an address; returns 0 or an error code."""
    return _pin_block(work, place, integer_at(work, argument, row), c.COMPRESSED_TYPE + descriptor[d.ELEMENT_TYPE])


@njit
def pin_block_of_any_type(work, place, argument, row):
    """Pin a block, whatever the type of its numbers is; as `pin_block`."""
    handle = integer_at(work, argument, row)
    kind = word(type_of(handle))
    if kind >= 0 and (kind < c.COMPRESSED_TYPE or kind >= COLLECTED_TYPE):
        kind = word(d.NOT_RESIDENT)
    if kind < 0:
        report(work, handle, 0)
        return kind
    return _pin_block(work, place, handle, kind)


@njit
def _pin_block(work, place, handle, kind):
    code = pin(place, handle, kind, BIGINT)
    if code < 0:
        report(work, handle, 0)
    return min(code, 0)


@njit
def range_of_row(work, block, number):
    """Return where the entries of a row begin and end; the begin is an error code if there is no such row."""
    rows = array_at(block, c.BLOCK_WORDS, word)[c.BLOCK_ROWS]
    if number < 0 or number >= rows:
        report(work, number, 0, rows - 1)
        return d.OUTSIDE_ROWS, 0
    starts = array_at(block + 8 * (c.BLOCK_WORDS + number), 2, word)
    return starts[0], starts[1]

"""Kernels: keeps resident memory after the statement that made it, until the process releases it.

`tensor_keep(handle)` returns another handle of the same memory; collected tuples are moved from the one to the other.
"""

from numba import njit

from sparseeinsum.kernels import collection
from sparseeinsum.kernels import compression as c
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.duckdb.callbacks import scalar_callback
from sparseeinsum.kernels.compiled.duckdb.collected_chunks import free_chunks
from sparseeinsum.kernels.compiled.duckdb.logical_types import create_vector, destroy_vector
from sparseeinsum.kernels.compiled.duckdb.vector_memory import free_vector
from sparseeinsum.kernels.compiled.duckdb.vectors import (
    FIRST_ROW,
    argument_is_valid,
    get_data,
    integer_at,
    set_null,
    word,
)
from sparseeinsum.kernels.compiled.kernel_calls import report
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.compiled.resident_access import enter, remove, share, type_of, withdraw
from sparseeinsum.kernels.duckdb.registry_layout import BIGINT
from sparseeinsum.kernels.reservation import RESERVED_TYPE
from sparseeinsum.kernels.residents import MAX_KEPT


@njit
def _keep_rows(descriptor, work, rows, result):
    """Keep the memory of all handles; NULL for NULL."""
    handles = array_at(get_data(result), rows, word)
    for row in range(rows):
        if not argument_is_valid(work, 0, row):
            set_null(result, row)
            continue
        handles[row] = _keep(work, integer_at(work, 0, row))
        if handles[row] < 0:
            return handles[row]
    return word(0)


@njit
def _keep(work, handle):
    """Return a second handle, or an error code."""
    kind, place = type_of(handle), work + 8 * FIRST_ROW
    if kind >= RESERVED_TYPE:
        kind = word(d.NOT_RESIDENT)
    if kind < 0:
        report(work, handle, 0)
        return kind
    if kind >= collection.COLLECTED_TYPE:
        return _keep_tuples(work, handle, kind)
    vector = create_vector(BIGINT if kind >= c.COMPRESSED_TYPE else kind, 1, place)
    elements = share(handle, kind, vector)
    kept = enter(vector, elements, kind, MAX_KEPT) if elements >= 0 else word(elements)
    if kept <= 0:
        report(work, MAX_KEPT if kept == 0 else handle, 0)
        destroy_vector(place)
    return kept if kept != 0 else word(d.TOO_MANY_RESIDENTS)


@njit
def _keep_tuples(work, handle, kind):
    """Move collected tuples to a second handle; returns it, or an error code."""
    chunk = withdraw(handle) if kind < collection.KEPT_TYPE else word(0)
    if chunk == 0:
        return word(d.ALREADY_COLLECTED)
    kept = enter(chunk, 0, kind - collection.COLLECTED_TYPE + collection.KEPT_TYPE, MAX_KEPT)
    if kept == 0:
        report(work, MAX_KEPT, 0)
        free_chunks(chunk)
        return word(d.TOO_MANY_RESIDENTS)
    return kept


keep_rows = scalar_callback("keep_rows", _keep_rows)


@njit
def release_kept(handle):
    """Release memory that `tensor_keep` returned a handle of; returns 1, or 0 if there is none."""
    if RESERVED_TYPE > type_of(handle) >= collection.KEPT_TYPE:
        chunk = remove(handle)
        free_chunks(chunk)
        return word(chunk != 0)
    vector = remove(handle)
    if vector != 0:
        free_vector(vector)
    return word(vector != 0)

"""Kernels: makes the callbacks of DuckDB's functions that get a chunk of rows; see `duckdb.h`.

Callbacks follow duckdb_scalar_function_t, (info, chunk, result), or duckdb_aggregate_update_t, (info, chunk, states);
all parameters are addresses.
"""

from collections.abc import Callable

from numba import njit, types

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.duckdb.vectors import get_rows, start_work, word
from sparseeinsum.kernels.compiled.kernel_calls import THREADS, message_of, template_of
from sparseeinsum.kernels.compiled.raw_memory import array_at, free

Compiled = Callable[..., int]

_get_state = types.ExternalFunction("duckdb_scalar_function_get_state", word(word))


@njit
def keep_threads(info, descriptor, work):
    """Write to the work memory how many threads a call may use, if the function can use several; see threads.py."""
    if descriptor[d.COMPUTE_SLICE] != 0:
        array_at(work + 8 * THREADS, 1, word)[0] = _get_state(info)
    return 0


@njit
def _keep_nothing(info, descriptor, work):
    return 0


def scalar_callback(name: str, compute: Compiled, release: Compiled | None = None) -> Compiled:
    """Make the callback of scalar functions that computes all rows of a chunk.

    Args:
        name: The name of the callback in object files.
        compute: (descriptor, work, rows, result) computes them; returns 0 or an error code.
        release: (work) releases what `compute` left in the work memory; None if it leaves nothing.
    """
    return _callback("scalar", name, keep_threads, compute, release or _release_nothing)


def update_callback(name: str, compute: Compiled) -> Compiled:
    """Make the callback of aggregates that folds all rows of a chunk into their states.

    Args:
        name: The name of the callback in object files.
        compute: (descriptor, work, rows, states) folds them, where `states` is the address of the addresses of the
            rows' states; returns 0 or an error code.
    """
    return _callback("aggregate", name, _keep_nothing, compute, _release_nothing)


@njit
def _release_nothing(work):
    return 0


def _callback(kind: str, name: str, keep: Compiled, compute: Compiled, release: Compiled) -> Compiled:
    extra_info = types.ExternalFunction(f"duckdb_{kind}_function_get_extra_info", word(word))
    set_error = types.ExternalFunction(f"duckdb_{kind}_function_set_error", types.void(word, word))

    def callback(info, chunk, target):
        descriptor = array_at(extra_info(info), d.DESCRIPTOR_WORDS, word)
        work = start_work(chunk, descriptor)
        if work == 0:
            set_error(info, template_of(descriptor, d.OUT_OF_MEMORY))
            return 0
        keep(info, descriptor, work)
        code = compute(descriptor, work, get_rows(chunk), target)
        if code < 0:
            set_error(info, message_of(descriptor, code, work))
        release(work)
        free(work)
        return 0

    callback.__name__ = name
    compiled: Compiled = njit(callback)
    return compiled

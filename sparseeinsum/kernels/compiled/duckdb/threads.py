"""Kernels: computes a large array in slices, on threads that the database has and that no other call uses.

DuckDB divides rows among its threads, so that a statement over a single row has one.
"""

from numba import njit, types

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels import thread_tasks as t
from sparseeinsum.kernels.compiled.duckdb.vectors import THREADS, free, malloc, word
from sparseeinsum.kernels.compiled.kernel_calls import compute, scratch_of
from sparseeinsum.kernels.compiled.raw_memory import array_at, call, copy_elements

_get_context = types.ExternalFunction("duckdb_scalar_function_init_get_client_context", types.void(word, word))
_get_option = types.ExternalFunction("duckdb_client_context_get_config_option", word(word, word, word))
_get_int64 = types.ExternalFunction("duckdb_get_int64", word(word))
_destroy_value = types.ExternalFunction("duckdb_destroy_value", types.void(word))
_destroy_context = types.ExternalFunction("duckdb_destroy_client_context", types.void(word))
_set_state = types.ExternalFunction("duckdb_scalar_function_init_set_state", types.void(word, word, word))
_start_task = types.ExternalFunction("sparseeinsum_start_task", word(word))
_join_task = types.ExternalFunction("sparseeinsum_join_task", types.void(word))
_add_busy_threads = types.ExternalFunction("sparseeinsum_add_busy_threads", word(word))

_OPTION = int.from_bytes(b"threads\0", "little")  # the name of DuckDB's setting, a word of text
# Elements of a slice: to start a thread and to wait for it takes as long as 50,000 elements of the quickest functions.
_LEAST_SLICE = 1 << 17
_TASK_BYTES = 8 * t.TASK_WORDS + d.SCRATCH_BYTES


@njit
def read_threads(info):
    """Keep the number of the database's threads as the state of a function: DuckDB calls this before a statement runs.

    `info` is a duckdb_init_info; the state is the number itself, not an address of it.
    """
    memory = malloc(4 * 8)
    if memory == 0:
        return 0
    name, context, value = array_at(memory, 1, word), array_at(memory + 8, 1, word), array_at(memory + 16, 1, word)
    name[0] = _OPTION
    _get_context(info, memory + 8)
    value[0] = _get_option(context[0], memory, memory + 24) if context[0] != 0 else 0
    if value[0] != 0:
        _set_state(info, _get_int64(value[0]), 0)
        _destroy_value(memory + 16)
    _destroy_context(memory + 8)
    free(memory)
    return 0


@njit
def compute_on_threads(descriptor, work, row, out, size, elements):
    """Compute a row as `compute` does; in slices if it reads or writes many elements and threads are idle."""
    wanted = elements // _LEAST_SLICE
    if descriptor[d.COMPUTE_SLICE] == 0 or wanted < 2:
        return compute(descriptor, work, row, out, size)
    threads = _take_threads(min(wanted, array_at(work + 8 * THREADS, 1, word)[0]))
    memory = malloc((threads - 1) * _TASK_BYTES) if threads > 1 else 0
    if memory == 0:
        code = compute(descriptor, work, row, out, size)
    else:
        code = _compute_slices(descriptor, work, row, out, size, threads, memory)
        free(memory)
    _add_busy_threads(-threads)
    return code


@njit
def _take_threads(most):
    """Return how many threads a call may compute with, its own among them; the caller gives them back."""
    others = _add_busy_threads(1)
    more = most - 1 - others
    if more < 1:
        return 1
    _add_busy_threads(more)
    return 1 + more


@njit
def _compute_slices(descriptor, work, row, out, size, slices, memory):
    """Compute the first slice on this thread, and every other one on a thread of its own, or here if it has none."""
    function, scratch = descriptor[d.COMPUTE_SLICE], scratch_of(work)
    for index in range(1, slices):
        address = _task(memory, index)
        task = array_at(address, t.TASK_WORDS, word)
        task[t.FUNCTION], task[t.ROW], task[t.OUT], task[t.SIZE] = function, row, out, size
        task[t.INDEX], task[t.SLICES], task[t.SCRATCH] = index, slices, address + 8 * t.TASK_WORDS
        copy_elements(
            array_at(task[t.SCRATCH], d.SCRATCH_BYTES // 8, word), array_at(scratch, d.SCRATCH_BYTES // 8, word)
        )
        if _start_task(address) == 0:
            task[t.FUNCTION] = 0
    code = call(function, (row, out, size, 0, slices, scratch))
    for index in range(1, slices):
        task = array_at(_task(memory, index), t.TASK_WORDS, word)
        if task[t.FUNCTION] != 0:
            _join_task(_task(memory, index))
        else:
            task[t.RESULT] = call(function, (row, out, size, index, slices, task[t.SCRATCH]))
        if task[t.RESULT] < code:
            code = task[t.RESULT]
            report = array_at(task[t.SCRATCH], d.MESSAGE_WORDS, word)
            copy_elements(array_at(scratch, d.MESSAGE_WORDS, word), report)
    return code


@njit
def _task(memory, index):
    return memory + (index - 1) * _TASK_BYTES

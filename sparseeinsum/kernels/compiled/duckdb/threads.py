"""Kernels: computes large arrays on several threads: those that the database has and that no other call uses.

DuckDB divides tables among its threads by 122,880 rows, so that a statement over few rows with large arrays has one.
"""

from numba import njit, types

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels import thread_tasks as t
from sparseeinsum.kernels.compiled.duckdb.vectors import (
    FIRST_ROW,
    STEPS,
    THREADS,
    compute_batch_rows,
    free,
    malloc,
    read_row,
    word,
    write_row_of_batch,
)
from sparseeinsum.kernels.compiled.kernel_calls import ROW, compute, scratch_of
from sparseeinsum.kernels.compiled.raw_memory import address_of, array_at, call, copy_elements
from sparseeinsum.kernels.compiled.slices import slice_bounds
from sparseeinsum.kernels.symbols import BLAS, BLAS_WORDS, STATEMENT_THREADS_WORD

_get_context = types.ExternalFunction("duckdb_scalar_function_init_get_client_context", types.void(word, word))
_get_option = types.ExternalFunction("duckdb_client_context_get_config_option", word(word, word, word))
_get_int64 = types.ExternalFunction("duckdb_get_int64", word(word))
_destroy_value = types.ExternalFunction("duckdb_destroy_value", types.void(word))
_destroy_context = types.ExternalFunction("duckdb_destroy_client_context", types.void(word))
_set_state = types.ExternalFunction("duckdb_scalar_function_init_set_state", types.void(word, word, word))
_start_task = types.ExternalFunction("sparseeinsum_start_task", word(word))
_join_task = types.ExternalFunction("sparseeinsum_join_task", types.void(word))
_add_busy_threads = types.ExternalFunction("sparseeinsum_add_busy_threads", word(word))

_blas_address = address_of(BLAS)
_OPTION = int.from_bytes(b"threads\0", "little")  # the name of DuckDB's setting, a word of text
# Elements of a slice: to start a thread and to wait for it takes as long as 50,000 elements of the quickest functions.
_LEAST_SLICE = 1 << 17
# The memory of a task, in words: its own, then a row of arguments, then scratch memory.
_ROW = t.TASK_WORDS
_SCRATCH = _ROW + d.ROW_WORDS
_TASK_BYTES = 8 * _SCRATCH + d.SCRATCH_BYTES


@njit
def read_threads(info):
    """Keep the number of the database's threads as the state of a function, and for products by the BLAS.

    DuckDB calls this before a statement runs.

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
        threads = _get_int64(value[0])
        array_at(_blas_address(), BLAS_WORDS, word)[STATEMENT_THREADS_WORD] = threads
        _set_state(info, threads, 0)
        _destroy_value(memory + 16)
    _destroy_context(memory + 8)
    free(memory)
    return 0


@njit
def compute_on_threads(descriptor, work, row, out, size, elements):
    """Compute a row as `compute` does; in slices if it reads or writes many elements and threads are idle."""
    function = descriptor[d.COMPUTE_SLICE]
    memory, threads = _open_tasks(work, elements // _LEAST_SLICE if function != 0 else 0)
    if memory == 0:
        code = compute(descriptor, work, row, out, size)
    else:
        for index in range(threads):
            scratch = _scratch_of_task(work, memory, index)
            _write_task(memory, index, function, (row, out, size, index, threads, scratch))
        code = _run_tasks(work, memory, threads)
    _close_tasks(memory, threads)
    return code


@njit
def compute_batch_on_threads(descriptor, work, rows, out, size):
    """Compute a batch as `compute_batch_rows` does; threads that are idle take a part of its rows, if it is large."""
    elements = rows * largest_array(descriptor, work + 8 * FIRST_ROW, size)
    divides_rows = descriptor[d.COMPUTE_SLICE] != 0 and not _is_one_product(descriptor, work)
    most = min(elements // _LEAST_SLICE, rows) if divides_rows else 0
    memory, threads = _open_tasks(work, most)
    if memory == 0:
        code = compute_batch_rows(descriptor, work, rows, out, size)
    else:
        function, steps = descriptor[d.BATCH], work + 8 * STEPS
        for index in range(threads):
            first, end = slice_bounds(rows, index, threads)
            row, scratch = _task(memory, index) + 8 * _ROW, _scratch_of_task(work, memory, index)
            write_row_of_batch(descriptor, work, first, row)
            part = out + first * size * descriptor[d.RESULT_BYTES]
            _write_task(memory, index, function, (row, steps, end - first, part, size, scratch))
        code = _run_tasks(work, memory, threads)
    _close_tasks(memory, threads)
    return code


@njit
def compute_all_rows(descriptor, work, rows, out, size):
    """Compute the rows of `prepare_batch`, one by one if the kernel does not compute them at once; 0 or an error code.

    Their results have equal sizes, and follow one another from `out` on.
    """
    code, row = compute_batch_on_threads(descriptor, work, rows, out, size), work + 8 * ROW
    if code != 0:
        return min(code, 0)
    for index in range(rows):
        read_row(descriptor, work, index, row)
        code = compute(descriptor, work, row, out + index * size * descriptor[d.RESULT_BYTES], size)
        if code < 0:
            return code
    return word(0)


@njit
def _is_one_product(descriptor, work):
    """Whether a batch is one matrix product, as all rows have the same array as an operand."""
    steps = array_at(work + 8 * STEPS, d.MAX_ARGUMENTS, word)
    for index in range(descriptor[d.ARGUMENTS] if descriptor[d.MULTIPLIES_MATRICES] != 0 else 0):
        kind = descriptor[d.HEADER + 2 * index]
        if (kind == d.LIST or kind == d.COMPLEX_LIST) and steps[index] == 0:
            return True
    return False


@njit
def largest_array(descriptor, row, size):
    """Return how many elements the largest array of a row has, if its result has `size` elements."""
    words, most = array_at(row, d.ROW_WORDS, word), size
    for index in range(descriptor[d.ARGUMENTS]):
        most = max(most, words[2 * index + 1])
    return most


@njit
def _open_tasks(work, most):
    """Take up to `most` threads; returns memory for their tasks, 0 if a call computes alone, and how many it took."""
    if most < 2:
        return word(0), word(0)
    threads = _take_threads(min(most, array_at(work + 8 * THREADS, 1, word)[0]))
    return malloc(threads * _TASK_BYTES) if threads > 1 else word(0), threads


@njit
def _close_tasks(memory, threads):
    """Give back what `_open_tasks` returned."""
    free(memory)
    if threads > 0:
        _add_busy_threads(-threads)


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
def _task(memory, index):
    return memory + index * _TASK_BYTES


@njit
def _scratch_of_task(work, memory, index):
    """Return the scratch memory of a task: for the first one that of the call, for others a copy of it."""
    if index == 0:
        return scratch_of(work)
    scratch = _task(memory, index) + 8 * _SCRATCH
    words = d.SCRATCH_BYTES // 8
    copy_elements(array_at(scratch, words, word), array_at(scratch_of(work), words, word))
    return scratch


@njit
def _write_task(memory, index, function, arguments):
    task = array_at(_task(memory, index), t.TASK_WORDS, word)
    task[t.FUNCTION] = function
    for place in range(t.ARGUMENT_COUNT):
        task[t.ARGUMENTS + place] = arguments[place]


@njit
def _run_tasks(work, memory, count):
    """Run the first task on this thread, and every other one on a thread of its own; returns the least result.

    If that is an error, the scratch memory of the call has its numbers.
    """
    for index in range(1, count):
        task = array_at(_task(memory, index), t.TASK_WORDS, word)
        task[t.IS_STARTED] = _start_task(_task(memory, index))
    code = _call_task(memory, 0)
    for index in range(1, count):
        task = array_at(_task(memory, index), t.TASK_WORDS, word)
        if task[t.IS_STARTED] != 0:
            _join_task(_task(memory, index))
        else:
            task[t.RESULT] = _call_task(memory, index)
        if task[t.RESULT] < code:
            code = task[t.RESULT]
            report = array_at(_task(memory, index) + 8 * _SCRATCH, d.MESSAGE_WORDS, word)
            copy_elements(array_at(scratch_of(work), d.MESSAGE_WORDS, word), report)
    return code


@njit
def _call_task(memory, index):
    task = array_at(_task(memory, index), t.TASK_WORDS, word)
    a = task[t.ARGUMENTS : t.RESULT]
    return call(task[t.FUNCTION], (a[0], a[1], a[2], a[3], a[4], a[5]))

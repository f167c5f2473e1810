"""Kernels: computes the rows of a chunk on several threads, if their arrays are large.

DuckDB divides tables among its threads by 122,880 rows, so that a statement over few rows with large arrays has one.
"""

from numba import njit, types

from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.blas_table import blas_table
from sparseeinsum.kernels.compiled.duckdb.vectors import (
    FIRST_ROW,
    STEPS,
    compute_batch_rows,
    read_row,
    word,
    write_row_of_batch,
)
from sparseeinsum.kernels.compiled.kernel_calls import ROW, compute
from sparseeinsum.kernels.compiled.raw_memory import array_at, free, malloc
from sparseeinsum.kernels.compiled.slices import slice_bounds
from sparseeinsum.kernels.compiled.threads import (
    close_tasks,
    elements_of,
    open_tasks,
    row_of_task,
    run_tasks,
    scratch_of_task,
    write_task,
)
from sparseeinsum.kernels.symbols import STATEMENT_THREADS_WORD

_get_context = types.ExternalFunction("duckdb_scalar_function_init_get_client_context", types.void(word, word))
_get_option = types.ExternalFunction("duckdb_client_context_get_config_option", word(word, word, word))
_get_int64 = types.ExternalFunction("duckdb_get_int64", word(word))
_destroy_value = types.ExternalFunction("duckdb_destroy_value", types.void(word))
_destroy_context = types.ExternalFunction("duckdb_destroy_client_context", types.void(word))
_set_state = types.ExternalFunction("duckdb_scalar_function_init_set_state", types.void(word, word, word))

_OPTION = int.from_bytes(b"threads\0", "little")  # the name of DuckDB's setting, a word of text


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
        blas_table()[STATEMENT_THREADS_WORD] = threads
        _set_state(info, threads, 0)
        _destroy_value(memory + 16)
    _destroy_context(memory + 8)
    free(memory)
    return 0


@njit
def compute_batch_on_threads(descriptor, work, rows, out, size):
    """Compute a batch as `compute_batch_rows` does; threads that are idle take a part of its rows, if it is large."""
    elements = rows * elements_of(descriptor, work, work + 8 * FIRST_ROW, size)
    divides_rows = descriptor[d.COMPUTE_SLICE] != 0 and not _is_one_product(descriptor, work)
    memory, threads = open_tasks(work, elements, rows if divides_rows else 0)
    if memory == 0:
        code = compute_batch_rows(descriptor, work, rows, out, size)
    else:
        function, steps = descriptor[d.BATCH], work + 8 * STEPS
        for index in range(threads):
            first, end = slice_bounds(rows, index, threads)
            row, scratch = row_of_task(memory, index), scratch_of_task(work, memory, index)
            write_row_of_batch(descriptor, work, first, row)
            part = out + first * size * descriptor[d.RESULT_BYTES]
            write_task(memory, index, function, (row, steps, end - first, part, size, scratch))
        code = run_tasks(work, memory, threads)
    close_tasks(memory, threads)
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

"""Kernels: computes large arrays on several threads: those that the host allows a call and that no other call uses.

A host that cannot interrupt a call while several threads compute lets kernels stop; the call then computes alone.
"""

from numba import njit, types

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels import thread_tasks as t
from sparseeinsum.kernels.compiled.blas_table import has_blas
from sparseeinsum.kernels.compiled.kernel_calls import THREADS, compute, scratch_of, word
from sparseeinsum.kernels.compiled.plan_memory import plan_of
from sparseeinsum.kernels.compiled.raw_memory import array_at, call, copy_elements, free, malloc

contraction = load_kernels("contraction")

_start_task = types.ExternalFunction("sparseeinsum_start_task", word(word))
_join_task = types.ExternalFunction("sparseeinsum_join_task", types.void(word))
_add_busy_threads = types.ExternalFunction("sparseeinsum_add_busy_threads", word(word))

# Elements of a slice: to start a thread and to wait for it takes as long as 50,000 elements of the quickest functions.
_LEAST_SLICE = 1 << 17
_PRODUCTS_OF_ELEMENT = 8  # multiply-adds of a matrix product that take as long as an element
# The memory of a task, in words: its own, then a row of arguments, then scratch memory.
_ROW = t.TASK_WORDS
_SCRATCH = _ROW + d.ROW_WORDS
_TASK_BYTES = 8 * _SCRATCH + d.SCRATCH_BYTES


@njit
def compute_array(descriptor, work, row, out, size):
    """Compute a row as `compute` does; in slices if that takes long and threads are idle."""
    return compute_on_threads(descriptor, work, row, out, size, elements_of(descriptor, work, row, size))


@njit
def compute_on_threads(descriptor, work, row, out, size, elements):
    """Compute a row as `compute_array` does, which takes as long as so many elements."""
    function = descriptor[d.COMPUTE_SLICE]
    memory, threads = open_tasks(work, elements, elements if function != 0 else 0)
    code = word(contraction.INTERRUPTED)
    if memory != 0:
        for index in range(threads):
            scratch = scratch_of_task(work, memory, index)
            write_task(memory, index, function, (row, out, size, index, threads, scratch))
        code = run_tasks(work, memory, threads)
    close_tasks(memory, threads)
    return compute(descriptor, work, row, out, size) if code == contraction.INTERRUPTED else code


@njit
def elements_of(descriptor, work, row, size):
    """Return as how many elements a row of arguments takes, if its result has `size` elements and is measured.

    These are the elements of its largest array, or more for a matrix product without a BLAS, which has threads.
    """
    words, most = array_at(row, d.ROW_WORDS, word), size
    for index in range(descriptor[d.ARGUMENTS]):
        most = max(most, words[2 * index + 1])
    if descriptor[d.MULTIPLIES_MATRICES] != 0 and not has_blas():
        most = max(most, contraction.steps(plan_of(scratch_of(work)), 0) // _PRODUCTS_OF_ELEMENT)
    return most


@njit
def open_tasks(work, elements, parts):
    """Take threads for a call of so many parts, which takes as long as so many elements; the caller closes the tasks.

    Returns:
        Memory for their tasks, 0 if the call computes alone; and how many threads it took.
    """
    most = min(most_threads(work, elements), parts)
    threads = _take_threads(most) if most > 1 else word(0)
    return malloc(threads * _TASK_BYTES) if threads > 1 else word(0), threads


@njit
def most_threads(work, elements):
    """Return the most threads that a call takes which takes as long as so many elements."""
    return min(elements // _LEAST_SLICE, array_at(work + 8 * THREADS, 1, word)[0])


@njit
def close_tasks(memory, threads):
    """Give back what `open_tasks` returned."""
    free(memory)
    if threads > 0:
        _add_busy_threads(-threads)


@njit
def _take_threads(most):
    """Return how many threads a call may compute with, its own among them; the caller gives them back."""
    others = _add_busy_threads(1)
    more = most - 1 - others
    if more < 1:
        return word(1)
    _add_busy_threads(more)
    return 1 + more


@njit
def row_of_task(memory, index):
    """Return the memory for a row of arguments that belongs to a task."""
    return _task(memory, index) + 8 * _ROW


@njit
def scratch_of_task(work, memory, index):
    """Return the scratch memory of a task: for the first one that of the call, for others a copy of it."""
    if index == 0:
        return scratch_of(work)
    scratch = _task(memory, index) + 8 * _SCRATCH
    words = d.SCRATCH_BYTES // 8
    copy_elements(array_at(scratch, words, word), array_at(scratch_of(work), words, word))
    return scratch


@njit
def write_task(memory, index, function, arguments):
    """Let a task call the function at an address, with six words."""
    task = array_at(_task(memory, index), t.TASK_WORDS, word)
    task[t.FUNCTION] = function
    for place in range(t.ARGUMENT_COUNT):
        task[t.ARGUMENTS + place] = arguments[place]


@njit
def run_tasks(work, memory, count):
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
def _task(memory, index):
    return memory + index * _TASK_BYTES


@njit
def _call_task(memory, index):
    task = array_at(_task(memory, index), t.TASK_WORDS, word)
    a = task[t.ARGUMENTS : t.RESULT]
    return call(task[t.FUNCTION], (a[0], a[1], a[2], a[3], a[4], a[5]))

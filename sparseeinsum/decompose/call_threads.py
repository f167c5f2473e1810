"""Decompose: how many threads compute one call of a function, as kernels decide when they run.

A call takes as long as so many elements: those of its largest array, or more for a product of matrices.
"""

from sparseeinsum.decompose.memory_footprint import RunMemory

_ELEMENTS_OF_THREAD = 1 << 17  # fewer are computed before another thread has started
_OPERATIONS_OF_ELEMENT = 16  # floating-point operations of a matrix product that take as long as an element
# A server may have fewer processors than processes, and reading from memory takes as long on many threads as on two.
_EXPECTED_PROCESSES = 2


def elements_of_call(largest_array: float, operations: float, is_matrix_product: bool) -> float:
    """Return as how many elements a call takes, by the elements of its largest array and its operations."""
    return max(largest_array, operations / _OPERATIONS_OF_ELEMENT) if is_matrix_product else largest_array


def threads_of_call(elements: float, memory: RunMemory, has_processes: bool) -> int:
    """Return how many threads are expected to compute a call.

    Args:
        elements: As how many elements it takes.
        memory: The memory limit of a run, with the threads of a database, or the processes that a session may have.
        has_processes: Whether these are processes.
    """
    most = min(memory.threads, _EXPECTED_PROCESSES) if has_processes else memory.threads
    return max(min(most, int(elements // _ELEMENTS_OF_THREAD)), 1)

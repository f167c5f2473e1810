"""Decompose: the threads on which one call of a function computes an array, in a server that has one process for it.

An engine that computes rows on threads is as fast with many rows as with one; its costs are those of all threads.
"""

from sparseeinsum.decompose.memory_footprint import RunMemory

_LEAST_OPERATIONS = 1 << 18  # of a call that takes more than one thread
_OPERATIONS_OF_ELEMENT = 16  # of a matrix product that take as long as another operation
# A server may have fewer processors than processes, and reading from memory takes as long on many threads as on two.
_EXPECTED_THREADS = 2


def threads_of_call(operations: float, is_matrix_product: bool, memory: RunMemory) -> int:
    """As how many threads a call of so many operations is expected to compute.

    Args:
        operations: Floating-point operations of the call.
        is_matrix_product: Whether they are those of a matrix product.
        memory: The memory limit of a run, with the processes that the session may have.
    """
    least = _LEAST_OPERATIONS * (_OPERATIONS_OF_ELEMENT if is_matrix_product else 1)
    return min(memory.threads, _EXPECTED_THREADS) if operations >= least else 1

"""Decompose: the threads on which one call of a function computes an array."""

from sparseeinsum.decompose.memory_footprint import RunMemory

_OPERATIONS_OF_THREAD = 1 << 17  # fewer are computed sooner than another thread starts
_OPERATIONS_OF_ELEMENT = 16  # of a matrix product that take as long as another operation
# A server may have fewer processors than processes, and reading from memory takes as long on many threads as on two.
_EXPECTED_THREADS = 2


def threads_of_call(operations: float, is_matrix_product: bool, memory: RunMemory, shares_rows: bool) -> int:
    """As how many threads a call of so many operations is expected to compute.

    Args:
        operations: Floating-point operations of the call; a multiplication and an addition to a sum are one.
        is_matrix_product: Whether they are those of a matrix product, and counted one by one.
        memory: The memory limit of a run, with the threads of a database, or the processes that a session may have.
        shares_rows: Whether the engine has threads that share rows; if not, it has processes.
    """
    most = memory.threads if shares_rows else min(memory.threads, _EXPECTED_THREADS)
    least = _OPERATIONS_OF_THREAD * (_OPERATIONS_OF_ELEMENT if is_matrix_product else 1)
    return max(min(most, int(operations // least)), 1)

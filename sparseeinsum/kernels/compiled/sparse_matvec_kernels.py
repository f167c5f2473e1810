"""Kernels: adapts products of a sparse matrix and a vector, in any semiring, to the calling convention, for each dtype.

Operands are those that `duckdb/vector_products.py` lists. If there are no entries, no rows begin.
"""

from numba import njit

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels.compiled.arithmetic import DtypeArithmetic
from sparseeinsum.kernels.compiled.calling_convention import ArgumentAccess, RowKernel
from sparseeinsum.kernels.compiled.parsed_arguments import semiring_code
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.compiled.scratch import argument, half_word, integers
from sparseeinsum.kernels.compiled.slices import row_bounds, slice_bounds

contraction, elementwise = load_kernels("contraction"), load_kernels("elementwise")


def sparse_matvec_kernels(arithmetic: DtypeArithmetic, array: ArgumentAccess) -> dict[str, RowKernel]:
    """Return the kernel that multiplies by a sparse matrix."""
    dtype, multiply_by_vector = arithmetic.dtype, arithmetic.multiply_by_vector

    @njit
    def aggregate_rows(row, w, first):
        """Write the numbers of rows from `first` on, in a semiring; returns 0 or a code."""
        semiring = semiring_code(row, 0)
        if semiring < 0:
            return semiring
        starts, positions, numbers = integers(row, 1), array_at(*argument(row, 2), half_word), array(row, 3)
        none, absent, begins = starts[:0], array(row, 6)[0], starts[first : first + w.size + 1]
        code = multiply_by_vector(
            semiring, array(row, 5)[0], none, begins, positions, numbers, none, array(row, 4), w, none
        )
        for place in range(w.size):
            if begins[place] == begins[place + 1]:
                w[place] = absent
        return code

    def sparse_matvec(row, out, size, index, slices, scratch):
        starts, w = integers(row, 1), array_at(out, size, dtype)
        if starts.size == 0:
            first, last = slice_bounds(size, index, slices)
            elementwise.fill(array(row, 6)[0], w[first:last])
            return 0
        first, last = row_bounds(starts, index, slices)
        code = aggregate_rows(row, w[first:last], first)
        return contraction.INTERRUPTED if contraction.is_interrupted() else code

    return {"sparse_matvec": RowKernel(compute_slice=sparse_matvec)}

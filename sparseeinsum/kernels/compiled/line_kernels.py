"""Kernels: adapts the functions of udfs/ that order lines and invert matrices to the calling convention."""

from numba import types

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels.compiled.calling_convention import ArgumentAccess, RowKernel
from sparseeinsum.kernels.compiled.raw_memory import array_at, copy_elements
from sparseeinsum.kernels.compiled.scratch import integer, integers, pivot_memory, report

contraction = load_kernels("contraction")
inverse = load_kernels("inverse")
ordering = load_kernels("ordering")


def line_kernels(dtype: types.Type, array: ArgumentAccess) -> dict[str, RowKernel]:
    """Return the kernels for sorts, largest elements and inverses, by their names."""

    def sort(row, out, size, scratch):
        axis, extents = integer(row, 1), integers(row, 2)
        ordering.order_lines(array(row, 0), axis, extents, extents[axis], False, array_at(out, size, dtype))
        return 0

    def largest(row, out, size, scratch):
        axis, extents, count = integer(row, 1), integers(row, 2), integer(row, 3)
        ordering.order_lines(array(row, 0), axis, extents, count, True, array_at(out, size, dtype))
        return 0

    def invert(row, out, size, scratch):
        rows = integers(row, 1)[-1]
        w, pivots = array_at(out, size, dtype), pivot_memory(scratch, rows)
        copy_elements(w, array(row, 0))
        for start in range(0, size, rows * rows if rows > 0 else 1):
            column = inverse.invert(w[start : start + rows * rows], rows, pivots, contraction.is_interrupted)
            if column >= 0:
                return report(scratch, inverse.NO_INVERSE, column, 0, 0)
            if contraction.is_interrupted():
                return contraction.INTERRUPTED
        return 0

    return {"sort": RowKernel(sort), "largest": RowKernel(largest), "inverse": RowKernel(invert)}

"""Kernels: adapts products of a sparse matrix and an array to the calling convention, for each dtype.

Operands are those that `sparse_operands.py` lists. If there are no entries, no rows begin.
"""

from numba import njit

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels.compiled.arithmetic import DtypeArithmetic
from sparseeinsum.kernels.compiled.calling_convention import ArgumentAccess, RowKernel
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.compiled.scratch import argument, half_word, integer, integers
from sparseeinsum.kernels.compiled.slices import row_bounds, slice_bounds

contraction, elementwise = load_kernels("contraction"), load_kernels("elementwise")

_LEAST_WIDTH = 8  # elements of a row that take longer to add than it takes to read an entry


def sparse_matmul_kernels(arithmetic: DtypeArithmetic, array: ArgumentAccess) -> dict[str, RowKernel]:
    """Return the kernels that multiply by a sparse matrix, and by its transpose."""
    dtype, sum_rows, add_scaled = arithmetic.dtype, arithmetic.sum_rows, arithmetic.add_scaled

    @njit
    def operands(row):
        """Return where rows begin, positions and numbers of entries, the array, and how many elements its rows have."""
        positions = array_at(*argument(row, 1), half_word)
        return integers(row, 0), positions, array(row, 2), array(row, 3), integer(row, 4)

    def sparse_matmul(row, out, size, index, slices, scratch):
        starts, positions, numbers, v, width = operands(row)
        w, code = array_at(out, size, dtype), 0
        if starts.size == 0 or width == 0:
            first, last = slice_bounds(size, index, slices)
            elementwise.fill(dtype(0), w[first:last])
            return 0
        first, last = row_bounds(starts, index, slices)
        for place in range(first, last):
            begin, end = starts[place], starts[place + 1]
            line = w[place * width : (place + 1) * width]
            code = min(code, sum_rows(line, numbers[begin:end], positions[begin:], v))
            if contraction.is_interrupted():
                return contraction.INTERRUPTED
        return code

    def sparse_matmul_transposed(row, out, size, index, slices, scratch):
        """Multiply by the transpose; every slice reads all entries, and those alone that are of its rows are added."""
        starts, positions, numbers, v, width = operands(row)
        w, code = array_at(out, size, dtype), 0
        if width < _LEAST_WIDTH and slices > 1:
            if index > 0:
                return 0
            slices = 1
        first, last = slice_bounds(size // max(width, 1), index, slices)
        elementwise.fill(dtype(0), w[first * width : last * width])
        for place in range(starts.size - 1 if width > 0 else 0):
            line = v[place * width : (place + 1) * width]
            for entry in range(starts[place], starts[place + 1]):
                if first <= positions[entry] < last:
                    start = positions[entry] * width
                    code = min(code, add_scaled(w[start : start + width], numbers[entry], line))
            if contraction.is_interrupted():
                return contraction.INTERRUPTED
        return code

    return {
        "sparse_matmul": RowKernel(compute_slice=sparse_matmul),
        "sparse_matmul_transposed": RowKernel(compute_slice=sparse_matmul_transposed),
    }

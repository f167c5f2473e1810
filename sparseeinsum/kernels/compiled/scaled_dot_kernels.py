"""Kernels: adapts inner products of rows of two arrays to the calling convention, for each dtype."""

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels.compiled.arithmetic import DtypeArithmetic
from sparseeinsum.kernels.compiled.block_layout import arrays_of_block
from sparseeinsum.kernels.compiled.calling_convention import ArgumentAccess, RowKernel
from sparseeinsum.kernels.compiled.fetched_rows import ROWS_AHEAD, fetch_row
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.compiled.scratch import argument, integer, integers
from sparseeinsum.kernels.compiled.slices import row_bounds

contraction = load_kernels("contraction")


def scaled_dot_kernels(arithmetic: DtypeArithmetic, array: ArgumentAccess) -> dict[str, RowKernel]:
    """Return the kernels of one inner product, and of one for each entry of some rows of a matrix.

    The operands of the latter are the block of the matrix, an array with a row for each of its rows, one with a row for
    each position, how many elements these rows have, and the first row of the matrix and the one after the last.
    """
    dtype, multiply_scaled = arithmetic.dtype, arithmetic.scaled_dot

    def scaled_dot(row, out, size, scratch):
        return multiply_scaled(array(row, 0)[0], array(row, 1), array(row, 2), array_at(out, 1, dtype))

    def scaled_dots(row, out, size, index, slices, scratch):
        starts, positions, numbers = arrays_of_block(argument(row, 0)[0], dtype)
        u, v, width, rows = array(row, 1), array(row, 2), integer(row, 3), integers(row, 4)
        starts = starts[rows[0] : rows[1] + 1]
        first, last = row_bounds(starts, index, slices)
        w, end, code = array_at(out, size, dtype), starts[last], 0
        row_bytes = width * numbers.itemsize
        for place in range(first, last):
            at = (rows[0] + place) * width
            left = u[at : at + width]
            for entry in range(starts[place], starts[place + 1]):
                if entry + ROWS_AHEAD < end:
                    fetch_row(argument(row, 2)[0] + positions[entry + ROWS_AHEAD] * row_bytes, row_bytes)
                other = positions[entry] * width
                result = w[entry - starts[0] : entry - starts[0] + 1]
                code = min(code, multiply_scaled(numbers[entry], left, v[other : other + width], result))
            if contraction.is_interrupted():
                return contraction.INTERRUPTED
        return code

    return {"scaled_dot": RowKernel(scaled_dot), "scaled_dots": RowKernel(compute_slice=scaled_dots)}

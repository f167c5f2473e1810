"""Kernels: adapts products of sparse matrices, of many rows at once, to the calling convention, for each dtype."""

from collections.abc import Callable

from numba import njit

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels.compiled.arithmetic import DtypeArithmetic
from sparseeinsum.kernels.compiled.block_layout import arrays_of_block
from sparseeinsum.kernels.compiled.calling_convention import ArgumentAccess, RowKernel
from sparseeinsum.kernels.compiled.column_slots import COLUMNS_OF_MASKS, FEW_COLUMNS, hash_of_row
from sparseeinsum.kernels.compiled.parsed_arguments import semiring_code
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.compiled.scratch import argument, half_word, integers
from sparseeinsum.kernels.compiled.slices import row_bounds

contraction = load_kernels("contraction")

_LEFT, _RIGHT, _MASK, _START, _SLOTS, _PLACES, _POSITIONS, _SHAPE, _BOUNDS = range(1, 10)


def whole_product_kernels(arithmetic: DtypeArithmetic, array: ArgumentAccess) -> dict[str, RowKernel]:
    """Return the kernels of rows of a product, perhaps at the entries of a mask; `out` is the address of their numbers.

    Their operands are a semiring, the blocks of two factors and of the mask, the number that sums start from, slots for
    every slice, where the entries of rows begin and how many they are, their positions, the number of columns, the
    first row and the one after the last, and how many entries the rows before each may have together.
    """
    dtype = arithmetic.dtype
    multiply_row, multiply_masked_row = arithmetic.multiply_row, arithmetic.multiply_masked_row

    @njit
    def block_at(row, index):
        return arrays_of_block(argument(row, index)[0], dtype)

    @njit
    def rows_of_slice(row, index, slices):
        """Return the first row of a slice, and the one after its last."""
        shape, starts = integers(row, _SHAPE), block_at(row, _LEFT)[0]
        first, last = row_bounds(starts[shape[1] : shape[2] + 1], index, slices)
        return shape[1] + first, shape[1] + last

    @njit
    def slots_of_slice(row, index, slices):
        """Return the slots of a slice, all of them 0."""
        address, size = argument(row, _SLOTS)
        room = size // slices
        slots = array_at(address + 4 * index * room, room, half_word)
        for slot in range(room):
            slots[slot] = 0
        return slots

    @njit
    def multiply(row, place, numbers, entries, right, written):
        return multiply_row(*numbers, *entries, *right, *written)

    @njit
    def multiply_masked(row, place, numbers, entries, right, written):
        starts, positions, of_mask = block_at(row, _MASK)
        begin, end = starts[place], starts[place + 1]
        return multiply_masked_row(*numbers, of_mask[begin:end], positions[begin:end], *entries, *right, *written)

    def kernel(multiply_one: Callable[..., int], few_columns: int) -> RowKernel:
        def compute_slice(row, out, size, index, slices, scratch):
            semiring = semiring_code(row, 0)
            if semiring < 0:
                return semiring
            left, right, start = block_at(row, _LEFT), block_at(row, _RIGHT), array(row, _START)[0]
            places, bounds, shape = integers(row, _PLACES), integers(row, _BOUNDS), integers(row, _SHAPE)
            positions, numbers = array_at(argument(row, _POSITIONS)[0], size, half_word), array_at(out, size, dtype)
            slots, (first, last) = slots_of_slice(row, index, slices), rows_of_slice(row, index, slices)
            end = bounds[first] - bounds[shape[1]]
            for place in range(first, last):
                most, begin = bounds[place + 1] - bounds[place], left[0][place]
                places[2 * place], places[2 * place + 1] = end, 0
                if most == 0:
                    continue
                count, factor, shift = hash_of_row(most, shape[0], few_columns)
                entries = left[2][begin : left[0][place + 1]], left[1][begin:]
                written = slots[:count], factor, shift, end, positions, numbers
                code = multiply_one(row, place, (semiring, start), entries, right, written)
                if code < 0:
                    return code
                places[2 * place + 1], end = code - end, code
                if contraction.is_interrupted():
                    return contraction.INTERRUPTED
            return 0

        return RowKernel(compute_slice=compute_slice)

    return {
        "product_rows": kernel(multiply, FEW_COLUMNS),
        "masked_product_rows": kernel(multiply_masked, COLUMNS_OF_MASKS),
    }

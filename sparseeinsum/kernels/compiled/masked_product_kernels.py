"""Kernels: adapts products of sparse matrices at the entries of a mask to the calling convention, for each dtype."""

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels.compiled.arithmetic import DtypeArithmetic
from sparseeinsum.kernels.compiled.block_layout import arrays_of_block
from sparseeinsum.kernels.compiled.calling_convention import ArgumentAccess, RowKernel
from sparseeinsum.kernels.compiled.column_slots import COLUMNS_OF_MASKS, hash_of_row
from sparseeinsum.kernels.compiled.parsed_arguments import semiring_code
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.compiled.scratch import argument, half_word, integer, integers
from sparseeinsum.kernels.compiled.slices import row_bounds

contraction = load_kernels("contraction")


def masked_product_kernels(arithmetic: DtypeArithmetic, array: ArgumentAccess) -> dict[str, RowKernel]:
    """Return the kernel of all rows of a product, whose `out` is the address of their numbers.

    Its operands are a semiring, the blocks of two factors and of the mask, the number that sums start from, slots for
    every slice, how many entries rows have, their positions, and how many columns there are. Entries are written where
    those of the mask are, row by row.
    """
    dtype, multiply_masked_row = arithmetic.dtype, arithmetic.multiply_masked_row

    def masked_product_rows(row, out, size, index, slices, scratch):
        semiring = semiring_code(row, 0)
        if semiring < 0:
            return semiring
        left, right, mask = (
            arrays_of_block(argument(row, 1)[0], dtype),
            arrays_of_block(argument(row, 2)[0], dtype),
            arrays_of_block(argument(row, 3)[0], dtype),
        )
        start, counts, columns = array(row, 4)[0], integers(row, 6), integer(row, 8)
        address, size_of_slots = argument(row, 5)
        room = size_of_slots // slices
        slots = array_at(address, size_of_slots, half_word)[index * room : (index + 1) * room]
        out_positions, out_numbers = array_at(argument(row, 7)[0], size, half_word), array_at(out, size, dtype)
        first, last = row_bounds(left[0], index, slices)
        for place in range(first, last):
            begin, end = mask[0][place], mask[0][place + 1]
            entries = slice(left[0][place], left[0][place + 1])
            counts[place] = 0
            if begin == end or entries.start == entries.stop:
                continue
            count, factor, shift = hash_of_row(end - begin, columns, COLUMNS_OF_MASKS)
            code = multiply_masked_row(
                semiring,
                start,
                *(mask[2][begin:end], mask[1][begin:end]),
                *(left[2][entries], left[1][entries.start :], *right),
                *(slots[:count], factor, shift, begin, out_positions, out_numbers),
            )
            if code < 0:
                return code
            counts[place] = code - begin
            if contraction.is_interrupted():
                return contraction.INTERRUPTED
        return 0

    return {"masked_product_rows": RowKernel(compute_slice=masked_product_rows)}

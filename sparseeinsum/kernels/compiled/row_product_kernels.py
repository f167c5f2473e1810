"""Kernels: adapts the functions of udfs/ that multiply sparse matrices to the calling convention, for each dtype."""

from numba import njit

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels import compression
from sparseeinsum.kernels.compiled.arithmetic import DtypeArithmetic
from sparseeinsum.kernels.compiled.calling_convention import ArgumentAccess, RowKernel
from sparseeinsum.kernels.compiled.parsed_arguments import semiring_code
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.compiled.scratch import argument, half_word, integers, word

contraction = load_kernels("contraction")


def row_product_kernels(arithmetic: DtypeArithmetic, array: ArgumentAccess) -> dict[str, RowKernel]:
    """Return the kernels of products of sparse matrices: of a row, and return where it ends, or of numbers for rows.

    Their `out` is the address of the words that kernels/compression.py lists.
    """
    dtype, multiply_row, multiply_masked_row = arithmetic.dtype, arithmetic.multiply_row, arithmetic.multiply_masked_row
    multiply_by_vector = arithmetic.multiply_by_vector

    @njit
    def positions(row, index):
        return array_at(*argument(row, index), half_word)

    @njit
    def start_of(product):
        return array_at(product[compression.START], 1, dtype)[0]

    @njit
    def operands_from(row, index):
        """Return numbers and positions of the row, and where rows of the other matrix begin, its columns and values."""
        return (
            array(row, index + 1),
            positions(row, index),
            integers(row, index + 2),
            positions(row, index + 3),
            array(row, index + 4),
        )

    @njit
    def written(product, size):
        """Return the slots, their hash function, where the row begins, and the positions and numbers to write."""
        return (
            array_at(product[compression.SLOTS], product[compression.SLOT_COUNT], half_word),
            product[compression.FACTOR],
            product[compression.SHIFT],
            product[compression.ROW_BEGIN],
            array_at(product[compression.OUT_POSITIONS], size, half_word),
            array_at(product[compression.OUT_NUMBERS], size, dtype),
        )

    def product_row(row, out, size, scratch):
        semiring, product = semiring_code(row, 0), array_at(out, compression.PRODUCT_WORDS, word)
        if semiring < 0:
            return semiring
        end = multiply_row(semiring, start_of(product), *operands_from(row, 1), *written(product, size))
        return contraction.INTERRUPTED if contraction.is_interrupted() else end

    def masked_product_row(row, out, size, scratch):
        semiring, product = semiring_code(row, 0), array_at(out, compression.PRODUCT_WORDS, word)
        if semiring < 0:
            return semiring
        mask = array(row, 7), positions(row, 6)
        end = multiply_masked_row(semiring, start_of(product), *mask, *operands_from(row, 1), *written(product, size))
        return contraction.INTERRUPTED if contraction.is_interrupted() else end

    def product_numbers(row, out, size, scratch):
        semiring, product = semiring_code(row, 0), array_at(out, compression.NUMBERS_WORDS, word)
        if semiring < 0:
            return semiring
        matrix = integers(row, 2), positions(row, 3), array(row, 4)
        vector, start = (integers(row, 5), array(row, 6)), array(row, 7)[0]
        numbers = array_at(product[compression.NUMBERS], size, dtype)
        valid = array_at(product[compression.VALIDITY], (size + 63) // 64, word)
        code = multiply_by_vector(semiring, start, integers(row, 1), *matrix, *vector, numbers, valid)
        return contraction.INTERRUPTED if contraction.is_interrupted() else code

    return {
        "product_row": RowKernel(product_row),
        "masked_product_row": RowKernel(masked_product_row),
        "product_numbers": RowKernel(product_numbers),
    }

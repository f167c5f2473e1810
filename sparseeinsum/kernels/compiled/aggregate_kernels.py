"""Kernels: adapts the functions of udfs/ that aggregate rows to the calling convention, for each dtype."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
from numba import njit, types

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels.compiled.arithmetic import DtypeArithmetic
from sparseeinsum.kernels.compiled.calling_convention import ArgumentAccess, RowKernel
from sparseeinsum.kernels.compiled.operator_codes import CODES
from sparseeinsum.kernels.compiled.parsed_arguments import aggregate_code, semiring_code
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.compiled.scratch import argument, half_word, integer, integers
from sparseeinsum.operators.semirings import SEMIRINGS

contraction = load_kernels("contraction")
elementwise = load_kernels("elementwise")
layout = load_kernels("layout")

SUM = CODES["sum"]
_AGGREGATES_OF_SEMIRINGS = np.array([CODES[semiring.aggregate] for semiring in SEMIRINGS])


@cache  # so that kernels with the same fold share its machine code
def folding(arithmetic: DtypeArithmetic, aggregate: int) -> tuple[Callable[..., int], Callable[..., int]]:
    """Return the functions that fill a new state of an aggregate of arrays, and merge two states."""
    dtype, fold, identity = arithmetic.dtype, arithmetic.fold, arithmetic.identities[aggregate]

    def start(row, out, size):
        elementwise.fill(dtype(identity), array_at(out, size, dtype))
        return 0

    def combine(out, other, size, background, shape):
        return fold(aggregate, array_at(out, size, dtype), array_at(other, size, dtype))

    return start, combine


def aggregate_kernels(arithmetic: DtypeArithmetic, array: ArgumentAccess) -> dict[str, RowKernel]:
    """Return the kernels for aggregates of arrays, scans, and sums of rows in memory, by their names."""
    dtype, fold = arithmetic.dtype, arithmetic.fold
    add_scaled, sum_rows, add_product_rows = arithmetic.add_scaled, arithmetic.sum_rows, arithmetic.add_product_rows
    scan, identities, reduce_rows = arithmetic.scan, arithmetic.identities, arithmetic.reduce_rows

    def folded(aggregate: int) -> RowKernel:
        def fold_row(row, out, size, scratch):
            return fold(aggregate, array_at(out, size, dtype), array(row, 0))

        start, combine = folding(arithmetic, aggregate)
        return RowKernel(fold_row, None, start, combine)

    def finish_average(out, size, rows):
        w = array_at(out, size, dtype)
        for i in range(size):
            w[i] /= rows
        return 0

    def sum_scaled(row, out, size, scratch):
        return add_scaled(array_at(out, size, dtype), array(row, 0)[0], array(row, 1))

    def scan_row(row, out, size, scratch):
        aggregate = aggregate_code(row)
        if aggregate < 0:
            return aggregate
        n, inner = layout.line_of(integer(row, 2), integers(row, 3))
        return scan(aggregate, dtype(identities[aggregate]), array(row, 1), array_at(out, size, dtype), n, inner)

    @njit
    def sum_gathered(row, w, numbers, positions):
        return sum_rows(w, numbers, positions, array(row, 6))

    @njit
    def sum_gathered_products(row, w, numbers, positions):
        elementwise.fill(array(row, 5)[0], w)
        return add_product_rows(w, numbers, positions, array(row, 6), array(row, 7))

    @njit
    def reduce_gathered(row, w, numbers, positions):
        semiring = semiring_code(row, 7)
        if semiring < 0:
            return semiring
        start = dtype(identities[_AGGREGATES_OF_SEMIRINGS[semiring]])
        return reduce_rows(semiring, start, w, numbers, positions, array(row, 6))

    def gather_rows(row, out, size, scratch):
        w = array_at(out, size, dtype)
        if size == 0:
            return 0
        code = sum_rows(w, array(row, 0), array_at(*argument(row, 1), half_word), array(row, 2))
        return contraction.INTERRUPTED if contraction.is_interrupted() else code

    folds = {name: folded(code) for name, code in CODES.items()}
    return {
        **folds,
        "scan": RowKernel(scan_row),
        "gather_rows": RowKernel(gather_rows),
        "gather_sum": RowKernel(_gathering(sum_gathered, array, dtype)),
        "gather_reduce": RowKernel(_gathering(reduce_gathered, array, dtype)),
        "gather_product_sum": RowKernel(_gathering(sum_gathered_products, array, dtype)),
        "avg": replace(folds["sum"], finish=finish_average),
        "sum_scaled": replace(folds["sum"], compute=sum_scaled),
    }


def _gathering(sum_up: Callable[..., int], array: ArgumentAccess, dtype: types.Number) -> Callable[..., int]:
    """Return the function that computes rows of a product from entries, by the operands that `gathers.py` lists.

    Args:
        sum_up: (row, w, numbers, positions) sets w to the sum for the entries of a row; returns 0 or a code.
        array: Reads arguments.
        dtype: That of the numbers.
    """
    item_bytes = dtype.bitwidth // 8

    def gather(row, out, size, scratch):
        rows, starts, results = integers(row, 0), integers(row, 1), integers(row, 4)
        address, entries = argument(row, 2)
        positions, numbers = array_at(address, entries, half_word), array(row, 3)
        code = 0
        for index in range(size):
            if results[2 * index + 1] > 0:
                w = array_at(out + item_bytes * results[2 * index], results[2 * index + 1], dtype)
                begin, end = starts[rows[index]], starts[rows[index] + 1]
                code = min(code, sum_up(row, w, numbers[begin:end], positions[begin:]))
                if contraction.is_interrupted():
                    return contraction.INTERRUPTED
        return code

    return gather

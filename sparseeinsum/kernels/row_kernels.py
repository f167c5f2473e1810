"""Kernels: every kernel of udfs/ behind one calling convention, so that a host needs no code for each.

A kernel gets addresses (int64) of a *row* (see descriptors.py), of the result and of scratch memory:

    compute(row, out, size, scratch) -> 0 or a negative code; aggregates fold the row into the state `out`
    batch(row, steps, rows, out, size, scratch) -> 1 if it computed `rows` rows, 0 if they go one by one, or a code
    initialise(row, out, size), combine(out, other, size, background) -> 0 or a code: aggregates only

`steps` gives, for every argument, the distance in elements between one row's array and the next one's; in a batch
of an aggregate all rows belong to one state. `background` is what an aggregate's state held before any row.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from sparseeinsum.assets import load_kernels
from sparseeinsum.kernels import measures
from sparseeinsum.kernels.arithmetic import Numbers
from sparseeinsum.kernels.measures import argument, integer, integers
from sparseeinsum.kernels.memory import array_at, copy_elements

aggregation = load_kernels("aggregation")
complexes = load_kernels("complexes")
contraction = load_kernels("contraction")
elementwise = load_kernels("elementwise")
layout = load_kernels("layout")

word = types.int64


@dataclass(frozen=True, slots=True)
class RowKernel:
    """The parts of one kernel for one dtype, as Python functions that numba compiles; None where there is none."""

    compute: Callable[..., int]
    batch: Callable[..., int] | None = None
    initialise: Callable[..., int] | None = None
    combine: Callable[..., int] | None = None


def row_kernels(numbers: Numbers) -> dict[str, RowKernel]:
    """All kernels by the names that udfs/*functions.toml use; each dtype compiles those that it has functions for."""
    dtype = numbers.dtype

    @njit
    def array(row, index):
        address, size = argument(row, index)
        return array_at(address, size, dtype)

    return {
        **_elementwise_kernels(numbers, array),
        **_measuring_kernels(numbers, array),
        **_expression_kernels(numbers, array),
        **_contraction_kernels(numbers, array),
        **_layout_kernels(dtype, array),
        **_complex_kernels(numbers, array),
        **_aggregates(numbers, array),
        **_stacks(numbers, array),
    }


Access = Callable[[int, int], NDArray[Any]]  # (row, index of an argument) -> the argument as an array


def _elementwise_kernels(numbers: Numbers, array: Access) -> dict[str, RowKernel]:
    dtype, combine_arrays, scale_array = numbers.dtype, numbers.combine, numbers.scale
    multiply_outer, multiply_inner = numbers.outer, numbers.dot

    def arithmetic(operation: int) -> RowKernel:
        def compute(row, out, size, scratch):
            return combine_arrays(operation, array(row, 0), array(row, 1), array_at(out, size, dtype))

        return RowKernel(compute)

    def scale(row, out, size, scratch):
        return scale_array(array(row, 0)[0], array(row, 1), array_at(out, size, dtype))

    def outer(row, out, size, scratch):
        return multiply_outer(array(row, 0), array(row, 1), array_at(out, size, dtype))

    def dot(row, out, size, scratch):
        return multiply_inner(array(row, 0), array(row, 1), array_at(out, 1, dtype))

    def fill(row, out, size, scratch):
        elementwise.fill(array(row, 1)[0], array_at(out, size, dtype))
        return 0

    return {
        "add": arithmetic(elementwise.ADD),
        "subtract": arithmetic(elementwise.SUBTRACT),
        "multiply": arithmetic(elementwise.MULTIPLY),
        "divide": arithmetic(elementwise.DIVIDE),
        "scale": RowKernel(scale),
        "outer": RowKernel(outer),
        "dot": RowKernel(dot),
        "fill": RowKernel(fill),
    }


def _measuring_kernels(numbers: Numbers, array: Access) -> dict[str, RowKernel]:
    dtype, identity_of, count_not_finite = numbers.dtype, numbers.identity_of, numbers.count_not_finite

    def norm(row, out, size, scratch):
        array_at(out, 1, dtype)[0] = np.sqrt(elementwise.sum_of_squares(array(row, 0)))
        return 0

    def nnz(row, out, size, scratch):
        array_at(out, 1, word)[0] = elementwise.count_differing(array(row, 0), dtype(0))
        return 0

    def nnz_beside(row, out, size, scratch):
        array_at(out, 1, word)[0] = elementwise.count_differing(array(row, 0), array(row, 1)[0])
        return 0

    def least(row, out, size, scratch):
        none = dtype(identity_of(aggregation.MIN))
        array_at(out, 1, dtype)[0] = elementwise.least(array(row, 0), array(row, 1)[0], none)
        return 0

    def greatest(row, out, size, scratch):
        none = dtype(identity_of(aggregation.MAX))
        array_at(out, 1, dtype)[0] = elementwise.greatest(array(row, 0), array(row, 1)[0], none)
        return 0

    def check_finite(row, out, size, scratch):
        """Copies what it checks, unless `out` is 0."""
        u = array(row, 1)
        if count_not_finite(u, array(row, 2)[0]) > 0:
            address, length = argument(row, 0)
            return measures.report(scratch, elementwise.NOT_FINITE, length, address, 0)
        if out != 0:
            copy_elements(array_at(out, size, dtype), u)
        return 0

    def is_finite(row, out, size, scratch):
        array_at(out, 1, word)[0] = elementwise.all_finite(array(row, 0))
        return 0

    return {
        "norm": RowKernel(norm),
        "nnz": RowKernel(nnz),
        "nnz_beside": RowKernel(nnz_beside),
        "least": RowKernel(least),
        "greatest": RowKernel(greatest),
        "check_finite": RowKernel(check_finite),
        "is_finite": RowKernel(is_finite),
    }


def _expression_kernels(numbers: Numbers, array: Access) -> dict[str, RowKernel]:
    dtype, block, check, evaluate_block = numbers.dtype, numbers.block, numbers.check, numbers.evaluate_block
    fold_line, identity_of = numbers.fold_line, numbers.identity_of

    @njit
    def evaluate(u, w, scratch):
        blocks = measures.blocks_of(scratch, block, dtype)
        program, constants = measures.program_of(scratch), measures.constants_of(scratch)
        code = check(program, constants, aggregation.SUM)
        for start in range(0, w.size if code == 0 else 0, block):
            stop = min(start + block, w.size)
            code = min(code, evaluate_block(program, constants, u[start:stop], u[start:stop], blocks))
            copy_elements(w[start:stop], blocks)
        return code

    def map_row(row, out, size, scratch):
        return evaluate(array(row, 1), array_at(out, size, dtype), scratch)

    def map_batch(row, steps, rows, out, size, scratch):
        if array_at(steps, 2, word)[1] != size:
            return 0
        code = evaluate(array_at(argument(row, 1)[0], rows * size, dtype), array_at(out, rows * size, dtype), scratch)
        return code if code < 0 else 1

    @njit
    def reduce_lines(u, v, w, aggregate, scratch):
        plan, code = measures.plan_of(scratch), 0
        line = contraction.line_label(plan)
        extent, in_u, in_v, in_w = contraction.strides_of(plan, line)
        blocks = measures.blocks_of(scratch, block, dtype)
        parts_u, parts_v = measures.part_of(scratch, 0, block, dtype), measures.part_of(scratch, 1, block, dtype)
        program, constants = measures.program_of(scratch), measures.constants_of(scratch)
        for step in range(contraction.steps(plan, contraction.bit(line))):
            at_u, at_v, at_w = contraction.offsets(plan, contraction.bit(line), step)
            for start in range(0, extent, block):
                n = min(block, extent - start)
                contraction.gather(u, at_u + start * in_u, in_u, parts_u[:n])
                contraction.gather(v, at_v + start * in_v, in_v, parts_v[:n])
                code = min(code, evaluate_block(program, constants, parts_u[:n], parts_v[:n], blocks))
                code = min(code, fold_line(aggregate, w, at_w + start * in_w, in_w, blocks, n))
        return code

    @njit
    def reduce_row(row, u, v, out, size, scratch):
        aggregate = measures.aggregate_of(row)
        w = array_at(out, size, dtype)
        elementwise.fill(identity_of(aggregate), w)
        code = check(measures.program_of(scratch), measures.constants_of(scratch), aggregate)
        if code == 0 and not contraction.is_empty(measures.plan_of(scratch)):
            code = reduce_lines(u, v, w, aggregate, scratch)
        return code

    def reduce(row, out, size, scratch):
        return reduce_row(row, array(row, 3), array(row, 4), out, size, scratch)

    def reduce_one(row, out, size, scratch):
        return reduce_row(row, array(row, 3), measures.one_of(scratch, dtype), out, size, scratch)

    return {
        "map_array": RowKernel(map_row, map_batch),
        "map_number": RowKernel(map_row, map_batch),
        "reduce": RowKernel(reduce),
        "reduce_one": RowKernel(reduce_one),
    }


def _contraction_kernels(numbers: Numbers, array: Access) -> dict[str, RowKernel]:
    dtype, add_products = numbers.dtype, numbers.contract

    @njit
    def contract(u, v, out, size, scratch):
        w = array_at(out, size, dtype)
        elementwise.fill(dtype(0), w)
        return add_products(measures.plan_of(scratch), u, v, w)

    @njit
    def contract_rows(u, step_u, v, step_v, rows, out, step_w, scratch):
        """Contract many rows at once: the row is one label more, and often part of a matrix product."""
        plan, batch = measures.plan_of(scratch), measures.batch_plan_of(scratch)
        copy_elements(batch, plan)
        contraction.add_label(batch, rows, step_u, step_v, step_w)
        contraction.simplify_plan(batch)
        last = rows - 1
        code = add_products(
            batch,
            array_at(u, plan[1] + last * step_u, dtype),
            array_at(v, plan[2] + last * step_v, dtype),
            array_at(out, plan[3] + last * step_w, dtype),
        )
        return code if code < 0 else 1

    def matmul(row, out, size, scratch):
        return contract(array(row, 0), array(row, 1), out, size, scratch)

    def matmul_batch(row, steps, rows, out, size, scratch):
        step = array_at(steps, 2, word)
        elementwise.fill(dtype(0), array_at(out, rows * size, dtype))
        return contract_rows(argument(row, 0)[0], step[0], argument(row, 1)[0], step[1], rows, out, size, scratch)

    def einsum(row, out, size, scratch):
        return contract(array(row, 1), array(row, 2), out, size, scratch)

    def einsum_batch(row, steps, rows, out, size, scratch):
        step = array_at(steps, 3, word)
        elementwise.fill(dtype(0), array_at(out, rows * size, dtype))
        return contract_rows(argument(row, 1)[0], step[1], argument(row, 2)[0], step[2], rows, out, size, scratch)

    def einsum_of_one(row, out, size, scratch):
        return contract(array(row, 1), measures.one_of(scratch, dtype), out, size, scratch)

    def add_einsum(row, out, size, scratch):
        return add_products(measures.plan_of(scratch), array(row, 1), array(row, 2), array_at(out, size, dtype))

    def add_einsum_batch(row, steps, rows, out, size, scratch):
        step = array_at(steps, 3, word)
        return contract_rows(argument(row, 1)[0], step[1], argument(row, 2)[0], step[2], rows, out, 0, scratch)

    start, combine = _folding(numbers, aggregation.SUM)
    return {
        "matmul": RowKernel(matmul, matmul_batch),
        "einsum": RowKernel(einsum, einsum_batch),
        "einsum_of_one": RowKernel(einsum_of_one),
        "einsum_sum": RowKernel(add_einsum, add_einsum_batch, start, combine),
    }


def _layout_kernels(dtype: types.Type, array: Access) -> dict[str, RowKernel]:
    def take_slice(row, out, size, scratch):
        w = array_at(out, size, dtype)
        layout.take_slice(array(row, 0), integer(row, 1), integer(row, 2), integers(row, 3), w)
        return 0

    def split(row, out, size, scratch):
        layout.split(array(row, 0), integers(row, 1), integers(row, 2), array_at(out, size, dtype))
        return 0

    return {
        "slice": RowKernel(take_slice),
        "split": RowKernel(split),
    }


def _complex_kernels(numbers: Numbers, array: Access) -> dict[str, RowKernel]:
    dtype, parts = numbers.dtype, numbers.parts

    def from_real(row, out, size, scratch):
        complexes.from_real(array_at(argument(row, 0)[0], size, parts), array_at(out, size, dtype))
        return 0

    def real(row, out, size, scratch):
        complexes.real_parts(array(row, 0), array_at(out, size, parts))
        return 0

    def imaginary(row, out, size, scratch):
        complexes.imaginary_parts(array(row, 0), array_at(out, size, parts))
        return 0

    return {"from_real": RowKernel(from_real), "real": RowKernel(real), "imaginary": RowKernel(imaginary)}


@cache  # one machine code for all kernels that fold alike
def _folding(numbers: Numbers, aggregate: int) -> tuple[Callable[..., int], Callable[..., int]]:
    """How an aggregate of arrays starts, and how two of its states merge."""
    dtype, fold, identity_of = numbers.dtype, numbers.fold, numbers.identity_of

    def start(row, out, size):
        elementwise.fill(identity_of(aggregate), array_at(out, size, dtype))
        return 0

    def combine(out, other, size, background):
        return fold(aggregate, array_at(out, size, dtype), array_at(other, size, dtype))

    return start, combine


def _aggregates(numbers: Numbers, array: Access) -> dict[str, RowKernel]:
    dtype, fold, add_scaled = numbers.dtype, numbers.fold, numbers.add_scaled

    def folded(aggregate: int) -> RowKernel:
        def fold_row(row, out, size, scratch):
            return fold(aggregate, array_at(out, size, dtype), array(row, 0))

        start, combine = _folding(numbers, aggregate)
        return RowKernel(fold_row, None, start, combine)

    def sum_scaled(row, out, size, scratch):
        return add_scaled(array_at(out, size, dtype), array(row, 0)[0], array(row, 1))

    start, combine = _folding(numbers, aggregation.SUM)
    return {
        **{name: folded(code) for code, name in enumerate(aggregation.AGGREGATES)},
        "sum_scaled": RowKernel(sum_scaled, None, start, combine),
    }


def _stacks(numbers: Numbers, array: Access) -> dict[str, RowKernel]:
    dtype, bits, words = numbers.dtype, numbers.bits, numbers.words

    def stack(row, out, size, scratch):
        w = array_at(out, size, dtype)
        layout.place(w, array(row, 0), integer(row, 1), integer(row, 2), integer(row, 3))
        return 0

    def start_stack(row, out, size):
        elementwise.fill(array(row, 4)[0], array_at(out, size, dtype))
        return 0

    def stack_number(row, out, size, scratch):
        array_at(out, size, dtype)[integer(row, 1)] = array(row, 0)[0]
        return 0

    def start_numbers(row, out, size):
        elementwise.fill(array(row, 3)[0], array_at(out, size, dtype))
        return 0

    def overlay(out, other, size, background):
        w, u = array_at(out, words * size, bits), array_at(other, words * size, bits)
        layout.overlay(w, u, array_at(background, words, bits))
        return 0

    def count_along(row, out, size, scratch):
        fill, counts = array(row, 3)[0], array_at(out, size, word)
        layout.count_along(array(row, 0), integer(row, 1), integers(row, 2), fill, counts)
        return 0

    def start_count(row, out, size):
        elementwise.fill(np.int64(0), array_at(out, size, word))
        return 0

    def add_counts(out, other, size, background):
        aggregation.fold(aggregation.SUM, array_at(out, size, word), array_at(other, size, word))
        return 0

    return {
        "stack": RowKernel(stack, None, start_stack, overlay),
        "stack_numbers": RowKernel(stack_number, None, start_numbers, overlay),
        "nnz_along": RowKernel(count_along, None, start_count, add_counts),
    }

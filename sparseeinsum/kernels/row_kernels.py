"""Kernels: every kernel of udfs/ behind one calling convention, so that a host needs no code for each.

A kernel gets addresses (int64) of a *row* (see descriptors.py), of the result and of scratch memory:

    compute(row, out, size, scratch) -> 0 or a negative code; aggregates fold the row into the state `out`
    batch(row, steps, rows, out, size, scratch) -> 1 if it computed `rows` rows, 0 if they go one by one
    initialise(row, out, size), combine(out, other, size, background): aggregates only

`steps` gives, for every argument, the distance in elements between one row's array and the next one's; in a batch
of an aggregate all rows belong to one state. `background` is what an aggregate's state held before any row.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from sparseeinsum.assets import load_kernels
from sparseeinsum.kernels import measures
from sparseeinsum.kernels.measures import argument, integer, integers
from sparseeinsum.kernels.memory import array_at, copy_elements

aggregation = load_kernels("aggregation")
contraction = load_kernels("contraction")
elementwise = load_kernels("elementwise")
expression = load_kernels("expression")
layout = load_kernels("layout")

word = types.int64


@dataclass(frozen=True, slots=True)
class RowKernel:
    """The parts of one kernel for one dtype, as Python functions that numba compiles; None where there is none."""

    compute: Callable[..., int]
    batch: Callable[..., int] | None = None
    initialise: Callable[..., int] | None = None
    combine: Callable[..., int] | None = None


def row_kernels(dtype: types.Float) -> dict[str, RowKernel]:
    """All kernels by the names that udfs/functions.toml uses, for float64 or float32 arrays."""

    @njit
    def array(row, index):
        address, size = argument(row, index)
        return array_at(address, size, dtype)

    return {
        **_elementwise_kernels(dtype, array),
        **_expression_kernels(dtype, array),
        **_contraction_kernels(dtype, array),
        **_layout_kernels(dtype, array),
        **_aggregates(dtype, array),
        **_stacks(dtype, array),
    }


Access = Callable[[int, int], NDArray[Any]]  # (row, index of an argument) -> the argument as an array


def _elementwise_kernels(dtype: types.Float, array: Access) -> dict[str, RowKernel]:
    def arithmetic(operation: int) -> RowKernel:
        def compute(row, out, size, scratch):
            elementwise.combine(operation, array(row, 0), array(row, 1), array_at(out, size, dtype))
            return 0

        return RowKernel(compute)

    def scale(row, out, size, scratch):
        elementwise.scale(array(row, 0)[0], array(row, 1), array_at(out, size, dtype))
        return 0

    def outer(row, out, size, scratch):
        elementwise.outer(array(row, 0), array(row, 1), array_at(out, size, dtype))
        return 0

    def dot(row, out, size, scratch):
        array_at(out, 1, dtype)[0] = contraction.dot(array(row, 0), array(row, 1))
        return 0

    def norm(row, out, size, scratch):
        array_at(out, 1, dtype)[0] = np.sqrt(elementwise.sum_of_squares(array(row, 0)))
        return 0

    def nnz(row, out, size, scratch):
        array_at(out, 1, word)[0] = elementwise.count_nonzero(array(row, 0))
        return 0

    def is_finite(row, out, size, scratch):
        array_at(out, 1, word)[0] = elementwise.all_finite(array(row, 0))
        return 0

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
        "norm": RowKernel(norm),
        "nnz": RowKernel(nnz),
        "is_finite": RowKernel(is_finite),
        "fill": RowKernel(fill),
    }


def _expression_kernels(dtype: types.Float, array: Access) -> dict[str, RowKernel]:
    @njit
    def evaluate(u, w, scratch):
        blocks = measures.blocks_of(scratch, dtype)
        program, constants = measures.program_of(scratch), measures.constants_of(scratch)
        for start in range(0, w.size, expression.BLOCK):
            stop = min(start + expression.BLOCK, w.size)
            expression.evaluate_block(program, constants, u[start:stop], u[start:stop], blocks)
            copy_elements(w[start:stop], blocks)

    def map_row(row, out, size, scratch):
        evaluate(array(row, 1), array_at(out, size, dtype), scratch)
        return 0

    def map_batch(row, steps, rows, out, size, scratch):
        if array_at(steps, 2, word)[1] != size:
            return 0
        evaluate(array_at(argument(row, 1)[0], rows * size, dtype), array_at(out, rows * size, dtype), scratch)
        return 1

    @njit
    def reduce_lines(u, v, w, aggregate, scratch):
        plan = measures.plan_of(scratch)
        line = contraction.line_label(plan)
        extent, in_u, in_v, in_w = contraction.strides_of(plan, line)
        blocks = measures.blocks_of(scratch, dtype)
        parts_u, parts_v = measures.part_of(scratch, dtype, 0), measures.part_of(scratch, dtype, 1)
        program, constants = measures.program_of(scratch), measures.constants_of(scratch)
        for step in range(contraction.steps(plan, contraction.bit(line))):
            at_u, at_v, at_w = contraction.offsets(plan, contraction.bit(line), step)
            for start in range(0, extent, expression.BLOCK):
                n = min(expression.BLOCK, extent - start)
                contraction.gather(u, at_u + start * in_u, in_u, parts_u[:n])
                contraction.gather(v, at_v + start * in_v, in_v, parts_v[:n])
                expression.evaluate_block(program, constants, parts_u[:n], parts_v[:n], blocks)
                aggregation.fold_line(aggregate, w, at_w + start * in_w, in_w, blocks, n)

    @njit
    def reduce_row(row, u, v, out, size, scratch):
        address, length = argument(row, 0)
        aggregate = aggregation.aggregate_code(array_at(address, length, types.uint8))
        w = array_at(out, size, dtype)
        elementwise.fill(dtype(aggregation.identity_of(aggregate)), w)
        if not contraction.is_empty(measures.plan_of(scratch)):
            reduce_lines(u, v, w, aggregate, scratch)
        return 0

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


def _contraction_kernels(dtype: types.Float, array: Access) -> dict[str, RowKernel]:
    @njit
    def contract(u, v, out, size, scratch):
        w = array_at(out, size, dtype)
        elementwise.fill(dtype(0), w)
        contraction.contract(measures.plan_of(scratch), u, v, w)
        return 0

    @njit
    def contract_rows(u, step_u, v, step_v, rows, out, step_w, scratch):
        """Contract many rows at once: the row is one label more, and often part of a matrix product."""
        plan, batch = measures.plan_of(scratch), measures.batch_plan_of(scratch)
        copy_elements(batch, plan)
        contraction.add_label(batch, rows, step_u, step_v, step_w)
        contraction.simplify_plan(batch)
        last = rows - 1
        contraction.contract(
            batch,
            array_at(u, plan[1] + last * step_u, dtype),
            array_at(v, plan[2] + last * step_v, dtype),
            array_at(out, plan[3] + last * step_w, dtype),
        )

    def matmul(row, out, size, scratch):
        return contract(array(row, 0), array(row, 1), out, size, scratch)

    def matmul_batch(row, steps, rows, out, size, scratch):
        step = array_at(steps, 2, word)
        elementwise.fill(dtype(0), array_at(out, rows * size, dtype))
        contract_rows(argument(row, 0)[0], step[0], argument(row, 1)[0], step[1], rows, out, size, scratch)
        return 1

    def einsum(row, out, size, scratch):
        return contract(array(row, 1), array(row, 2), out, size, scratch)

    def einsum_batch(row, steps, rows, out, size, scratch):
        step = array_at(steps, 3, word)
        elementwise.fill(dtype(0), array_at(out, rows * size, dtype))
        contract_rows(argument(row, 1)[0], step[1], argument(row, 2)[0], step[2], rows, out, size, scratch)
        return 1

    def einsum_of_one(row, out, size, scratch):
        return contract(array(row, 1), measures.one_of(scratch, dtype), out, size, scratch)

    def add_einsum(row, out, size, scratch):
        contraction.contract(measures.plan_of(scratch), array(row, 1), array(row, 2), array_at(out, size, dtype))
        return 0

    def add_einsum_batch(row, steps, rows, out, size, scratch):
        step = array_at(steps, 3, word)
        contract_rows(argument(row, 1)[0], step[1], argument(row, 2)[0], step[2], rows, out, 0, scratch)
        return 1

    start, combine = _folding(dtype, aggregation.SUM)
    return {
        "matmul": RowKernel(matmul, matmul_batch),
        "einsum": RowKernel(einsum, einsum_batch),
        "einsum_of_one": RowKernel(einsum_of_one),
        "einsum_sum": RowKernel(add_einsum, add_einsum_batch, start, combine),
    }


def _layout_kernels(dtype: types.Float, array: Access) -> dict[str, RowKernel]:
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


def _folding(dtype: types.Float, aggregate: int) -> tuple[Callable[..., int], Callable[..., int]]:
    """How a sum, product, maximum or minimum of arrays starts, and how two of its states merge."""

    def start(row, out, size):
        elementwise.fill(dtype(aggregation.identity_of(aggregate)), array_at(out, size, dtype))
        return 0

    def combine(out, other, size, background):
        aggregation.fold(aggregate, array_at(out, size, dtype), array_at(other, size, dtype))
        return 0

    return start, combine


def _aggregates(dtype: types.Float, array: Access) -> dict[str, RowKernel]:
    def folded(aggregate: int) -> RowKernel:
        def fold(row, out, size, scratch):
            aggregation.fold(aggregate, array_at(out, size, dtype), array(row, 0))
            return 0

        start, combine = _folding(dtype, aggregate)
        return RowKernel(fold, None, start, combine)

    def sum_scaled(row, out, size, scratch):
        aggregation.add_scaled(array_at(out, size, dtype), array(row, 0)[0], array(row, 1))
        return 0

    start, combine = _folding(dtype, aggregation.SUM)
    return {
        "sum": folded(aggregation.SUM),
        "prod": folded(aggregation.PROD),
        "max": folded(aggregation.MAX),
        "min": folded(aggregation.MIN),
        "sum_scaled": RowKernel(sum_scaled, None, start, combine),
    }


def _stacks(dtype: types.Float, array: Access) -> dict[str, RowKernel]:
    bits = types.int64 if dtype is types.float64 else types.int32

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
        layout.overlay(array_at(out, size, bits), array_at(other, size, bits), array_at(background, 1, bits)[0])
        return 0

    def count_along(row, out, size, scratch):
        layout.count_along(array(row, 0), integer(row, 1), integers(row, 2), array_at(out, size, word))
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

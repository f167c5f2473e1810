"""Kernels: adapts the functions of udfs/ that compute to the calling convention, for each dtype."""

from collections.abc import Callable

import numpy as np
from numba import njit

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels.compiled.aggregate_kernels import SUM, aggregate_kernels
from sparseeinsum.kernels.compiled.arithmetic import DtypeArithmetic
from sparseeinsum.kernels.compiled.calling_convention import ArgumentAccess, RowKernel
from sparseeinsum.kernels.compiled.contraction_kernels import contraction_kernels
from sparseeinsum.kernels.compiled.layout_kernels import layout_kernels
from sparseeinsum.kernels.compiled.line_kernels import line_kernels
from sparseeinsum.kernels.compiled.operator_codes import CODES
from sparseeinsum.kernels.compiled.parsed_arguments import aggregate_code
from sparseeinsum.kernels.compiled.plan_memory import batch_plan_of, plan_of
from sparseeinsum.kernels.compiled.raw_memory import array_at, copy_elements
from sparseeinsum.kernels.compiled.row_product_kernels import row_product_kernels
from sparseeinsum.kernels.compiled.scaled_dot_kernels import scaled_dot_kernels
from sparseeinsum.kernels.compiled.scratch import (
    argument,
    array_of_one,
    constants_of,
    evaluation_stack,
    operand_block,
    program_of,
    report,
    word,
)
from sparseeinsum.kernels.compiled.slices import elements_of_slice, slice_bounds
from sparseeinsum.kernels.compiled.sparse_matmul_kernels import sparse_matmul_kernels
from sparseeinsum.kernels.compiled.sparse_matvec_kernels import sparse_matvec_kernels
from sparseeinsum.kernels.compiled.state_kernels import state_kernels
from sparseeinsum.kernels.compiled.whole_product_kernels import whole_product_kernels

complexes = load_kernels("complexes")
contraction, contraction_plan = load_kernels("contraction"), load_kernels("contraction_plan")
elementwise = load_kernels("elementwise")

_BLOCKS_BETWEEN_PAUSES = 64
_LAST = _BLOCKS_BETWEEN_PAUSES - 1
_LEAST_LINE = 32  # elements of a line of an expression, if there are longer ones


def row_kernels(arithmetic: DtypeArithmetic) -> dict[str, RowKernel]:
    """Return all kernels by the names in udfs/*functions.toml; a dtype compiles only those that its functions use."""
    dtype = arithmetic.dtype

    @njit
    def array(row, index):
        address, size = argument(row, index)
        return array_at(address, size, dtype)

    return {
        **_elementwise_kernels(arithmetic, array),
        **_measuring_kernels(arithmetic, array),
        **_map_kernels(arithmetic, array),
        **_reduce_kernels(arithmetic, array),
        **contraction_kernels(arithmetic, array),
        **layout_kernels(arithmetic, array),
        **line_kernels(arithmetic.dtype, array),
        **_complex_kernels(arithmetic, array),
        **aggregate_kernels(arithmetic, array),
        **row_product_kernels(arithmetic, array),
        **whole_product_kernels(arithmetic, array),
        **scaled_dot_kernels(arithmetic, array),
        **sparse_matmul_kernels(arithmetic, array),
        **sparse_matvec_kernels(arithmetic, array),
        **state_kernels(arithmetic, array),
    }


def _elementwise_kernels(arithmetic: DtypeArithmetic, array: ArgumentAccess) -> dict[str, RowKernel]:
    dtype, scale_array = arithmetic.dtype, arithmetic.scale
    multiply_outer, multiply_inner = arithmetic.outer, arithmetic.dot

    def binary_kernel(function: Callable[..., int]) -> RowKernel:
        def compute_slice(row, out, size, index, slices, scratch):
            first, end = slice_bounds(size, index, slices)
            u = elements_of_slice(array(row, 0), first, end)
            v = elements_of_slice(array(row, 1), first, end)
            return function(u, v, array_at(out, size, dtype)[first:end])

        return RowKernel(compute_slice=compute_slice)

    def scale(row, out, size, index, slices, scratch):
        first, end = slice_bounds(size, index, slices)
        return scale_array(array(row, 0)[0], array(row, 1)[first:end], array_at(out, size, dtype)[first:end])

    def outer(row, out, size, scratch):
        return multiply_outer(array(row, 0), array(row, 1), array_at(out, size, dtype))

    def dot(row, out, size, scratch):
        return multiply_inner(array(row, 0), array(row, 1), array_at(out, 1, dtype))

    def fill(row, out, size, scratch):
        elementwise.fill(array(row, 1)[0], array_at(out, size, dtype))
        return 0

    return {
        **{name: binary_kernel(function) for name, function in arithmetic.functions.items()},
        "scale": RowKernel(compute_slice=scale),
        "outer": RowKernel(outer),
        "dot": RowKernel(dot),
        "fill": RowKernel(fill),
    }


def _measuring_kernels(arithmetic: DtypeArithmetic, array: ArgumentAccess) -> dict[str, RowKernel]:
    dtype, count_not_finite = arithmetic.dtype, arithmetic.count_not_finite
    bits, words = arithmetic.bits, arithmetic.words
    identity_of_min, identity_of_max = arithmetic.identities[CODES["min"]], arithmetic.identities[CODES["max"]]

    def norm(row, out, size, scratch):
        array_at(out, 1, dtype)[0] = np.sqrt(elementwise.sum_of_squares(array(row, 0)))
        return 0

    def nnz(row, out, size, scratch):
        array_at(out, 1, word)[0] = elementwise.count_differing(array(row, 0), dtype(0))
        return 0

    def nnz_with_fill(row, out, size, scratch):
        array_at(out, 1, word)[0] = elementwise.count_differing(array(row, 0), array(row, 1)[0])
        return 0

    def least(row, out, size, scratch):
        array_at(out, 1, dtype)[0] = elementwise.least(array(row, 0), array(row, 1)[0], dtype(identity_of_min))
        return 0

    def greatest(row, out, size, scratch):
        array_at(out, 1, dtype)[0] = elementwise.greatest(array(row, 0), array(row, 1)[0], dtype(identity_of_max))
        return 0

    def check_finite(row, out, size, index, slices, scratch):
        """Check the second argument, and copy it to `out` unless that is 0."""
        first, end = slice_bounds(argument(row, 1)[1], index, slices)
        u = array(row, 1)[first:end]
        if count_not_finite(u, array(row, 2)[0]) > 0:
            address, length = argument(row, 0)
            return report(scratch, elementwise.NOT_FINITE, length, address, 0)
        if out != 0:
            copy_elements(array_at(out, size, dtype)[first:end], u)
        return 0

    def is_finite(row, out, size, scratch):
        array_at(out, 1, word)[0] = elementwise.all_finite(array(row, 0))
        return 0

    def hash_row(row, out, size, scratch):
        address, length = argument(row, 0)
        array_at(out, 1, word)[0] = elementwise.hash_words(array_at(address, length * words, bits))
        return 0

    return {
        "norm": RowKernel(norm),
        "nnz": RowKernel(nnz),
        "nnz_with_fill": RowKernel(nnz_with_fill),
        "least": RowKernel(least),
        "greatest": RowKernel(greatest),
        "check_finite": RowKernel(compute_slice=check_finite),
        "is_finite": RowKernel(is_finite),
        "hash": RowKernel(hash_row),
    }


def _map_kernels(arithmetic: DtypeArithmetic, array: ArgumentAccess) -> dict[str, RowKernel]:
    dtype, block = arithmetic.dtype, arithmetic.block
    check, evaluate_block = arithmetic.check, arithmetic.evaluate_block

    @njit
    def evaluate(u, w, scratch):
        blocks = evaluation_stack(scratch, block, dtype)
        program, constants = program_of(scratch), constants_of(scratch)
        code = check(program, constants, SUM)
        for start in range(0, w.size if code == 0 else 0, block):
            stop = min(start + block, w.size)
            code = min(code, evaluate_block(program, constants, u[start:stop], u[start:stop], stop - start, blocks))
            copy_elements(w[start:stop], blocks)
            if start // block % _BLOCKS_BETWEEN_PAUSES == _LAST and contraction.is_interrupted():
                return contraction.INTERRUPTED
        return code

    def map_slice(row, out, size, index, slices, scratch):
        first, end = slice_bounds(size, index, slices)
        return evaluate(array(row, 1)[first:end], array_at(out, size, dtype)[first:end], scratch)

    def map_batch(row, steps, rows, out, size, scratch):
        if array_at(steps, 2, word)[1] != size:
            return 0
        code = evaluate(array_at(argument(row, 1)[0], rows * size, dtype), array_at(out, rows * size, dtype), scratch)
        return code if code < 0 else 1

    kernel = RowKernel(batch=map_batch, compute_slice=map_slice)
    return {"map_array": kernel, "map_number": kernel}


@njit
def _expression_line(plan):
    """Choose the label along which an expression is evaluated: a long one, then as `line_label`; -1 without labels.

    To start the operations of an expression takes as long as to apply them to many elements.
    """
    best = contraction.line_label(plan)
    for label in range(plan[0]):
        extent, least = contraction.strides_of(plan, label)[0], contraction.strides_of(plan, best)[0]
        if least < _LEAST_LINE and extent > least:
            best = label
    return best


@njit
def _elements_of_block(operand, offset, stride, out):
    """Return the elements of an operand for one block, in `out` unless they are neighbours; one if all are the same."""
    if stride == 1:
        return operand[offset : offset + out.size]
    count = 1 if stride == 0 else out.size
    contraction.gather(operand, offset, stride, out[:count])
    return out[:count]


@njit
def _store_block(block, out, offset, stride):
    """Write block[i] to out[offset + i * stride]."""
    if stride == 1:
        copy_elements(out[offset : offset + block.size], block)
    else:
        for i in range(block.size):
            out[offset + i * stride] = block[i]


def _make_reduce_lines(arithmetic: DtypeArithmetic) -> Callable[..., int]:
    """Make the function that evaluates an expression line by line, and folds or stores it."""
    dtype, block = arithmetic.dtype, arithmetic.block
    evaluate_block, fold_line = arithmetic.evaluate_block, arithmetic.fold_line

    @njit
    def reduce_lines(plan, u, v, w, aggregate, is_elementwise, scratch):
        line, code = _expression_line(plan), 0
        extent, stride_u, stride_v, stride_w = contraction.strides_of(plan, line)
        blocks = evaluation_stack(scratch, block, dtype)
        parts_u, parts_v = operand_block(scratch, 0, block, dtype), operand_block(scratch, 1, block, dtype)
        program, constants = program_of(scratch), constants_of(scratch)
        for step in range(contraction.steps(plan, contraction.bit(line))):
            offset_u, offset_v, offset_w = contraction.offsets(plan, contraction.bit(line), step)
            for start in range(0, extent, block):
                n = min(block, extent - start)
                some_u = _elements_of_block(u, offset_u + start * stride_u, stride_u, parts_u[:n])
                some_v = _elements_of_block(v, offset_v + start * stride_v, stride_v, parts_v[:n])
                code = min(code, evaluate_block(program, constants, some_u, some_v, n, blocks))
                if is_elementwise:
                    _store_block(blocks[:n], w, offset_w + start * stride_w, stride_w)
                else:
                    code = min(code, fold_line(aggregate, w, offset_w + start * stride_w, stride_w, blocks, n))
                if (step + start // block) % _BLOCKS_BETWEEN_PAUSES == _LAST and contraction.is_interrupted():
                    return contraction.INTERRUPTED
        return code

    return reduce_lines


def _reduce_kernels(arithmetic: DtypeArithmetic, array: ArgumentAccess) -> dict[str, RowKernel]:
    dtype, check, identities = arithmetic.dtype, arithmetic.check, arithmetic.identities
    reduce_lines = _make_reduce_lines(arithmetic)

    @njit
    def reduce_plan(row, plan, u, v, w, scratch):
        aggregate = aggregate_code(row)
        if aggregate < 0:
            return aggregate
        # The sum of one number is that number.
        is_elementwise = aggregate == SUM and contraction_plan.is_elementwise(plan, w.size)
        if not is_elementwise:
            elementwise.fill(identities[aggregate], w)
        code = check(program_of(scratch), constants_of(scratch), aggregate)
        if code == 0 and not contraction.is_empty(plan):
            code = reduce_lines(plan, u, v, w, aggregate, is_elementwise, scratch)
        return code

    @njit
    def reduce_rows(row, step_u, v, step_v, rows, out, size, scratch):
        """Reduce many rows at once: the row becomes one more label, of both operands and of the result."""
        plan, batch, last = plan_of(scratch), batch_plan_of(scratch), rows - 1
        copy_elements(batch, plan)
        contraction_plan.add_label(batch, rows, step_u, step_v, size)
        contraction_plan.simplify_plan(batch)
        code = reduce_plan(
            row,
            batch,
            array_at(argument(row, 3)[0], plan[1] + last * step_u, dtype),
            array_at(v, plan[2] + last * step_v, dtype),
            array_at(out, rows * size, dtype),
            scratch,
        )
        return code if code < 0 else 1

    @njit
    def reduce_slice(row, u, v, w, index, slices, scratch):
        """Reduce for some indices of the outermost axis of the result; the first slice is all if it has no axes."""
        plan, part = plan_of(scratch), batch_plan_of(scratch)
        label = contraction_plan.outermost_label(plan)
        if slices == 1 or label < 0:
            return reduce_plan(row, plan, u, v, w, scratch) if index == 0 else 0
        extent, stride_u, stride_v, stride_w = contraction.strides_of(plan, label)
        first, end = slice_bounds(extent, index, slices)
        copy_elements(part, plan)
        contraction_plan.set_extent(part, label, end - first)
        result = w[first * stride_w : end * stride_w]
        return reduce_plan(row, part, u[first * stride_u :], v[first * stride_v :], result, scratch)

    def reduce(row, out, size, index, slices, scratch):
        u, v, w = array(row, 3), array(row, 4), array_at(out, size, dtype)
        return reduce_slice(row, u, v, w, index, slices, scratch)

    def reduce_batch(row, steps, rows, out, size, scratch):
        step = array_at(steps, 5, word)
        return reduce_rows(row, step[3], argument(row, 4)[0], step[4], rows, out, size, scratch)

    def reduce_one(row, out, size, index, slices, scratch):
        u, one, w = array(row, 3), array_of_one(scratch, dtype), array_at(out, size, dtype)
        return reduce_slice(row, u, one, w, index, slices, scratch)

    def reduce_one_batch(row, steps, rows, out, size, scratch):
        step_u, one = array_at(steps, 4, word)[3], array_of_one(scratch, dtype)
        return reduce_rows(row, step_u, one.ctypes.data, 0, rows, out, size, scratch)

    return {
        "reduce": RowKernel(batch=reduce_batch, compute_slice=reduce),
        "reduce_one": RowKernel(batch=reduce_one_batch, compute_slice=reduce_one),
    }


def _complex_kernels(arithmetic: DtypeArithmetic, array: ArgumentAccess) -> dict[str, RowKernel]:
    dtype, part_dtype = arithmetic.dtype, arithmetic.part_dtype

    def from_real(row, out, size, scratch):
        complexes.from_real(array_at(argument(row, 0)[0], size, part_dtype), array_at(out, size, dtype))
        return 0

    def real(row, out, size, scratch):
        complexes.real_parts(array(row, 0), array_at(out, size, part_dtype))
        return 0

    def imaginary(row, out, size, scratch):
        complexes.imaginary_parts(array(row, 0), array_at(out, size, part_dtype))
        return 0

    return {"from_real": RowKernel(from_real), "real": RowKernel(real), "imaginary": RowKernel(imaginary)}

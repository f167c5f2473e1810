"""Kernels: adapts contractions, matrix products and Einstein summations, to the calling convention, for each dtype."""

from numba import njit, types

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels.compiled.aggregate_kernels import SUM, folding
from sparseeinsum.kernels.compiled.arithmetic import DtypeArithmetic
from sparseeinsum.kernels.compiled.blas_table import has_blas
from sparseeinsum.kernels.compiled.calling_convention import ArgumentAccess, RowKernel
from sparseeinsum.kernels.compiled.plan_memory import batch_plan_of, plan_of
from sparseeinsum.kernels.compiled.raw_memory import array_at, copy_elements
from sparseeinsum.kernels.compiled.scratch import argument, array_of_one, word
from sparseeinsum.kernels.compiled.slices import slice_bounds

contraction = load_kernels("contraction")
contraction_plan = load_kernels("contraction_plan")
elementwise = load_kernels("elementwise")

_add_busy_threads = types.ExternalFunction("sparseeinsum_add_busy_threads", types.int64(types.int64))


def contraction_kernels(arithmetic: DtypeArithmetic, array: ArgumentAccess) -> dict[str, RowKernel]:
    """Return the kernels of a dtype by their names in udfs/functions.toml."""
    dtype, add_products = arithmetic.dtype, arithmetic.contract

    @njit
    def contract(plan, u, v, w):
        elementwise.fill(dtype(0), w)
        return add_products(plan, u, v, w)

    @njit
    def contract_slice(u, v, w, index, slices, scratch):
        """Contract for some indices of the outermost axis of the result.

        The first slice is all if that is an axis of a matrix product of a BLAS, which has the threads.
        """
        plan, part = plan_of(scratch), batch_plan_of(scratch)
        label = contraction_plan.outermost_label(plan)
        if slices == 1 or label < 0 or (has_blas() and contraction.is_in_matrix_product(plan, label)):
            if index != 0:
                return 0
            _add_busy_threads(1 - slices)
            code = contract(plan, u, v, w)
            _add_busy_threads(slices - 1)
            return code
        extent, stride_u, stride_v, stride_w = contraction.strides_of(plan, label)
        first, end = slice_bounds(extent, index, slices)
        copy_elements(part, plan)
        contraction_plan.set_extent(part, label, end - first)
        result = w[first * stride_w : end * stride_w]
        return contract(part, u[first * stride_u :], v[first * stride_v :], result)

    @njit
    def contract_rows(u, step_u, v, step_v, rows, out, step_w, scratch):
        """Contract many rows at once: the row becomes one more label, often of a matrix product."""
        plan, batch = plan_of(scratch), batch_plan_of(scratch)
        copy_elements(batch, plan)
        contraction_plan.add_label(batch, rows, step_u, step_v, step_w)
        contraction_plan.simplify_plan(batch)
        last = rows - 1
        code = add_products(
            batch,
            array_at(u, plan[1] + last * step_u, dtype),
            array_at(v, plan[2] + last * step_v, dtype),
            array_at(out, plan[3] + last * step_w, dtype),
        )
        return code if code < 0 else 1

    def matmul(row, out, size, index, slices, scratch):
        return contract_slice(array(row, 0), array(row, 1), array_at(out, size, dtype), index, slices, scratch)

    def matmul_batch(row, steps, rows, out, size, scratch):
        step = array_at(steps, 2, word)
        elementwise.fill(dtype(0), array_at(out, rows * size, dtype))
        return contract_rows(argument(row, 0)[0], step[0], argument(row, 1)[0], step[1], rows, out, size, scratch)

    def einsum(row, out, size, index, slices, scratch):
        return contract_slice(array(row, 1), array(row, 2), array_at(out, size, dtype), index, slices, scratch)

    def einsum_batch(row, steps, rows, out, size, scratch):
        step = array_at(steps, 3, word)
        elementwise.fill(dtype(0), array_at(out, rows * size, dtype))
        return contract_rows(argument(row, 1)[0], step[1], argument(row, 2)[0], step[2], rows, out, size, scratch)

    def einsum_of_one(row, out, size, index, slices, scratch):
        one, w = array_of_one(scratch, dtype), array_at(out, size, dtype)
        return contract_slice(array(row, 1), one, w, index, slices, scratch)

    def add_einsum(row, out, size, scratch):
        return add_products(plan_of(scratch), array(row, 1), array(row, 2), array_at(out, size, dtype))

    def add_einsum_batch(row, steps, rows, out, size, scratch):
        step = array_at(steps, 3, word)
        return contract_rows(argument(row, 1)[0], step[1], argument(row, 2)[0], step[2], rows, out, 0, scratch)

    start, combine = folding(arithmetic, SUM)
    return {
        "matmul": RowKernel(batch=matmul_batch, compute_slice=matmul),
        "einsum": RowKernel(batch=einsum_batch, compute_slice=einsum),
        "einsum_of_one": RowKernel(compute_slice=einsum_of_one),
        "einsum_sum": RowKernel(add_einsum, add_einsum_batch, start, combine),
    }

"""Kernels: calls the machine code of user aggregates, whose states are one to four float64 numbers each."""

from numba import njit

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels.compiled.arithmetic import DtypeArithmetic
from sparseeinsum.kernels.compiled.calling_convention import ArgumentAccess, RowKernel
from sparseeinsum.kernels.compiled.parsed_arguments import numbers_of_state, user_aggregate
from sparseeinsum.kernels.compiled.plan_memory import plan_of
from sparseeinsum.kernels.compiled.raw_memory import array_at
from sparseeinsum.kernels.compiled.scratch import argument, array_of_one, integer, operand_block, word

contraction = load_kernels("contraction")
evaluation = load_kernels("evaluation")
user_function = load_kernels("user_function")

_ITEM_BYTES = 8
_LINES_BETWEEN_PAUSES = 64


def state_kernels(arithmetic: DtypeArithmetic, array: ArgumentAccess) -> dict[str, RowKernel]:
    """Return the kernels that fold elements into states, and merge states, by their names."""
    return {**_folds(arithmetic, array), **_merges(arithmetic, array)}


@njit
def _run_user_code(aggregate, operation, w, u, v, n, times):
    evaluation.call_function(aggregate >> 3, (operation, w, u, v, n, times))


def _folds(arithmetic: DtypeArithmetic, array: ArgumentAccess) -> dict[str, RowKernel]:
    dtype, block = arithmetic.dtype, arithmetic.block

    @njit
    def fold_lines(aggregate, u, v, out, scratch):
        plan = plan_of(scratch)
        line = contraction.line_label(plan)
        extent, stride_u, stride_v, stride_w = contraction.strides_of(plan, line)
        parts_u, parts_v = operand_block(scratch, 0, block, dtype), operand_block(scratch, 1, block, dtype)
        at_once = block if stride_w == 0 else 1
        step_bytes = _ITEM_BYTES * numbers_of_state(aggregate)
        for step in range(contraction.steps(plan, contraction.bit(line))):
            offset_u, offset_v, offset_w = contraction.offsets(plan, contraction.bit(line), step)
            for start in range(0, extent, at_once):
                n = min(at_once, extent - start)
                contraction.gather(u, offset_u + start * stride_u, stride_u, parts_u[:n])
                contraction.gather(v, offset_v + start * stride_v, stride_v, parts_v[:n])
                target = out + step_bytes * (offset_w + start * stride_w)
                _run_user_code(aggregate, user_function.FOLD, target, parts_u.ctypes.data, parts_v.ctypes.data, n, 0)
            if step % _LINES_BETWEEN_PAUSES == 0 and contraction.is_interrupted():
                return contraction.INTERRUPTED
        return 0

    @njit
    def fold_row(row, u, v, out, size, scratch):
        aggregate = user_aggregate(row)
        if aggregate < 0:
            return aggregate
        _run_user_code(aggregate, user_function.START, out, 0, 0, size // numbers_of_state(aggregate), 0)
        return 0 if contraction.is_empty(plan_of(scratch)) else fold_lines(aggregate, u, v, out, scratch)

    def fold(row, out, size, scratch):
        return fold_row(row, array(row, 2), array(row, 3), out, size, scratch)

    def fold_one(row, out, size, scratch):
        return fold_row(row, array(row, 2), array_of_one(scratch, dtype), out, size, scratch)

    return {"fold": RowKernel(fold), "fold_one": RowKernel(fold_one)}


def _merges(arithmetic: DtypeArithmetic, array: ArgumentAccess) -> dict[str, RowKernel]:
    dtype = arithmetic.dtype

    def start(row, out, size):
        aggregate = user_aggregate(row)
        if aggregate >= 0:
            _run_user_code(aggregate, user_function.START, out, 0, 0, size // numbers_of_state(aggregate), 0)
        return 0

    def merge(row, out, size, scratch):
        aggregate = user_aggregate(row)
        if aggregate < 0:
            return aggregate
        _run_user_code(
            aggregate, user_function.COMBINE, out, argument(row, 1)[0], 0, size // numbers_of_state(aggregate), 0
        )
        return 0

    def combine(out, other, size, background, shape):
        aggregate = array_at(shape, 2, word)[1]
        _run_user_code(aggregate, user_function.COMBINE, out, other, 0, size // numbers_of_state(aggregate), 0)
        return 0

    def merge_repeated(row, out, size, scratch):
        aggregate = user_aggregate(row)
        if aggregate < 0:
            return aggregate
        w, u, times = array_at(out, size, dtype), array(row, 1), integer(row, 3)
        for i in range(size):
            w[i] = u[i]
        if times > 0:
            _run_user_code(
                aggregate, user_function.REPEAT, out, argument(row, 2)[0], 0, size // numbers_of_state(aggregate), times
            )
        return 0

    return {
        "merge": RowKernel(merge, None, start, combine),
        "merge_repeated": RowKernel(merge_repeated),
    }

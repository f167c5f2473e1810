"""Kernels: what calls the machine code of users' aggregates, whose states are one to four float64 each."""

from numba import njit

from sparseeinsum.assets import load_kernels
from sparseeinsum.kernels.compiled.arithmetic import Numbers
from sparseeinsum.kernels.compiled.calling_convention import Access, RowKernel
from sparseeinsum.kernels.compiled.measures import aggregate_of_user, numbers_of_state
from sparseeinsum.kernels.compiled.memory import array_at
from sparseeinsum.kernels.compiled.scratch import argument, integer, one_of, part_of, plan_of, word

contraction = load_kernels("contraction")
evaluation = load_kernels("evaluation")
user_function = load_kernels("user_function")

_ITEM_BYTES = 8
_LINES_BETWEEN_PAUSES = 64


def state_kernels(numbers: Numbers, array: Access) -> dict[str, RowKernel]:
    """Folds inside arrays, the merging of states, and of what is absent, by their names."""
    return {**_folds(numbers, array), **_merges(numbers, array)}


@njit
def _run(user, operation, w, u, v, n, times):
    evaluation.call_function(user >> 3, (operation, w, u, v, n, times))


def _folds(numbers: Numbers, array: Access) -> dict[str, RowKernel]:
    dtype, block = numbers.dtype, numbers.block

    @njit
    def fold_lines(user, u, v, out, scratch):
        plan = plan_of(scratch)
        line = contraction.line_label(plan)
        extent, in_u, in_v, in_w = contraction.strides_of(plan, line)
        parts_u, parts_v = part_of(scratch, 0, block, dtype), part_of(scratch, 1, block, dtype)
        at_once = block if in_w == 0 else 1
        step_bytes = _ITEM_BYTES * numbers_of_state(user)
        for step in range(contraction.steps(plan, contraction.bit(line))):
            at_u, at_v, at_w = contraction.offsets(plan, contraction.bit(line), step)
            for start in range(0, extent, at_once):
                n = min(at_once, extent - start)
                contraction.gather(u, at_u + start * in_u, in_u, parts_u[:n])
                contraction.gather(v, at_v + start * in_v, in_v, parts_v[:n])
                target = out + step_bytes * (at_w + start * in_w)
                _run(user, user_function.FOLD, target, parts_u.ctypes.data, parts_v.ctypes.data, n, 0)
            if step % _LINES_BETWEEN_PAUSES == 0 and contraction.is_interrupted():
                return contraction.INTERRUPTED
        return 0

    @njit
    def fold_row(row, u, v, out, size, scratch):
        user = aggregate_of_user(row)
        if user < 0:
            return user
        _run(user, user_function.START, out, 0, 0, size // numbers_of_state(user), 0)
        return 0 if contraction.is_empty(plan_of(scratch)) else fold_lines(user, u, v, out, scratch)

    def fold(row, out, size, scratch):
        return fold_row(row, array(row, 2), array(row, 3), out, size, scratch)

    def fold_one(row, out, size, scratch):
        return fold_row(row, array(row, 2), one_of(scratch, dtype), out, size, scratch)

    return {"fold": RowKernel(fold), "fold_one": RowKernel(fold_one)}


def _merges(numbers: Numbers, array: Access) -> dict[str, RowKernel]:
    dtype = numbers.dtype

    def start(row, out, size):
        user = aggregate_of_user(row)
        if user >= 0:
            _run(user, user_function.START, out, 0, 0, size // numbers_of_state(user), 0)
        return 0

    def merge(row, out, size, scratch):
        user = aggregate_of_user(row)
        if user < 0:
            return user
        _run(user, user_function.COMBINE, out, argument(row, 1)[0], 0, size // numbers_of_state(user), 0)
        return 0

    def combine(out, other, size, background, shape):
        user = array_at(shape, 2, word)[1]
        _run(user, user_function.COMBINE, out, other, 0, size // numbers_of_state(user), 0)
        return 0

    def merge_repeated(row, out, size, scratch):
        user = aggregate_of_user(row)
        if user < 0:
            return user
        w, u, times = array_at(out, size, dtype), array(row, 1), integer(row, 3)
        for i in range(size):
            w[i] = u[i]
        if times > 0:
            _run(user, user_function.REPEAT, out, argument(row, 2)[0], 0, size // numbers_of_state(user), times)
        return 0

    return {
        "merge": RowKernel(merge, None, start, combine),
        "merge_repeated": RowKernel(merge_repeated),
    }

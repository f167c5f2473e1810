"""Contractions: sums of products over the labels inside two arrays, which `tensor_einsum` and its relatives compute.

Self-contained: numba and numpy only, no allocation, the same source for every host. contraction_plan.py makes the plans
that say how to walk the arrays. A host supplies the external functions `sparseeinsum_gemm_f64`, and f32, c128 and c64
for the dtypes that it has, `sparseeinsum_gpu_product`, which returns 0 if a GPU has computed a large product, and
`sparseeinsum_pause`, which is called at least every 0.1 s. It returns 0 to continue and another number to stop, or does
not return.

Names: u and v are the operands, w is the result; `offset_u` is where to start in u, and `stride_u` the distance between
neighbours in u, both in elements.
"""

import numpy as np
from numba import njit, types
from numba.extending import overload

INTERRUPTED = -9

_PLAN_HEADER = 4  # as in contraction_plan.py
_MAX_ELEMENTS = 1 << 40
_MAX_GEMM = (1 << 31) - 1  # BLAS counts in int32
_GEMM_WORTH = 2048  # multiply-adds below which plain loops beat a call of gemm (measured, 2 cores)

_GEMM_PRODUCTS = 1 << 30  # multiply-adds of one call of gemm, about 0.05 s; more if there are many rows and columns
_GPU_WORTH = 1 << 22  # multiply-adds that take a millisecond or less on a processor
# BLAS copies its operands first. Shorter sums add no copies, but fewer rows or columns do: with 268 rows, a product of
# 2,000 x 2,000 matrices takes 1.8 times as long, with sums of 384 it takes the same.
_LEAST_INNER = 512
_LEAST_ROWS = 2048
_PAUSE_PRODUCTS = 1 << 20  # multiply-adds of lines between two pauses

_pause = types.ExternalFunction("sparseeinsum_pause", types.int64())
_GEMM_ARGUMENTS = (types.int64,) * 11
_DTYPES = {"f64": types.float64, "f32": types.float32, "c128": types.complex128, "c64": types.complex64}
_GEMMS = {
    dtype: types.ExternalFunction(f"sparseeinsum_gemm_{name}", types.void(*_GEMM_ARGUMENTS))
    for name, dtype in _DTYPES.items()
}
_gpu_product = types.ExternalFunction("sparseeinsum_gpu_product", types.int64(types.int64, *_GEMM_ARGUMENTS))


@njit
def is_interrupted():
    """Whether the host asks to stop; the result is incomplete then."""
    return _pause() != 0


@njit
def contract(plan, u, v, w, add_line):
    """Add to `w` the sum of `u * v` over the labels that `w` lacks.

    Args:
        plan: A simplified plan.
        u: The first operand: flat, in C order, of a dtype that has a gemm.
        v: The second operand, of the same dtype; if there is one operand only, an array that contains a single 1.
        w: The result, of the same dtype.
        add_line: As for contract_lines.

    Returns:
        0, INTERRUPTED, or a code from add_line.
    """
    rows, columns, inner = _matrix_labels(plan)
    if rows >= 0 and columns >= 0 and inner >= 0 and not is_empty(plan):
        return _contract_matrices(plan, u, v, w, rows, columns, inner)
    return contract_lines(plan, u, v, w, add_line)


@njit
def contract_real(plan, u, v, w):
    """Contract as `contract`, for real numbers; a vector times a matrix reads several rows of the matrix at a time."""
    if plan[0] == 2 and not is_empty(plan):
        for columns in range(2):
            n, k = _PLAN_HEADER + 4 * columns, _PLAN_HEADER + 4 * (1 - columns)
            if plan[n + 3] == 1 and plan[k + 3] == 0 and plan[n + 1] + plan[n + 2] == 1:
                if plan[n + 2] == 1:
                    _add_rows(w, plan[n], u, plan[k + 1], v, plan[k + 2], plan[k])
                else:
                    _add_rows(w, plan[n], v, plan[k + 2], u, plan[k + 1], plan[k])
                return 0
    return contract(plan, u, v, w, add_line)


@njit
def _add_rows(w, extent, scales, scale_step, rows, row_step, count):
    """Add `count` rows of `extent` elements to w, each times its scale, four rows at a time to save accesses of w."""
    w = w[:extent]
    together = count - count % 4
    for first in range(0, together, 4):
        at, scale = first * row_step, first * scale_step
        add_four_scaled(
            w,
            scales[scale],
            rows[at : at + extent],
            scales[scale + scale_step],
            rows[at + row_step : at + row_step + extent],
            scales[scale + 2 * scale_step],
            rows[at + 2 * row_step : at + 2 * row_step + extent],
            scales[scale + 3 * scale_step],
            rows[at + 3 * row_step : at + 3 * row_step + extent],
        )
    for row in range(together, count):
        _add_scaled(w, scales[row * scale_step], rows[row * row_step : row * row_step + extent])


@njit(fastmath={"contract"})
def add_four_scaled(w, a, s, b, t, c, u, d, v):
    """Add a * s + b * t + c * u + d * v to w; s, t, u, v and w: (n,)."""
    for i in range(w.size):
        w[i] += a * s[i] + b * t[i] + c * u[i] + d * v[i]


@njit
def _matrix_labels(plan):
    """Return the labels (rows, columns, inner) of the largest matrix product in the plan, or (-1, -1, -1).

    There is none if gemm is not worth the call or cannot address the matrices. The longest label need not be in it: the
    label of the rows of a batch may have no unit stride.
    """
    best, most = (-1, -1, -1), 0
    for rows in range(plan[0]):
        for columns in range(plan[0] if _is_in(plan, rows, True, False, True) else 0):
            for inner in range(plan[0] if _is_in(plan, columns, False, True, True) else 0):
                if _is_in(plan, inner, True, True, False) and _suits_gemm(plan, rows, columns, inner):
                    products = _extent(plan, rows) * _extent(plan, columns) * _extent(plan, inner)
                    if products > most:
                        best, most = (rows, columns, inner), products
    return best


@njit
def is_in_matrix_product(plan, label):
    """Whether a label is one of the largest matrix product in the plan."""
    rows, columns, inner = _matrix_labels(plan)
    return label == rows or label == columns or label == inner


@njit
def _is_in(plan, label, u, v, w):
    """Whether a label is in exactly those arrays: u, v and w are booleans."""
    record = _PLAN_HEADER + 4 * label
    return (plan[record + 1] != 0) == u and (plan[record + 2] != 0) == v and (plan[record + 3] != 0) == w


@njit
def _extent(plan, label):
    return plan[_PLAN_HEADER + 4 * label]


@njit
def _suits_gemm(plan, rows, columns, inner):
    m, n, k = _PLAN_HEADER + 4 * rows, _PLAN_HEADER + 4 * columns, _PLAN_HEADER + 4 * inner
    if plan[m] * plan[n] * plan[k] < _GEMM_WORTH or max(plan[m], max(plan[n], plan[k])) > _MAX_GEMM:
        return False
    return (
        _is_matrix(plan[m], plan[m + 1], plan[k], plan[k + 1])
        and _is_matrix(plan[k], plan[k + 2], plan[n], plan[n + 2])
        and _is_matrix(plan[m], plan[m + 3], plan[n], plan[n + 3])
    )


@njit
def _is_matrix(first_extent, first_stride, second_extent, second_stride):
    """Whether BLAS can address a matrix: one stride is 1, the other is at least the extent of that axis."""
    return (second_stride == 1 and first_stride >= second_extent) or (
        first_stride == 1 and second_stride >= first_extent
    )


@njit
def _contract_matrices(plan, u, v, w, rows, columns, inner):
    m, n, k = _PLAN_HEADER + 4 * rows, _PLAN_HEADER + 4 * columns, _PLAN_HEADER + 4 * inner
    skip = bit(rows) | bit(columns) | bit(inner)
    for step in range(steps(plan, skip)):
        offset_u, offset_v, offset_w = offsets(plan, skip, step)
        a = u.ctypes.data + u.itemsize * offset_u
        b = v.ctypes.data + v.itemsize * offset_v
        c = w.ctypes.data + w.itemsize * offset_w
        if plan[n + 3] == 1:
            gemm(w, plan[m], plan[n], plan[k], a, plan[m + 1], plan[k + 1], b, plan[k + 2], plan[n + 2], c, plan[m + 3])
        else:  # the columns of w are contiguous: compute its transpose
            gemm(w, plan[n], plan[m], plan[k], b, plan[n + 2], plan[k + 2], a, plan[k + 1], plan[m + 1], c, plan[n + 3])
        if is_interrupted():
            return INTERRUPTED
    return 0


@njit
def gemm(dtype_of, m, n, k, a, a_rows, a_columns, b, b_rows, b_columns, c, c_rows):
    """Add the matrix product A B to C, for A (m, k), B (k, n) and C (m, n), in parts with pauses between them.

    Args:
        dtype_of: An array of the dtype of the matrices.
        m: The rows of A and C.
        n: The columns of B and C.
        k: The columns of A and the rows of B.
        a: The address of A.
        a_rows: The distance between rows of A, in elements.
        a_columns: The distance between columns of A; one of both distances is 1.
        b: The address of B.
        b_rows: As `a_rows`.
        b_columns: As `a_columns`.
        c: The address of C, which is row-major.
        c_rows: The distance between rows of C.
    """
    a_transposed = np.int64(a_columns != 1)
    b_transposed = np.int64(b_columns != 1)
    a_leading = a_columns if a_transposed else a_rows
    b_leading = b_columns if b_transposed else b_rows
    if m * n * k >= _GPU_WORTH and _ask_gpu(
        dtype_of, a_transposed, b_transposed, m, n, k, a, a_leading, b, b_leading, c, c_rows
    ):
        return
    inner = _part(k, m * n, _LEAST_INNER)
    rows = _part(m, n * inner, _LEAST_ROWS)
    columns = _part(n, rows * inner, _LEAST_ROWS)
    for row in range(0, m, rows):
        for column in range(0, n, columns):
            for first in range(0, k, inner):
                _call_gemm(
                    dtype_of,
                    a_transposed,
                    b_transposed,
                    min(rows, m - row),
                    min(columns, n - column),
                    min(inner, k - first),
                    a + (row * a_rows + first * a_columns) * dtype_of.itemsize,
                    a_leading,
                    b + (first * b_rows + column * b_columns) * dtype_of.itemsize,
                    b_leading,
                    c + (row * c_rows + column) * dtype_of.itemsize,
                    c_rows,
                )
                if is_interrupted():
                    return


@njit
def _part(extent, products, least):
    """Return how many of `extent` steps, each of so many multiply-adds, one call of gemm takes."""
    return max(min(extent, max(_GEMM_PRODUCTS // max(products, 1), least)), 1)


def _call_gemm(dtype_of, *arguments):
    """Call the gemm of an array's dtype; numba compiles `_choose_gemm` instead."""


@overload(_call_gemm)
def _choose_gemm(dtype_of, a_transposed, b_transposed, m, n, k, a, a_leading, b, b_leading, c, c_rows):
    product = _GEMMS[dtype_of.dtype]

    def compute(dtype_of, a_transposed, b_transposed, m, n, k, a, a_leading, b, b_leading, c, c_rows):
        product(a_transposed, b_transposed, m, n, k, a, a_leading, b, b_leading, c, c_rows)

    return compute


def _ask_gpu(dtype_of, *arguments):
    """Whether a GPU has added the product to C; numba compiles `_choose_dtype` instead."""


@overload(_ask_gpu)
def _choose_dtype(dtype_of, a_transposed, b_transposed, m, n, k, a, a_leading, b, b_leading, c, c_rows):
    number = list(_GEMMS).index(dtype_of.dtype)

    def compute(dtype_of, a_transposed, b_transposed, m, n, k, a, a_leading, b, b_leading, c, c_rows):
        return _gpu_product(number, a_transposed, b_transposed, m, n, k, a, a_leading, b, b_leading, c, c_rows) == 0

    return compute


@njit
def bit(label):
    """Return the bit set that contains one label, or no label for -1."""
    return np.int64(1) << label if label >= 0 else np.int64(0)


@njit
def strides_of(plan, label):
    """Return (extent, stride in u, in v, in w) of a label; label -1 stands for a single step."""
    if label < 0:
        return 1, 0, 0, 0
    record = _PLAN_HEADER + 4 * label
    return plan[record], plan[record + 1], plan[record + 2], plan[record + 3]


@njit
def is_empty(plan):
    """Whether a label has extent 0, so that there are no products."""
    for label in range(plan[0]):
        if plan[_PLAN_HEADER + 4 * label] == 0:
            return True
    return False


@njit
def gather(u, at, stride, part):
    """Copy the elements u[at + i * stride] to part[i]."""
    for i in range(part.size):
        part[i] = u[at + i * stride]


@njit
def steps(plan, skip):
    """Return the number of combinations of indices of the labels outside the bit set `skip`."""
    steps = 1
    for label in range(plan[0]):
        if (skip >> label) & 1 == 0:
            steps *= plan[_PLAN_HEADER + 4 * label]
    return steps


@njit
def offsets(plan, skip, step):
    """Return the offsets in u, v and w of combination `step` of the labels outside `skip`, the last label fastest."""
    offset_u, offset_v, offset_w = 0, 0, 0
    for backwards in range(plan[0]):
        label = plan[0] - 1 - backwards
        if (skip >> label) & 1 == 0:
            record = _PLAN_HEADER + 4 * label
            position = step % plan[record]
            step //= plan[record]
            offset_u += position * plan[record + 1]
            offset_v += position * plan[record + 2]
            offset_w += position * plan[record + 3]
    return offset_u, offset_v, offset_w


@njit
def line_label(plan):
    """Choose the label of the innermost loop: the most strides of 0 or 1, then the longest; -1 without labels."""
    best, best_score = -1, np.int64(-1)
    for label in range(plan[0]):
        record = _PLAN_HEADER + 4 * label
        units = 0
        for field in range(1, 4):
            if plan[record + field] == 0 or plan[record + field] == 1:
                units += 1
        score = units * _MAX_ELEMENTS + plan[record]
        if score > best_score:
            best, best_score = label, score
    return best


@njit
def contract_lines(plan, u, v, w, add_line):
    """Contract as `contract`, without gemm: one line at a time, along the label of the innermost loop.

    `add_line(w, offset_w, stride_w, u, offset_u, stride_u, v, offset_v, stride_v, extent)` adds the products of one
    line to w; it returns 0 or a code.
    """
    if is_empty(plan):
        return 0
    line, code = line_label(plan), 0
    extent, total = plan[_PLAN_HEADER + 4 * line] if line >= 0 else 1, steps(plan, bit(line))
    together = max(_PAUSE_PRODUCTS // extent, 1)
    for first in range(0, total, together):
        code = min(code, _contract_some_lines(plan, line, first, min(first + together, total), u, v, w, add_line))
        if first + together < total and is_interrupted():
            return INTERRUPTED
    return code


@njit
def _contract_some_lines(plan, line, first, end, u, v, w, add_line):
    code = 0
    extent, stride_u, stride_v, stride_w = strides_of(plan, line)
    for step in range(first, end):
        offset_u, offset_v, offset_w = offsets(plan, bit(line), step)
        code = min(code, add_line(w, offset_w, stride_w, u, offset_u, stride_u, v, offset_v, stride_v, extent))
    return code


@njit
def add_line(w, offset_w, stride_w, u, offset_u, stride_u, v, offset_v, stride_v, extent):
    """Add u[offset_u + i * stride_u] * v[offset_v + i * stride_v] to w[offset_w + i * stride_w] for i < extent."""
    if stride_w == 1 and stride_u == 0 and stride_v == 1:
        _add_scaled(w[offset_w : offset_w + extent], u[offset_u], v[offset_v : offset_v + extent])
    elif stride_w == 1 and stride_u == 1 and stride_v == 0:
        _add_scaled(w[offset_w : offset_w + extent], v[offset_v], u[offset_u : offset_u + extent])
    elif stride_w == 1 and stride_u == 1 and stride_v == 1:
        _add_product(w[offset_w : offset_w + extent], u[offset_u : offset_u + extent], v[offset_v : offset_v + extent])
    elif stride_w == 0 and stride_u == 1 and stride_v == 1:
        w[offset_w] += dot(u[offset_u : offset_u + extent], v[offset_v : offset_v + extent])
    elif stride_w == 0 and stride_u == 1 and stride_v == 0:
        w[offset_w] += _scaled_sum(v[offset_v], u[offset_u : offset_u + extent])
    elif stride_w == 0 and stride_u == 0 and stride_v == 1:
        w[offset_w] += _scaled_sum(u[offset_u], v[offset_v : offset_v + extent])
    else:
        _add_strided(w, offset_w, stride_w, u, offset_u, stride_u, v, offset_v, stride_v, extent)
    return 0


@njit
def _add_scaled(w, scale, v):
    for i in range(w.size):
        w[i] += scale * v[i]


@njit
def _add_product(w, u, v):
    for i in range(w.size):
        w[i] += u[i] * v[i]


@njit(fastmath={"reassoc", "contract"})  # lets the compiler sum in several SIMD lanes; NaN and inf stay exact
def dot(u, v):
    """Return the sum of u[i] * v[i]; u and v: (n,), one dtype."""
    total = u.dtype.type(0)
    for i in range(u.size):
        total += u[i] * v[i]
    return total


@njit(fastmath={"reassoc", "contract"})
def scaled_dot(scale, u, v):
    """Return the sum of scale * u[i] * v[i]; u and v: (n,), one dtype."""
    total = u.dtype.type(0)
    for i in range(u.size):
        total += scale * u[i] * v[i]
    return total


@njit(fastmath={"reassoc", "contract"})
def _scaled_sum(scale, u):
    """Return the sum of scale * u[i]; u: (n,)."""
    total = u.dtype.type(0)
    for i in range(u.size):
        total += scale * u[i]
    return total


@njit
def _add_strided(w, offset_w, stride_w, u, offset_u, stride_u, v, offset_v, stride_v, extent):
    for i in range(extent):
        w[offset_w + i * stride_w] += u[offset_u + i * stride_u] * v[offset_v + i * stride_v]

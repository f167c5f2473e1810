"""Sum of products over the labels inside two arrays: what `tensor_einsum` and its relatives compute.

Self-contained: numba and numpy only, no allocation, the same source for every host. A host supplies the
external symbol `sparseeinsum_gemm_f64`, and f32, c128 and c64, for the dtypes that it has, and `sparseeinsum_pause`:
called every 0.1 s or more often, it says by another number than 0 to stop, or never returns.

A *plan* is an int64 array that says how to walk the operands:

    plan[0]  number of labels      plan[1]  elements of u      plan[2]  elements of v
    plan[3]  elements of w         then four numbers a label: extent, stride in u, in v, in w
"""

import numpy as np
from numba import njit, types
from numba.extending import overload

MAX_LABELS = 16
PLAN_HEADER = 4
PLAN_SIZE = PLAN_HEADER + 4 * (MAX_LABELS + 1)  # one more than labels: a host may add the row of a batch

BAD_CHARACTER = -1
TOO_MANY_LABELS = -2
WRONG_OPERANDS = -3
UNKNOWN_OUTPUT_LABEL = -4
REPEATED_OUTPUT_LABEL = -5
WRONG_EXTENTS = -6
NEGATIVE_EXTENT = -7
TOO_LARGE = -8
INTERRUPTED = -9

_COMMA, _MINUS, _GREATER, _SPACE = 44, 45, 62, 32
_MAX_ELEMENTS = 1 << 40
_MAX_GEMM = (1 << 31) - 1  # BLAS counts in int32
_GEMM_WORTH = 2048  # multiply-adds below which plain loops beat a call of gemm (measured, 2 cores)

_GEMM_PRODUCTS = 1 << 30  # multiply-adds of one call of gemm, about: some 0.05 s
_LEAST_GEMM_ROWS = 64  # of a call: fewer would be slower
_PAUSE_PRODUCTS = 1 << 20  # multiply-adds of lines between two pauses

_pause = types.ExternalFunction("sparseeinsum_pause", types.int64())
_GEMM_ARGUMENTS = (types.int64,) * 11
_DTYPES = {"f64": types.float64, "f32": types.float32, "c128": types.complex128, "c64": types.complex64}
_GEMMS = {
    dtype: types.ExternalFunction(f"sparseeinsum_gemm_{name}", types.void(*_GEMM_ARGUMENTS))
    for name, dtype in _DTYPES.items()
}


@njit
def is_interrupted():
    """Whether to stop; what was computed is of no use then."""
    return _pause() != 0


@njit
def _is_letter(character):
    return 65 <= character <= 90 or 97 <= character <= 122


@njit
def plan_contraction(spec, extents, operands, plan):
    """Read `'ij,jk->ik'` (bytes) and the extents of its labels, in order of first appearance, into `plan`.

    spec: (n,) uint8; extents: (labels,) int64; operands: 1 or 2; plan: (PLAN_SIZE,) int64, written.
    Returns 0, or a negative code from the list above; with WRONG_EXTENTS, plan[0] says how many there should be.
    """
    letters = 0  # letters seen so far, as bits: a-z are 0-25, A-Z are 26-51
    count = 0
    for position in range(spec.size):
        character = spec[position]
        if _is_letter(character):
            bit = np.int64(1) << _letter_index(character)
            if letters & bit == 0:
                letters |= bit
                if count == MAX_LABELS:
                    return TOO_MANY_LABELS
                record = PLAN_HEADER + 4 * count
                plan[record] = np.int64(character)  # its letter for now, its extent below
                plan[record + 1] = 0
                plan[record + 2] = 0
                plan[record + 3] = 0
                count += 1
        elif not (character == _COMMA or character == _MINUS or character == _GREATER or character == _SPACE):
            return BAD_CHARACTER
    plan[0] = count
    if extents.size != count:
        return WRONG_EXTENTS
    for label in range(count):
        if extents[label] < 0:
            return NEGATIVE_EXTENT
    return _fill_strides(spec, extents, operands, plan, count)


@njit
def _letter_index(character):
    if character >= 97:
        return np.int64(character) - 97
    return np.int64(character) - 65 + 26


@njit
def _label_of(plan, count, character):
    for label in range(count):
        if plan[PLAN_HEADER + 4 * label] == np.int64(character):
            return label
    return -1


@njit
def _fill_strides(spec, extents, operands, plan, count):
    plan[1], plan[2], plan[3] = 1, 1, 1
    # From the right, so that strides are known as products of what stands further right.
    part = 2
    seen_arrow = False
    commas = 0
    position = spec.size - 1
    while position >= 0:
        character = spec[position]
        if character == _GREATER:
            if seen_arrow or position == 0 or spec[position - 1] != _MINUS:
                return BAD_CHARACTER
            seen_arrow = True
            part = operands - 1
            position -= 1
        elif character == _MINUS:
            return BAD_CHARACTER
        elif character == _COMMA:
            commas += 1
            part -= 1
            if not seen_arrow or commas >= operands:
                return WRONG_OPERANDS
        elif character != _SPACE:
            code = _add_stride(plan, count, extents, character, part if seen_arrow else 2)
            if code < 0:
                return code
        position -= 1
    if not seen_arrow or commas != operands - 1:
        return WRONG_OPERANDS
    for label in range(count):
        record = PLAN_HEADER + 4 * label
        if not _occurs(spec, plan[record]):
            return UNKNOWN_OUTPUT_LABEL
        plan[record] = extents[label]
        for array in range(1, 4):
            if extents[label] == 0 and plan[record + array] != 0:
                plan[array] = 0
    return 0


@njit
def _occurs(spec, character):
    for position in range(spec.size):
        if spec[position] == _MINUS:
            return False
        if np.int64(spec[position]) == character:
            return True
    return False


@njit
def _add_stride(plan, count, extents, character, part):
    label = _label_of(plan, count, character)
    record = PLAN_HEADER + 4 * label
    size = plan[1 + part]
    if part == 2 and plan[record + 3] != 0:
        return REPEATED_OUTPUT_LABEL
    # A label that stands twice in an operand walks its diagonal: the strides add up.
    plan[record + 1 + part] += size
    extent = max(extents[label], 1)  # an empty label must not turn strides into 0, which means "not here"
    if size > _MAX_ELEMENTS // extent:
        return TOO_LARGE
    plan[1 + part] = size * extent
    return 0


@njit
def plan_matrix_product(m, k, n, plan):
    """The simplified plan of 'ij,jk->ik' with extents m, k, n; returns 0 or a negative code."""
    if min(m, min(k, n)) < 0:
        return NEGATIVE_EXTENT
    if max(m, max(k, n)) > _MAX_GEMM or max(m * k, max(k * n, m * n)) > _MAX_ELEMENTS:
        return TOO_LARGE
    plan[0], plan[1], plan[2], plan[3] = 0, m * k, k * n, m * n
    add_label(plan, n, 0, 1, 1)
    add_label(plan, k, 1, n, 0)
    add_label(plan, m, k, 0, n)
    simplify_plan(plan)
    return 0


@njit
def simplify_plan(plan):
    """Drop labels of extent 1 and merge neighbours that all arrays walk in one stride; in place."""
    count = 0
    for label in range(plan[0]):
        source = PLAN_HEADER + 4 * label
        if plan[source] != 1:
            target = PLAN_HEADER + 4 * count
            for field in range(4):
                plan[target + field] = plan[source + field]
            count += 1
    merged = True
    while merged:
        merged = False
        for outer in range(count):
            for inner in range(count):
                if outer != inner and not merged and _can_merge(plan, outer, inner):
                    _merge(plan, outer, inner, count)
                    count -= 1
                    merged = True
    plan[0] = count


@njit
def _can_merge(plan, outer, inner):
    first, second = PLAN_HEADER + 4 * outer, PLAN_HEADER + 4 * inner
    for field in range(1, 4):
        if plan[first + field] != plan[second + field] * plan[second]:
            return False
    return True


@njit
def _merge(plan, outer, inner, count):
    first, second = PLAN_HEADER + 4 * outer, PLAN_HEADER + 4 * inner
    plan[second] *= plan[first]
    last = PLAN_HEADER + 4 * (count - 1)
    for field in range(4):
        plan[first + field] = plan[last + field]


@njit
def contract(plan, u, v, w, add_line):
    """Add to `w` the sum of `u * v` over the labels that `w` lacks, as a simplified plan says.

    u, v, w: flat, C order, one dtype that has a gemm; `v` is an array holding a single 1 where there is one operand
    only; add_line: as for contract_lines. Returns 0 or what add_line returned.
    """
    rows, columns, inner = _matrix_labels(plan)
    if rows >= 0 and columns >= 0 and inner >= 0 and not is_empty(plan):
        return _contract_matrices(plan, u, v, w, rows, columns, inner)
    return contract_lines(plan, u, v, w, add_line)


@njit
def contract_real(plan, u, v, w):
    """As contract, for real numbers: a vector times the rows of a matrix takes several of them at a time."""
    if plan[0] == 2 and not is_empty(plan):
        for columns in range(2):
            n, k = PLAN_HEADER + 4 * columns, PLAN_HEADER + 4 * (1 - columns)
            if plan[n + 3] == 1 and plan[k + 3] == 0 and plan[n + 1] + plan[n + 2] == 1:
                if plan[n + 2] == 1:
                    _add_rows(w, plan[n], u, plan[k + 1], v, plan[k + 2], plan[k])
                else:
                    _add_rows(w, plan[n], v, plan[k + 2], u, plan[k + 1], plan[k])
                return 0
    return contract(plan, u, v, w, add_line)


@njit
def _add_rows(w, extent, scales, scale_step, rows, row_step, count):
    """Add `count` rows of `extent` elements to w, each times its scale; w is read and written once for four of them."""
    w = w[:extent]
    together = count - count % 4
    for first in range(0, together, 4):
        at, scale = first * row_step, first * scale_step
        _add_four_scaled(
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
def _add_four_scaled(w, a, s, b, t, c, u, d, v):
    """W += a * s + b * t + c * u + d * v; s, t, u, v: (n,) as w."""
    for i in range(w.size):
        w[i] += a * s[i] + b * t[i] + c * u[i] + d * v[i]


@njit
def _matrix_labels(plan):
    """Labels (m, n, k) of the largest matrix product in the plan; -1 each where gemm does not pay or fit.

    The longest label need not be in it: the rows of a batch may have no unit stride anywhere.
    """
    found, most = (-1, -1, -1), 0
    for rows in range(plan[0]):
        for columns in range(plan[0] if _is_in(plan, rows, True, False, True) else 0):
            for inner in range(plan[0] if _is_in(plan, columns, False, True, True) else 0):
                if _is_in(plan, inner, True, True, False) and _suits_gemm(plan, rows, columns, inner):
                    products = _extent(plan, rows) * _extent(plan, columns) * _extent(plan, inner)
                    if products > most:
                        found, most = (rows, columns, inner), products
    return found


@njit
def _is_in(plan, label, u, v, w):
    """Whether a label walks just those arrays."""
    record = PLAN_HEADER + 4 * label
    return (plan[record + 1] != 0) == u and (plan[record + 2] != 0) == v and (plan[record + 3] != 0) == w


@njit
def _extent(plan, label):
    return plan[PLAN_HEADER + 4 * label]


@njit
def _suits_gemm(plan, rows, columns, inner):
    m, n, k = PLAN_HEADER + 4 * rows, PLAN_HEADER + 4 * columns, PLAN_HEADER + 4 * inner
    if plan[m] * plan[n] * plan[k] < _GEMM_WORTH or max(plan[m], max(plan[n], plan[k])) > _MAX_GEMM:
        return False
    return (
        _is_matrix(plan[m], plan[m + 1], plan[k], plan[k + 1])
        and _is_matrix(plan[k], plan[k + 2], plan[n], plan[n + 2])
        and _is_matrix(plan[m], plan[m + 3], plan[n], plan[n + 3])
    )


@njit
def _is_matrix(first_extent, first_stride, second_extent, second_stride):
    """Whether BLAS can address it: one unit stride, the other at least the extent beside it."""
    return (second_stride == 1 and first_stride >= second_extent) or (
        first_stride == 1 and second_stride >= first_extent
    )


@njit
def _contract_matrices(plan, u, v, w, rows, columns, inner):
    m, n, k = PLAN_HEADER + 4 * rows, PLAN_HEADER + 4 * columns, PLAN_HEADER + 4 * inner
    skip = bit(rows) | bit(columns) | bit(inner)
    for step in range(steps(plan, skip)):
        at_u, at_v, at_w = offsets(plan, skip, step)
        a = u.ctypes.data + u.itemsize * at_u
        b = v.ctypes.data + v.itemsize * at_v
        c = w.ctypes.data + w.itemsize * at_w
        if plan[n + 3] == 1:
            gemm(w, plan[m], plan[n], plan[k], a, plan[m + 1], plan[k + 1], b, plan[k + 2], plan[n + 2], c, plan[m + 3])
        else:  # the columns of w are contiguous: compute its transpose
            gemm(w, plan[n], plan[m], plan[k], b, plan[n + 2], plan[k + 2], a, plan[k + 1], plan[m + 1], c, plan[n + 3])
        if is_interrupted():
            return INTERRUPTED
    return 0


@njit
def gemm(dtype_of, m, n, k, a, a_rows, a_columns, b, b_rows, b_columns, c, c_rows):
    """C += A B for A (m, k), B (k, n), C (m, n) at addresses a, b, c; C row-major; strides in elements.

    dtype_of: an array of the dtype that the matrices have. Rows are computed in panels, with pauses between them.
    """
    a_transposed = np.int64(a_columns != 1)
    b_transposed = np.int64(b_columns != 1)
    a_leading = a_columns if a_transposed else a_rows
    b_leading = b_columns if b_transposed else b_rows
    panel = max(_GEMM_PRODUCTS // max(n * k, 1), _LEAST_GEMM_ROWS)
    for first in range(0, m, panel):
        rows = min(panel, m - first)
        at_a, at_c = a + first * a_rows * dtype_of.itemsize, c + first * c_rows * dtype_of.itemsize
        _call_gemm(dtype_of, a_transposed, b_transposed, rows, n, k, at_a, a_leading, b, b_leading, at_c, c_rows)
        if first + rows < m and is_interrupted():
            return


def _call_gemm(dtype_of, *arguments):
    """Stands for the gemm of an array's dtype."""


@overload(_call_gemm)
def _choose_gemm(dtype_of, a_transposed, b_transposed, m, n, k, a, a_leading, b, b_leading, c, c_rows):
    product = _GEMMS[dtype_of.dtype]

    def compute(dtype_of, a_transposed, b_transposed, m, n, k, a, a_leading, b, b_leading, c, c_rows):
        product(a_transposed, b_transposed, m, n, k, a, a_leading, b, b_leading, c, c_rows)

    return compute


@njit
def bit(label):
    """The bit set of one label; of none where the label is -1."""
    return np.int64(1) << label if label >= 0 else np.int64(0)


@njit
def strides_of(plan, label):
    """(extent, stride in u, in v, in w) of a label; a label -1 stands for a single step."""
    if label < 0:
        return 1, 0, 0, 0
    record = PLAN_HEADER + 4 * label
    return plan[record], plan[record + 1], plan[record + 2], plan[record + 3]


@njit
def add_label(plan, extent, in_u, in_v, in_w):
    """Put one more label in front of the others; plan has room for one more than MAX_LABELS."""
    for field in range(PLAN_HEADER + 4 * plan[0] - 1, PLAN_HEADER - 1, -1):
        plan[field + 4] = plan[field]
    plan[PLAN_HEADER], plan[PLAN_HEADER + 1], plan[PLAN_HEADER + 2], plan[PLAN_HEADER + 3] = extent, in_u, in_v, in_w
    plan[0] += 1


@njit
def is_empty(plan):
    """Whether some label has extent 0, so that there is nothing to walk."""
    for label in range(plan[0]):
        if plan[PLAN_HEADER + 4 * label] == 0:
            return True
    return False


@njit
def gather(u, at, stride, part):
    """part[i] = u[at + i * stride]."""
    for i in range(part.size):
        part[i] = u[at + i * stride]


@njit
def steps(plan, skip):
    """Number of combinations of the labels outside the bit set `skip`."""
    steps = 1
    for label in range(plan[0]):
        if (skip >> label) & 1 == 0:
            steps *= plan[PLAN_HEADER + 4 * label]
    return steps


@njit
def offsets(plan, skip, step):
    """Offsets into u, v and w of combination `step` of the labels outside `skip`, the last label fastest."""
    at_u, at_v, at_w = 0, 0, 0
    for backwards in range(plan[0]):
        label = plan[0] - 1 - backwards
        if (skip >> label) & 1 == 0:
            record = PLAN_HEADER + 4 * label
            position = step % plan[record]
            step //= plan[record]
            at_u += position * plan[record + 1]
            at_v += position * plan[record + 2]
            at_w += position * plan[record + 3]
    return at_u, at_v, at_w


@njit
def line_label(plan):
    """The label to walk innermost: unit strides first, long before short."""
    best, best_score = -1, np.int64(-1)
    for label in range(plan[0]):
        record = PLAN_HEADER + 4 * label
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
    """As contract, line by line: add_line(w, at_w, in_w, u, at_u, in_u, v, at_v, in_v, extent) adds products up.

    It returns 0 or a code.
    """
    if is_empty(plan):
        return 0
    line, code = line_label(plan), 0
    extent, total = plan[PLAN_HEADER + 4 * line] if line >= 0 else 1, steps(plan, bit(line))
    together = max(_PAUSE_PRODUCTS // extent, 1)
    for first in range(0, total, together):
        code = min(code, _contract_some_lines(plan, line, first, min(first + together, total), u, v, w, add_line))
        if first + together < total and is_interrupted():
            return INTERRUPTED
    return code


@njit
def _contract_some_lines(plan, line, first, end, u, v, w, add_line):
    code = 0
    extent, in_u, in_v, in_w = strides_of(plan, line)
    for step in range(first, end):
        at_u, at_v, at_w = offsets(plan, bit(line), step)
        code = min(code, add_line(w, at_w, in_w, u, at_u, in_u, v, at_v, in_v, extent))
    return code


@njit
def add_line(w, at_w, in_w, u, at_u, in_u, v, at_v, in_v, extent):
    """w[at_w + i * in_w] += u[at_u + i * in_u] * v[at_v + i * in_v] for every i below extent, of real numbers."""
    if in_w == 1 and in_u == 0 and in_v == 1:
        _add_scaled(w[at_w : at_w + extent], u[at_u], v[at_v : at_v + extent])
    elif in_w == 1 and in_u == 1 and in_v == 0:
        _add_scaled(w[at_w : at_w + extent], v[at_v], u[at_u : at_u + extent])
    elif in_w == 1 and in_u == 1 and in_v == 1:
        _add_product(w[at_w : at_w + extent], u[at_u : at_u + extent], v[at_v : at_v + extent])
    elif in_w == 0 and in_u == 1 and in_v == 1:
        w[at_w] += dot(u[at_u : at_u + extent], v[at_v : at_v + extent])
    else:
        _add_strided(w, at_w, in_w, u, at_u, in_u, v, at_v, in_v, extent)
    return 0


@njit
def _add_scaled(w, scale, v):
    for i in range(w.size):
        w[i] += scale * v[i]


@njit
def _add_product(w, u, v):
    for i in range(w.size):
        w[i] += u[i] * v[i]


@njit(fastmath={"reassoc", "contract"})  # lets the compiler sum in several lanes; NaN and inf stay as they are
def dot(u, v):
    """Sum of u[i] * v[i]; (n,) each, one dtype."""
    total = u.dtype.type(0)
    for i in range(u.size):
        total += u[i] * v[i]
    return total


@njit
def _add_strided(w, at_w, in_w, u, at_u, in_u, v, at_v, in_v, extent):
    for i in range(extent):
        w[at_w + i * in_w] += u[at_u + i * in_u] * v[at_v + i * in_v]

"""Plans of contractions: how to walk two arrays and a result for a spec such as 'ij,jk->ik'.

Self-contained: numba and numpy only, no allocation, the same source for every host. contraction.py runs plans.

A *plan* is an int64 array:

    plan[0]  number of labels      plan[1]  elements of u      plan[2]  elements of v
    plan[3]  elements of w         then four numbers for each label: extent, stride in u, in v, in w

u and v are the operands, w is the result. A stride is the distance in elements between neighbours along a label, and 0
where the array does not have the label.
"""

import numpy as np
from numba import njit

MAX_LABELS = 16
PLAN_HEADER = 4
PLAN_SIZE = PLAN_HEADER + 4 * (MAX_LABELS + 1)  # one more than MAX_LABELS: a host may add the row of a batch

BAD_CHARACTER = -1
TOO_MANY_LABELS = -2
WRONG_OPERANDS = -3
UNKNOWN_OUTPUT_LABEL = -4
REPEATED_OUTPUT_LABEL = -5
WRONG_EXTENTS = -6
NEGATIVE_EXTENT = -7
TOO_LARGE = -8

_COMMA, _MINUS, _GREATER, _SPACE = 44, 45, 62, 32  # characters
_MAX_ELEMENTS = 1 << 40
_MAX_EXTENT = (1 << 31) - 1  # of a matrix product: BLAS counts in int32


@njit
def _is_letter(character):
    return 65 <= character <= 90 or 97 <= character <= 122


@njit
def plan_contraction(spec, extents, operands, plan):
    """Read a spec such as `'ij,jk->ik'` and the extents of its labels into a plan.

    Args:
        spec: (n,) uint8, the characters.
        extents: (labels,) int64, in the order in which the labels first appear.
        operands: The number of operands, 1 or 2.
        plan: (PLAN_SIZE,) int64, written.

    Returns:
        0, or a negative code from the list above. After WRONG_EXTENTS, plan[0] is the number of labels.
    """
    letters = 0  # the letters seen so far, as bits: a-z are 0-25, A-Z are 26-51
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
                plan[record] = np.int64(character)  # the letter for now; _fill_strides replaces it by the extent
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
    # From the right to the left, so that a stride is the product of the extents that were read before.
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
    # A label that an operand has twice walks its diagonal: the strides add up.
    plan[record + 1 + part] += size
    extent = max(extents[label], 1)  # an extent of 0 must not make strides 0, which means that the label is absent
    if size > _MAX_ELEMENTS // extent:
        return TOO_LARGE
    plan[1 + part] = size * extent
    return 0


@njit
def plan_matrix_product(m, k, n, plan):
    """Write the simplified plan of 'ij,jk->ik' with extents m, k, n to `plan`; returns 0 or a negative code."""
    if min(m, min(k, n)) < 0:
        return NEGATIVE_EXTENT
    if max(m, max(k, n)) > _MAX_EXTENT or max(m * k, max(k * n, m * n)) > _MAX_ELEMENTS:
        return TOO_LARGE
    plan[0], plan[1], plan[2], plan[3] = 0, m * k, k * n, m * n
    add_label(plan, n, 0, 1, 1)
    add_label(plan, k, 1, n, 0)
    add_label(plan, m, k, 0, n)
    simplify_plan(plan)
    return 0


@njit
def add_label(plan, extent, stride_u, stride_v, stride_w):
    """Insert a label in front of the others; a plan has room for one more than MAX_LABELS."""
    for field in range(PLAN_HEADER + 4 * plan[0] - 1, PLAN_HEADER - 1, -1):
        plan[field + 4] = plan[field]
    plan[PLAN_HEADER], plan[PLAN_HEADER + 1], plan[PLAN_HEADER + 2], plan[PLAN_HEADER + 3] = (
        extent,
        stride_u,
        stride_v,
        stride_w,
    )
    plan[0] += 1


@njit
def is_elementwise(plan, size):
    """Whether each of the `size` elements of the result is of one combination of indices."""
    combinations = 1
    for label in range(plan[0]):
        record = PLAN_HEADER + 4 * label
        combinations *= plan[record]
        if plan[record + 3] == 0 and plan[record] != 1:
            return False
    return combinations == size


@njit
def outermost_label(plan):
    """Return the label whose indices are furthest apart in the result; -1 if it has one element."""
    best, most = -1, 0
    for label in range(plan[0]):
        record = PLAN_HEADER + 4 * label
        if plan[record] > 1 and plan[record + 3] > most:
            best, most = label, plan[record + 3]
    return best


@njit
def set_extent(plan, label, extent):
    """Let a plan compute the first indices of a label alone."""
    plan[PLAN_HEADER + 4 * label] = extent


@njit
def simplify_plan(plan):
    """Drop labels of extent 1, and merge two labels that every array walks as one longer label, in place."""
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

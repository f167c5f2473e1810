"""Kernels: what a row's arguments must be, and how many elements its result has; nothing is computed here.

Every function takes addresses (int64) of a *row* (see descriptors.py) and of scratch memory, and returns a number
of elements or a negative code, with the sizes that its message shows left in the scratch memory. A spec, extents
or an expression that equals the one of the row before is not read again.
"""

import numpy as np
from numba import njit, types

from sparseeinsum.assets import load_kernels
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.memory import address_of, array_at, copy_elements
from sparseeinsum.kernels.compiled.operators import AGGREGATE_NAMES, WORDS
from sparseeinsum.kernels.compiled.scratch import (
    CONSTANTS,
    DIGITS,
    EXTENTS_KEY,
    OPERATORS,
    SPEC_KEY,
    TEXT_KEY,
    argument,
    byte,
    integer,
    integers,
    plan_of,
    program_of,
    report,
    scratch_words,
    shape_of,
    word,
)
from sparseeinsum.kernels.symbols import USERS_FUNCTIONS

aggregation = load_kernels("aggregation")
contraction = load_kernels("contraction")
expression = load_kernels("expression")
layout = load_kernels("layout")
tiles = load_kernels("tiles")

assert d.USERS_FUNCTION_WORDS == expression.ENTRY_WORDS

_users_functions = address_of(USERS_FUNCTIONS)


@njit
def _remember_text(scratch, start, row, index):
    """1 if the text argument is the one remembered at `start`, 0 if it was new, or a code; it is remembered."""
    address, size = argument(row, index)
    if size > d.MAX_TEXT:
        return report(scratch, d.TEXT_TOO_LONG, size, d.MAX_TEXT, 0)
    length = scratch_words(scratch, start, 1)
    known = array_at(scratch + 8 * (start + 1), size, byte)
    text = array_at(address, size, byte)
    same = length[0] == size + 1
    for i in range(size):
        same = same and known[i] == text[i]
        known[i] = text[i]
    length[0] = size + 1
    return np.int64(same)


@njit
def _remember_extents(scratch, row, index):
    extents = integers(row, index)
    if extents.size > contraction.MAX_LABELS:
        return report(scratch, d.TOO_MANY_EXTENTS, extents.size, 0, 0)
    known = scratch_words(scratch, EXTENTS_KEY, 1 + contraction.MAX_LABELS)
    same = known[0] == extents.size + 1
    for i in range(extents.size):
        same = same and known[1 + i] == extents[i]
        known[1 + i] = extents[i]
    known[0] = extents.size + 1
    return np.int64(same)


@njit
def measure_contraction(row, scratch, spec, operands):
    """Elements of a contraction's result; spec: index of the spec among the arguments, u, v and extents follow it."""
    extents = spec + operands + 1
    same_spec = _remember_text(scratch, SPEC_KEY, row, spec)
    same_extents = _remember_extents(scratch, row, extents) if same_spec >= 0 else same_spec
    if same_spec < 0 or same_extents < 0:
        return min(same_spec, same_extents)
    plan = plan_of(scratch)
    if not (same_spec == 1 and same_extents == 1):
        address, size = argument(row, spec)
        code = contraction.plan_contraction(array_at(address, size, byte), integers(row, extents), operands, plan)
        if code < 0:
            scratch_words(scratch, SPEC_KEY, 1)[0] = 0
            return _report_spec(scratch, code, operands, integers(row, extents))
        contraction.simplify_plan(plan)
    return _check_lengths(row, scratch, spec, operands)


@njit
def _report_spec(scratch, code, operands, extents):
    if code == contraction.WRONG_OPERANDS:
        return report(scratch, code, operands, 0, 0)
    if code == contraction.NEGATIVE_EXTENT:
        return report(scratch, code, _least(extents), 0, 0)
    return report(scratch, code, extents.size, plan_of(scratch)[0], 0)


@njit
def _least(extents):
    least = extents[0]
    for i in range(1, extents.size):
        least = min(least, extents[i])
    return least


@njit
def _check_lengths(row, scratch, spec, operands):
    plan = plan_of(scratch)
    for operand in range(operands):
        size = argument(row, spec + 1 + operand)[1]
        if size != plan[1 + operand]:
            return report(scratch, d.WRONG_LENGTH, operand + 1, size, plan[1 + operand])
    return plan[3]


@njit
def _table_of_users():
    return array_at(_users_functions(), 1 + d.MAX_USERS_FUNCTIONS * d.USERS_FUNCTION_WORDS, word)


@njit
def measure_expression(row, scratch, index, operands):
    """Read the expression at one argument, unless it is the one remembered; 0 or a code."""
    same = _remember_text(scratch, TEXT_KEY, row, index)
    if same != 0:
        return min(same, 0)
    address, size = argument(row, index)
    code = expression.compile_expression(
        array_at(address, size, byte),
        operands,
        WORDS,
        _table_of_users(),
        program_of(scratch),
        array_at(scratch + 8 * CONSTANTS, expression.CONSTANT_WORDS, types.float64),
        scratch_words(scratch, OPERATORS, 1 + expression.MAX_OPERATIONS),
        array_at(scratch + 8 * DIGITS, 1 + expression.MAX_DIGITS, byte),
    )
    if code < 0:
        scratch_words(scratch, TEXT_KEY, 1)[0] = 0
    return code


@njit
def measure_one(row, scratch):
    return 1


@njit
def measure_first(row, scratch):
    return argument(row, 0)[1]


@njit
def measure_second(row, scratch):
    return argument(row, 1)[1]


@njit
def measure_same(row, scratch):
    first, second = argument(row, 0)[1], argument(row, 1)[1]
    if first != second:
        return report(scratch, d.LENGTHS_DIFFER, first, second, 0)
    return first


@njit
def measure_dot(row, scratch):
    code = measure_same(row, scratch)
    return code if code < 0 else 1


@njit
def measure_outer(row, scratch):
    return argument(row, 0)[1] * argument(row, 1)[1]


@njit
def measure_fill(row, scratch):
    size = integer(row, 0)
    return size if 0 <= size <= layout.MAX_ELEMENTS else report(scratch, d.BAD_SIZE, size, 0, 0)


@njit
def check_extents(row, scratch, operand, index):
    """0 if the operand's length is the product of the extents at argument `index`, else a code."""
    extents = integers(row, index)
    if extents.size > layout.MAX_AXES:
        return report(scratch, d.TOO_MANY_EXTENTS, extents.size, 0, 0)
    expected = layout.product_of(extents)
    if expected < 0:
        return report(scratch, expected, _least(extents), 0, 0)
    size = argument(row, operand)[1]
    return 0 if size == expected else report(scratch, d.WRONG_LENGTH, operand + 1, size, expected)


@njit
def measure_slice(row, scratch):
    code = check_extents(row, scratch, 0, 3)
    if code < 0:
        return code
    extents = integers(row, 3)
    axis, position = integer(row, 1), integer(row, 2)
    size = layout.slice_size(axis, position, extents)
    if size == layout.BAD_AXIS:
        return report(scratch, size, axis, extents.size, 0)
    if size == layout.BAD_POSITION:
        return report(scratch, size, position, extents[axis], 0)
    return size


@njit
def measure_split(row, scratch):
    """Parts of a split."""
    code = check_extents(row, scratch, 0, 2)
    if code < 0:
        return code
    axes, extents = integers(row, 1), integers(row, 2)
    bad = layout.find_bad_axis(axes, extents)
    if bad >= 0:
        return report(scratch, layout.BAD_AXIS, axes[bad], extents.size, 0)
    return layout.split_count(axes, extents)


@njit
def measure_split_tiles(row, scratch):
    """Blocks of an array."""
    sizes, extents = integers(row, 1), integers(row, 2)
    if sizes.size != extents.size:
        return report(scratch, tiles.TILES_MISSING, sizes.size, extents.size, 0)
    code = check_extents(row, scratch, 0, 2)
    if code < 0:
        return code
    if sizes.size > 0 and _least(sizes) < 0:
        return report(scratch, tiles.BAD_TILE, _least(sizes), 0, 0)
    return tiles.count_tiles(sizes, extents)


@njit
def measure_place(row, scratch):
    starts, lengths, extents = integers(row, 1), integers(row, 2), integers(row, 3)
    if starts.size != lengths.size or extents.size != lengths.size:
        return report(scratch, tiles.STARTS_MISSING, starts.size, lengths.size, extents.size)
    code = check_extents(row, scratch, 0, 2)
    if code < 0:
        return code
    size = layout.product_of(extents)
    if size < 0:
        return report(scratch, size, _least(extents), 0, 0)
    axis = tiles.axis_outside(starts, lengths, extents)
    if axis >= 0:
        return report(scratch, tiles.OUTSIDE, lengths[axis], starts[axis], extents[axis], axis)
    shape = shape_of(scratch)
    shape[0] = extents.size
    copy_elements(shape[1 : 1 + extents.size], extents)
    return size


@njit
def measure_matmul(row, scratch):
    extents = integers(row, 2)
    if extents.size != 3:
        return report(scratch, contraction.WRONG_EXTENTS, extents.size, 3, 0)
    m, k, n = extents[0], extents[1], extents[2]
    code = contraction.plan_matrix_product(m, k, n, plan_of(scratch))
    if code < 0:
        return report(scratch, code, _least(extents), 0, 0)
    if argument(row, 0)[1] != m * k:
        return report(scratch, d.WRONG_LENGTH, 1, argument(row, 0)[1], m * k)
    if argument(row, 1)[1] != k * n:
        return report(scratch, d.WRONG_LENGTH, 2, argument(row, 1)[1], k * n)
    return m * n


@njit
def measure_stack(row, scratch):
    size, inner = integer(row, 2), integer(row, 3)
    length = argument(row, 0)[1]
    if inner < 0 or (inner == 0 and length != 0) or (inner > 0 and length % inner != 0):
        return report(scratch, d.BAD_INNER, length, inner, 0)
    shape = shape_of(scratch)
    shape[0], shape[1], shape[2] = 2, size, inner
    return _stack_size(row, scratch, length, integer(row, 1), size)


@njit
def measure_stack_numbers(row, scratch):
    return _stack_size(row, scratch, 1, integer(row, 1), integer(row, 2))


@njit
def measure_resident(row, scratch):
    size = integer(row, 2)
    shape = shape_of(scratch)
    shape[0], shape[1] = 1, size
    return _stack_size(row, scratch, argument(row, 0)[1], integer(row, 1), size)


@njit
def _stack_size(row, scratch, length, position, size):
    if position < 0 or position >= size:
        return report(scratch, layout.BAD_POSITION, position, size, 0)
    if length > 0 and size > layout.MAX_ELEMENTS // length:
        return report(scratch, d.STACK_TOO_LARGE, size, length, 0)
    return size * length


@njit
def _check_axis(row, scratch, operand):
    """The axis that the argument behind an operand names, among the extents behind that, or a code."""
    code = check_extents(row, scratch, operand, operand + 2)
    if code < 0:
        return code
    axis, axes = integer(row, operand + 1), integers(row, operand + 2).size
    return axis if 0 <= axis < axes else report(scratch, layout.BAD_AXIS, axis, axes, 0)


@njit
def measure_nnz_along(row, scratch):
    axis = _check_axis(row, scratch, 0)
    return axis if axis < 0 else integers(row, 2)[axis]


@njit
def measure_scan(row, scratch):
    code = aggregate_of(row)
    if code >= 0:
        code = _check_axis(row, scratch, 1)
    return code if code < 0 else argument(row, 1)[1]


@njit
def measure_map(row, scratch):
    code = measure_expression(row, scratch, 0, 1)
    return code if code < 0 else argument(row, 1)[1]


@njit
def aggregate_of(row):
    """Code of the aggregate that the first argument names, or a negative code."""
    address, size = argument(row, 0)
    code = expression.index_of(AGGREGATE_NAMES, array_at(address, size, byte), 0, size)
    return code if code >= 0 else aggregation.UNKNOWN_AGGREGATE


@njit
def _measure_reduce(row, scratch, operands):
    code = aggregate_of(row)
    if code >= 0:
        code = measure_expression(row, scratch, 1, operands)
    return code if code < 0 else measure_contraction(row, scratch, 2, operands)


@njit
def measure_reduce(row, scratch):
    return _measure_reduce(row, scratch, 2)


@njit
def measure_reduce_one(row, scratch):
    return _measure_reduce(row, scratch, 1)


@njit
def aggregate_of_user(row):
    """The word of the user's aggregate that the first argument names, or a negative code."""
    address, size = argument(row, 0)
    user = expression.word_of_aggregate(_table_of_users(), array_at(address, size, byte))
    return user if user >= 0 else aggregation.UNREGISTERED


@njit
def numbers_of_state(user):
    return (user & 3) + 1


@njit
def _measure_fold(row, scratch, operands):
    user = aggregate_of_user(row)
    if user < 0:
        return user
    arguments = 1 + ((user >> 2) & 1)
    if operands != arguments:
        return report(scratch, aggregation.WRONG_ARGUMENTS, arguments, operands, 0)
    size = measure_contraction(row, scratch, 1, operands)
    return size if size < 0 else size * numbers_of_state(user)


@njit
def measure_fold(row, scratch):
    return _measure_fold(row, scratch, 2)


@njit
def measure_fold_one(row, scratch):
    return _measure_fold(row, scratch, 1)


@njit
def measure_merge(row, scratch):
    user = aggregate_of_user(row)
    if user < 0:
        return user
    size = argument(row, 1)[1]
    if size % numbers_of_state(user) != 0:
        return report(scratch, d.BAD_INNER, size, numbers_of_state(user), 0)
    shape = shape_of(scratch)
    shape[0], shape[1] = 1, user
    return size


@njit
def measure_einsum(row, scratch):
    return measure_contraction(row, scratch, 0, 2)


@njit
def measure_einsum_of_one(row, scratch):
    return measure_contraction(row, scratch, 0, 1)

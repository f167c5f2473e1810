"""Kernels: reads specs, extents, expressions and names of aggregates from a row's arguments.

A plan of a contraction and a program of an expression stay in scratch memory: a spec, extents or an expression that
equals the one of the row before is not read again. Functions return negative error codes, with the numbers of their
messages in the scratch memory.
"""

import numpy as np
from numba import njit, types

from sparseeinsum.environment.assets import load_kernels
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.operator_codes import AGGREGATE_NAMES, SEMIRING_TEXTS, VOCABULARY
from sparseeinsum.kernels.compiled.plan_memory import EXTENTS_KEY, SPEC_KEY, plan_of
from sparseeinsum.kernels.compiled.raw_memory import address_of, array_at
from sparseeinsum.kernels.compiled.scratch import (
    CONSTANTS,
    DIGITS,
    OPERATORS,
    TEXT_KEY,
    argument,
    byte,
    integers,
    program_of,
    report,
    scratch_words,
    word,
)
from sparseeinsum.kernels.symbols import USER_FUNCTIONS

aggregation = load_kernels("aggregation")
contraction_plan = load_kernels("contraction_plan")
expression = load_kernels("expression")

assert d.USER_FUNCTION_WORDS == expression.ENTRY_WORDS

_user_functions = address_of(USER_FUNCTIONS)


@njit
def _remember_text(scratch, start, row, index):
    """Store a text argument at word `start`; returns 1 if it equals the one stored before, 0 if not, or a code."""
    address, size = argument(row, index)
    if size > d.MAX_TEXT:
        return report(scratch, d.TEXT_TOO_LONG, size, d.MAX_TEXT, 0)
    length = scratch_words(scratch, start, 1)
    previous = array_at(scratch + 8 * (start + 1), size, byte)
    text = array_at(address, size, byte)
    same = length[0] == size + 1
    for i in range(size):
        same = same and previous[i] == text[i]
        previous[i] = text[i]
    length[0] = size + 1
    return np.int64(same)


@njit
def _remember_extents(scratch, row, index):
    """Store an argument of extents; returns 1 if they equal those stored before, 0 if not, or an error code."""
    extents = integers(row, index)
    if extents.size > contraction_plan.MAX_LABELS:
        return report(scratch, d.TOO_MANY_EXTENTS, extents.size, 0, 0)
    previous = scratch_words(scratch, EXTENTS_KEY, 1 + contraction_plan.MAX_LABELS)
    same = previous[0] == extents.size + 1
    for i in range(extents.size):
        same = same and previous[1 + i] == extents[i]
        previous[1 + i] = extents[i]
    previous[0] = extents.size + 1
    return np.int64(same)


@njit
def read_contraction(row, scratch, spec, operands):
    """Read the plan of a contraction, and check the operands; returns the elements of its result or an error code.

    Args:
        row: The arguments.
        scratch: The scratch memory, which gets the plan.
        spec: The index of the spec among the arguments; the operands and the extents follow it.
        operands: The number of operands, 1 or 2.
    """
    extents = spec + operands + 1
    same_spec = _remember_text(scratch, SPEC_KEY, row, spec)
    same_extents = _remember_extents(scratch, row, extents) if same_spec >= 0 else same_spec
    if same_spec < 0 or same_extents < 0:
        return min(same_spec, same_extents)
    plan = plan_of(scratch)
    if not (same_spec == 1 and same_extents == 1):
        address, size = argument(row, spec)
        code = contraction_plan.plan_contraction(array_at(address, size, byte), integers(row, extents), operands, plan)
        if code < 0:
            scratch_words(scratch, SPEC_KEY, 1)[0] = 0
            return _report_spec(scratch, code, operands, integers(row, extents))
        contraction_plan.simplify_plan(plan)
    return _check_lengths(row, scratch, spec, operands)


@njit
def _report_spec(scratch, code, operands, extents):
    if code == contraction_plan.WRONG_OPERANDS:
        return report(scratch, code, operands, 0, 0)
    if code == contraction_plan.NEGATIVE_EXTENT:
        return report(scratch, code, smallest(extents), 0, 0)
    return report(scratch, code, extents.size, plan_of(scratch)[0], 0)


@njit
def smallest(extents):
    result = extents[0]
    for i in range(1, extents.size):
        result = min(result, extents[i])
    return result


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
    return array_at(_user_functions(), 1 + d.MAX_USER_FUNCTIONS * d.USER_FUNCTION_WORDS, word)


@njit
def read_expression(row, scratch, index, operands):
    """Read the expression at argument `index` into the program in scratch memory; returns 0 or an error code."""
    same = _remember_text(scratch, TEXT_KEY, row, index)
    if same != 0:
        return min(same, 0)
    address, size = argument(row, index)
    code = expression.compile_expression(
        array_at(address, size, byte),
        operands,
        VOCABULARY,
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
def aggregate_code(row):
    """Return the code of the aggregate that the first argument names, or an error code."""
    address, size = argument(row, 0)
    code = expression.index_of(AGGREGATE_NAMES, array_at(address, size, byte), 0, size)
    return code if code >= 0 else aggregation.UNKNOWN_AGGREGATE


@njit
def semiring_code(row, index):
    """Return the code of the semiring that argument `index` writes, or an error code."""
    address, size = argument(row, index)
    code = expression.index_of(SEMIRING_TEXTS, array_at(address, size, byte), 0, size)
    return code if code >= 0 else d.UNKNOWN_SEMIRING


@njit
def user_aggregate(row):
    """Return the word of the user's aggregate that the first argument names (see udfs/expression.py), or a code."""
    address, size = argument(row, 0)
    user = expression.word_of_aggregate(_table_of_users(), array_at(address, size, byte))
    return user if user >= 0 else aggregation.UNREGISTERED


@njit
def numbers_of_state(aggregate):
    """Return how many numbers a state of a user's aggregate has, from the aggregate's word."""
    return (aggregate & 3) + 1

"""Kernels: where a row's arguments lie, and what the scratch memory of a call holds, in int64 words.

`row` and `scratch` are addresses (int64); descriptors.py says how a row is laid out and how scratch memory starts.
"""

from numba import njit, types

from sparseeinsum.assets import load_kernels
from sparseeinsum.kernels import descriptors as d
from sparseeinsum.kernels.compiled.memory import array_at

contraction = load_kernels("contraction")
evaluation = load_kernels("evaluation")
expression = load_kernels("expression")
layout = load_kernels("layout")

word = types.int64
byte = types.uint8

# Scratch memory, in words; a key is a length plus 1 (fresh scratch memory holds 0), then the text or extents.
SPEC_KEY = d.REPORT_WORDS
EXTENTS_KEY = SPEC_KEY + 1 + d.MAX_TEXT // 8
PLAN = EXTENTS_KEY + 1 + contraction.MAX_LABELS
BATCH_PLAN = PLAN + contraction.PLAN_SIZE
TEXT_KEY = BATCH_PLAN + contraction.PLAN_SIZE
PROGRAM = TEXT_KEY + 1 + d.MAX_TEXT // 8
CONSTANTS = PROGRAM + 1 + 2 * expression.MAX_OPERATIONS
OPERATORS = CONSTANTS + expression.CONSTANT_WORDS
DIGITS = OPERATORS + 1 + expression.MAX_OPERATIONS
ONE = DIGITS + (expression.MAX_DIGITS + 8) // 8
BLOCKS = ONE + 2  # a complex128 is two words
_BLOCK_WORDS = evaluation.BLOCK * (expression.MAX_DEPTH + 2)
_BLOCK = BLOCKS + _BLOCK_WORDS  # of an array: where it starts along every axis, and how long it is there
assert 8 * (_BLOCK + 2 * layout.MAX_AXES) <= d.SCRATCH_BYTES


@njit
def report(scratch, code, first, second, third, fourth=0):
    """Leave numbers for the message of an error; returns its code."""
    words = array_at(scratch, d.MESSAGE_WORDS, word)
    words[0], words[1], words[2], words[3] = first, second, third, fourth
    return code


@njit
def argument(row, index):
    """(address, elements) of one argument of a row."""
    words = array_at(row + 16 * index, 2, word)
    return words[0], words[1]


@njit
def integer(row, index):
    return array_at(argument(row, index)[0], 1, word)[0]


@njit
def integers(row, index):
    address, size = argument(row, index)
    return array_at(address, size, word)


@njit
def scratch_words(scratch, start, size):
    return array_at(scratch + 8 * start, size, word)


@njit
def plan_of(scratch):
    return scratch_words(scratch, PLAN, contraction.PLAN_SIZE)


@njit
def batch_plan_of(scratch):
    return scratch_words(scratch, BATCH_PLAN, contraction.PLAN_SIZE)


@njit
def program_of(scratch):
    return scratch_words(scratch, PROGRAM, 1 + 2 * expression.MAX_OPERATIONS)


@njit
def constants_of(scratch):
    return array_at(scratch + 8 * CONSTANTS, expression.CONSTANT_WORDS, types.float64)


@njit
def blocks_of(scratch, block, dtype):
    """The stack of blocks on which expressions are evaluated: of 256 elements, or of 128 that are larger."""
    return array_at(scratch + 8 * BLOCKS, block * expression.MAX_DEPTH, dtype)


@njit
def part_of(scratch, operand, block, dtype):
    """Room for one block of an operand's elements."""
    start = BLOCKS + evaluation.BLOCK * (expression.MAX_DEPTH + operand)
    return array_at(scratch + 8 * start, block, dtype)


@njit
def one_of(scratch, dtype):
    """An array of a single 1: what stands in for a second operand."""
    one = array_at(scratch + 8 * ONE, 1, dtype)
    one[0] = dtype(1)
    return one


@njit
def block_of(scratch):
    """Room for a block of an array: where it starts along every axis, and how long it is there."""
    words = scratch_words(scratch, _BLOCK, 2 * layout.MAX_AXES)
    return words[: layout.MAX_AXES], words[layout.MAX_AXES :]


@njit
def shape_of(scratch):
    """What all rows of a group must agree on beside the number of elements: how many words, then they."""
    return scratch_words(scratch, d.MESSAGE_WORDS, d.SHAPE_WORDS)
